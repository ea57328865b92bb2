"""The manifest of a case, and the comparison of a case's files with it."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from controller.audit.errors import NoRecord, RecordProblem
from controller.audit.export.case_folder import CaseFile

FORMAT: Final = "holecard case 1"
MANIFEST: Final = "manifest.json"
_MAX_MANIFEST: Final = 1 << 28
_PIECE: Final = 1 << 20


class ExportScope(Struct, frozen=True, forbid_unknown_fields=True):
    """What was requested."""

    what: Literal["rounds", "day", "all", "retired"]
    first: int
    last: int
    """Rounds; 0 if none were requested."""
    day: str


class CaseBoot(Struct, frozen=True, forbid_unknown_fields=True):
    """One boot of the controller, with complete hashes."""

    boot: str
    software: str
    sw: str
    conf: str
    proc: str
    code: str


class ProofCheckpoint(Struct, frozen=True, forbid_unknown_fields=True):
    """The checkpoint that the proofs are for."""

    size: int
    root: str
    note: str
    """Its path."""


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """`manifest.json`. Its own SHA-256 is the case's seal."""

    format: Literal["holecard case 1"]
    origin: str
    table_key: str
    """As the record names it: compare it with the owner's papers."""
    exported: ExportScope
    by: str
    reason: str
    made_with: str
    segments: tuple[int, int]
    records: tuple[int, int]
    """The first and the last record in these segments."""
    proofs: ProofCheckpoint | None
    boots: tuple[CaseBoot, ...]
    remarks: tuple[str, ...]
    files: tuple[CaseFile, ...]
    """All but this one, sorted by path."""


class CaseProblem(RecordProblem):
    """It is no case, or cannot be read at all."""


class NoCase(CaseProblem, NoRecord):
    """It is not a case."""


class CaseCheck(Struct, frozen=True):
    """The result of checking a case."""

    manifest: Manifest
    seal: str
    wrong: tuple[str, ...]

    @property
    def right(self) -> bool:
        return not self.wrong


def packed(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def seal_of(manifest: bytes) -> str:
    return sha256(manifest).hexdigest()


def check_case(case: Path) -> CaseCheck:
    """Compare the files of a case with its manifest: missing, changed, truncated and unknown files.

    Raises NoRecord if there is no case, NoCase if it is something else, and CaseProblem if its
    manifest cannot be read.
    """
    with _opened(case) as files:
        names = files.names
        if MANIFEST not in names:
            raise NoCase(case, f"it has no {MANIFEST}", "name a whole case")
        wrong = [f"{name}: is there twice" for name, n in Counter(names).items() if n > 1]
        data = _read(files, MANIFEST, _MAX_MANIFEST)
        if isinstance(data, str):
            raise CaseProblem(case, f"{MANIFEST}: {data}", "ask for the case again")
        try:
            manifest = msgspec.json.decode(data, type=Manifest)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            what = f"{MANIFEST}: cannot be read: {problem}"
            raise CaseProblem(case, what, "ask for the case again") from None
        said = {one.path: one for one in manifest.files}
        if len(said) != len(manifest.files) or MANIFEST in said:
            wrong.append(f"{MANIFEST}: it names a file twice, or itself")
        wrong += [f"{name}: is missing" for name in said if name not in names]
        extra = sorted(set(names) - {*said, MANIFEST})
        wrong += [f"{name!a}: is not of this case" for name in extra]
        for name, one in said.items():
            if name in names:
                wrong += [f"{name}: {what}" for what in _compared(files, one)]
    return CaseCheck(manifest, seal_of(data), tuple(wrong))


def _compared(files: _Files, said: CaseFile) -> Iterator[str]:
    digest, size = sha256(), 0
    try:
        with files.open(said.path) as source:
            while size <= said.size and (piece := source.read(_PIECE)):
                digest.update(piece)
                size += len(piece)
    except _BROKEN as problem:
        yield f"cannot be read: {problem}"
        return
    if size < said.size:
        yield f"was cut off: {size} bytes of {said.size}"
    elif size > said.size:
        yield f"was added to: more than {said.size} bytes"
    elif digest.hexdigest() != said.sha256:
        yield "was changed"


def _read(files: _Files, name: str, most: int) -> bytes | str:
    try:
        with files.open(name) as source:
            data = source.read(most + 1)
    except _BROKEN as problem:
        return f"cannot be read: {problem}"
    return f"has more than {most} bytes" if len(data) > most else data


# --- a folder or a zip ------------------------------------------------------------------------

_BROKEN: Final = (
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions of reading a file of a damaged zip or disk."""


_ZIP: Final = b"PK\x03\x04"


class _Files(NamedTuple):
    """The files of a folder or of a zip."""

    names: list[str]
    """All paths but folders. A symbolic link is listed, and is not a valid file."""
    open: Callable[[str], BinaryIO]


def _files_in_folder(place: Path) -> _Files:
    def open_file(name: str) -> BinaryIO:
        file = place / name
        if not stat.S_ISREG(file.lstat().st_mode):
            raise OSError("it is no file")
        return file.open("rb")

    found = [one for one in place.rglob("*") if one.is_symlink() or not one.is_dir()]
    return _Files(sorted(one.relative_to(place).as_posix() for one in found), open_file)


def _begins_as_zip(case: Path) -> bool:
    """Return whether it starts like a zip, even if it is truncated."""
    with case.open("rb") as opened:
        return opened.read(len(_ZIP)) == _ZIP


@contextmanager
def _opened(case: Path) -> Iterator[_Files]:
    if case.is_dir():
        yield _files_in_folder(case)
        return
    if case.exists() and not case.is_file():
        raise NoCase(case, "is neither a file nor a directory", "name a case")
    try:
        packed = zipfile.ZipFile(case)
    except FileNotFoundError:
        raise NoRecord(case, "there is no such case", "name a case") from None
    except OSError as problem:
        raise NoRecord(case, f"cannot be read: {problem.strerror}", "name a case") from None
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as problem:
        what = f"is no zip, or a part of one: {problem}"
        if not _begins_as_zip(case):
            raise NoCase(case, what, "name a case") from None
        raise CaseProblem(case, what, "ask for the case again") from None
    with packed:
        # typeshed returns IO[bytes] here, which is a BinaryIO in all but name.
        opened: Callable[[str], BinaryIO] = packed.open  # type: ignore[assignment]
        yield _Files([one.filename for one in packed.infolist()], opened)
