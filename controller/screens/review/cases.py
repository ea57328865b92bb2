"""Cases that were made and wait to be fetched: a few, until the review ends."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Final

from msgspec import Struct

from controller.audit.case_manifest import Manifest
from controller.audit.export import Case

MOST: Final = 4
_BYTES: Final = 12


class Kept(Struct, frozen=True):
    id: str
    who: str
    file: Path
    of: str
    seal: str
    manifest: Manifest

    @property
    def size(self) -> int:
        return self.file.stat().st_size


class Cases:
    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._kept: dict[str, Kept] = {}
        self._lock = Lock()

    def make(self, name: str, who: str, of: str, export: Callable[[Path], Case]) -> Kept:
        """`export` makes it at this place. The oldest makes room. Raises what `export` does."""
        with self._lock:
            while len(self._kept) >= MOST:
                self._drop(next(iter(self._kept)))
            key = secrets.token_urlsafe(_BYTES)
            place = self._scratch / f"export-{key}"
            place.mkdir(mode=0o700)
            try:
                case = export(place / name)
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
            kept = Kept(key, who, case.out, of, case.seal, case.manifest)
            self._kept[key] = kept
            return kept

    def find(self, key: str, who: str) -> Kept | None:
        """What this person made."""
        found = self._kept.get(key)
        return found if found is not None and found.who == who else None

    def close(self) -> None:
        with self._lock:
            for key in list(self._kept):
                self._drop(key)

    def _drop(self, key: str) -> None:
        shutil.rmtree(self._kept.pop(key).file.parent, ignore_errors=True)
