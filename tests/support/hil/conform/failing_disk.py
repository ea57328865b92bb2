"""A disk that says no to one of the things that are asked of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

_BY_PATH: Final = {"mkdir": 0, "open": 0, "replace": 0, "symlink": 1, "link": 0}
"""Functions of `os` that change something, and which of their arguments is the path."""
_REMOVING: Final = {"unlink": 0, "rmdir": 0}
"""The same of what a full disk still does, and not one that cannot be written to."""
_BY_DESCRIPTOR: Final = ("write", "pwrite", "fsync", "fdatasync")


class FailingDisk:
    """Below `folder` the `at`th change and all after it fail with this number: 0 is the first."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        folder: Path,
        number: int,
        at: int | None = None,
        *,
        removes: bool = True,
    ) -> None:
        self.asked = 0
        """How many changes were asked for so far."""
        self.at = at
        """None: it is in order."""
        self._folder = str(folder)
        self._number = number
        removing = {} if removes else _REMOVING
        for name, position in (_BY_PATH | removing).items():
            patch.setattr(os, name, self._wrapped(getattr(os, name), position, _of_path))
        for name in _BY_DESCRIPTOR:
            patch.setattr(os, name, self._wrapped(getattr(os, name), 0, _of_descriptor))

    def _wrapped(
        self, do: Callable[..., Any], position: int, place_of: Callable[[Any], str]
    ) -> Callable[..., Any]:
        def asked(*arguments: Any, **options: Any) -> Any:
            if place_of(arguments[position]).startswith(self._folder):
                self._step(arguments[position])
            return do(*arguments, **options)

        return asked

    def _step(self, what: object) -> None:
        self.asked += 1
        if self.at is not None and self.asked > self.at:
            reason = os.strerror(self._number)
            if isinstance(what, int):  # a write does not know what it was for
                raise OSError(self._number, reason)
            raise OSError(self._number, reason, os.fspath(what))  # type: ignore[call-overload]


def _of_path(path: Any) -> str:
    return os.fsdecode(path)


def _of_descriptor(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")
