"""The folder or zip of a case: its files are written with a manifest, and compared with it.

A case appears atomically and durable; an aborted export leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
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
        raise UsageProblem(
            "--out", f"{str(out)!a} cannot be made: {reason(problem)}", "another place"
        ) from None
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


FORMAT: Final = "holecard case 1"
MANIFEST: Final = "manifest.json"
_MAX_MANIFEST: Final = 1 << 28


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
    """Returns whether it starts like a zip, even if it is truncated."""
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
