"""Exported cases until they are downloaded: at most MAX_CASES, until the review ends."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock
from typing import Final, TypeAlias

from msgspec import Struct

from controller.audit.errors import CannotWrite
from controller.audit.export import Manifest, SealedCase

MAX_CASES: Final = 4
_BYTES: Final = 12

Making: TypeAlias = Callable[[Path, Callable[[int], None]], SealedCase]
"""Exports a case to this path and calls back before each segment."""


class StoredCase(Struct, frozen=True):
    id: str
    who: str
    file: Path
    of: str
    seal: str
    manifest: Manifest

    @property
    def size(self) -> int:
        return self.file.stat().st_size


class CaseStore:
    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._kept: dict[str, StoredCase] = {}
        self._lock = Lock()
        self._turn = Lock()
        """Exports run serially, which may take minutes; lookups do not wait for them."""
        self._ends = Event()

    def make(self, name: str, who: str, of: str, export: Making) -> StoredCase:
        """Export a case; the oldest one is deleted if there are too many. Raises what `export`
        raises, and CannotWrite if the review ends."""
        with self._turn:
            self._go_on()
            key = secrets.token_urlsafe(_BYTES)
            place = self._scratch / f"export-{key}"
            place.mkdir(mode=0o700)
            try:
                case = export(place / name, self._go_on)
                kept = StoredCase(key, who, case.out, of, case.seal, case.manifest)
                self._keep(kept)
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
            return kept

    def _go_on(self, number: int = 0) -> None:
        if self._ends.is_set():
            raise CannotWrite(
                "export",
                "is not made: the review has ended",
                "ask for it again when the review is there again",
            )

    def _keep(self, kept: StoredCase) -> None:
        with self._lock:
            self._go_on()
            while len(self._kept) >= MAX_CASES:
                self._drop(next(iter(self._kept)))
            self._kept[kept.id] = kept

    def find(self, key: str, who: str) -> StoredCase | None:
        """Returns a case of this user."""
        found = self._kept.get(key)
        return found if found is not None and found.who == who else None

    def end(self) -> None:
        """Cancel the current export at its next segment, and reject later ones."""
        self._ends.set()

    def close(self) -> None:
        self.end()
        with self._lock:
            for key in list(self._kept):
                self._drop(key)

    def _drop(self, key: str) -> None:
        shutil.rmtree(self._kept.pop(key).file.parent, ignore_errors=True)
