"""The folder of a case that is being made, under a temporary name until it is complete.

A case appears atomically and durable; an aborted export leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from controller.audit.files import DIRECTORY_MODE, MODE
from controller.commands import reason
from controller.errors import UsageProblem

ZIP: Final = ".zip"
_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""Timestamp of all files in a zip: the same records give the same zip."""
_LEVEL: Final = 6
_UNIX: Final = 3
_PIECE: Final = 1 << 20


class CaseFile(Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """A file of a case."""

    path: str
    size: int
    sha256: str


class CaseFolder:
    """The files of a case, with their hashes."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.files: list[CaseFile] = []

    def put(self, path: str, data: bytes) -> None:
        """Write a file. Raises OSError."""
        file = self.place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        self.files.append(CaseFile(path, len(data), sha256(data).hexdigest()))


@contextmanager
def case_folder(out: Path) -> Iterator[CaseFolder]:
    """Yield a folder, and move it to `out` when the block ends: as a zip if the name ends in .zip.

    Raises UsageProblem if it cannot be created there, and OSError.
    """
    check_free(out)
    try:
        place = Path(tempfile.mkdtemp(prefix=f".{out.name[:100]}.", dir=out.parent))
    except OSError as problem:
        what = f"{str(out)!a} cannot be made: {reason(problem)}"
        raise UsageProblem("--out", what, "another place") from None
    try:
        made = place / "case"
        made.mkdir(DIRECTORY_MODE)
        yield CaseFolder(made)
        if out.suffix == ZIP:
            made = _zipped(made, place / "case.zip")
        else:
            _sync_all(made)
        check_free(out)
        os.rename(made, out)
        _sync(out.parent)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check_free(out: Path) -> None:
    """Raise UsageProblem if `out` exists already: nothing is overwritten."""
    if os.path.lexists(out):
        raise UsageProblem("--out", f"{str(out)!a} is there already", "another name")
    if not out.parent.is_dir():
        raise UsageProblem("--out", f"there is no directory {str(out.parent)!a}", "one that is")


def _zipped(folder: Path, file: Path) -> Path:
    """Write a reproducible zip: no times, no owners, names sorted."""
    names = sorted(one.relative_to(folder).as_posix() for one in _files(folder))
    with file.open("xb") as raw:
        with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as packed:
            for name in names:
                _add(packed, folder / name, name)
        raw.flush()
        os.fchmod(raw.fileno(), MODE)
        os.fsync(raw.fileno())
    return file


def _add(packed: zipfile.ZipFile, file: Path, name: str) -> None:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = _UNIX
    entry.external_attr = (0o100000 | MODE) << 16
    entry.file_size = file.stat().st_size
    with file.open("rb") as source, packed.open(entry, "w") as target:
        shutil.copyfileobj(source, target, _PIECE)


def _sync_all(folder: Path) -> None:
    for file in _files(folder):
        file.chmod(MODE)
        _sync(file)
    places = [place for place in folder.rglob("*") if place.is_dir()]
    for place in (*places, folder):
        place.chmod(DIRECTORY_MODE)
        _sync(place)


def _files(folder: Path) -> list[Path]:
    return [one for one in folder.rglob("*") if one.is_file()]


def _sync(place: Path) -> None:
    fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
