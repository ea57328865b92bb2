"""A witness for tests, and what it keeps."""

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from controller.audit.errors import RecordProblem
from controller.audit.read.reader import segments
from controller.audit.witness import CosignedNote, WitnessedRecord, cosign_record
from tests.support.audit.tools.outside import WITNESS, files_in, overwrite

NOW = 1_800_100_000


def seen_by(record: Path, archive: Path, now: int = NOW, **more: object) -> CosignedNote:
    return cosign_record(record, archive, WITNESS, now=lambda: now, **more)  # type: ignore[arg-type]


def seen_in(archive: Path) -> WitnessedRecord:
    (file,) = archive.glob("*/seen.json")
    return msgspec.json.decode(file.read_bytes(), type=WitnessedRecord)


def copied(record: Path, place: Path) -> Path:
    return shutil.copytree(record, place)


def refused(record: Path, archive: Path, problem: type[RecordProblem], words: str) -> None:
    """Nothing is signed, and what was kept stays."""
    before = kept(archive)
    with pytest.raises(problem, match=words):
        seen_by(record, archive, NOW + 100)
    assert kept(archive) == before


def kept(archive: Path) -> dict[str, bytes]:
    found = files_in(archive)
    return {name: found[name] for name in found if not re.search("/refused/|/lock$", name)}


def cut(record: Path, number: int, frames: int) -> None:
    segment = next(one for one in segments(record) if one.number == number)
    start = segment.frames[-frames].offset
    overwrite(segment.file, start, bytes(segment.end - start))
