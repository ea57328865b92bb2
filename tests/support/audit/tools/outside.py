"""Records and cases for those who check them from outside, with nothing of ours."""

import json
import subprocess
import sys
import zipfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

from controller import cli
from controller.audit.export import SealedCase
from controller.audit.format.notes import SigningKey, VerifierKey, table_name
from controller.audit.format.records import Record
from controller.audit.log import Log
from controller.audit.read.lookup import first_head
from controller.audit.read.reader import records, segments
from controller.audit.simulate import record_par
from controller.games import unburned_game
from tests.support.audit.record.dealing import keyring
from tests.support.audit.record.table import TABLE_KEY, begun, note
from tests.support.audit.tools.by_page import tree_hash
from tests.support.audit.tools.signers import signing_key

WITNESS: Final = signing_key("archive.example/floor-2")
ROUNDS: Final = 12
"""Of `played`: five records and a checkpoint each."""


def play(log: Log, first: int, last: int, size: int = 430) -> None:
    """Rounds with something in them; a checkpoint after each."""
    for turn in range(first, last + 1):
        for at in range(5):
            log.write([note(f"round {turn}, {at}", size, round=turn)])
        log.sign()


def played(place: Path, rounds: int = ROUNDS) -> Path:
    """A record of several segments that is in good order and closed."""
    with closing(begun(place)) as log:
        play(log, 1, rounds)
    return place


def grow(place: Path, words: str = "more", count: int = 1) -> None:
    """Another boot, which writes and closes."""
    turn = max(one.round for _, one in records(place)) if place.exists() else 0
    with closing(begun(place)) as log:
        for at in range(count):
            log.write([note(f"{words} {at}", 200, round=turn)])


def bytes_of(place: Path) -> list[bytes]:
    """Of all records, in order."""
    return [frame.data for segment in segments(place) for frame in segment.frames]


def leaves_of(place: Path) -> list[bytes]:
    return [sha256(b"\0" + data).digest() for data in bytes_of(place)]


def root_of(place: Path, size: int) -> bytes:
    """The root of the first records, by the definition."""
    return tree_hash(leaves_of(place)[:size])


def of_round(place: Path, turn: int) -> list[Record]:
    return [record for _, record in records(place) if record.round == turn]


def origin_of(place: Path) -> str:
    return first_head(place).snapshot.origin


def table_key(place: Path) -> VerifierKey:
    """The table's key as its papers have it."""
    return SigningKey(table_name(origin_of(place)), TABLE_KEY).verifier


def files_in(place: Path) -> dict[str, bytes]:
    return {
        file.relative_to(place).as_posix(): file.read_bytes()
        for file in sorted(place.rglob("*"))
        if file.is_file()
    }


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record that nobody changes."""
    return played(tmp_path_factory.mktemp("whole") / "mega-1")


def audit(*arguments: object) -> int:
    return cli.main(["audit", *map(str, arguments)])


class Printed(NamedTuple):
    out: str
    err: str


def printed(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> Printed:
    """What `holecard audit` prints before it ends with this exit code."""
    capsys.readouterr()
    assert audit(*arguments) == code
    return Printed(*capsys.readouterr())


Json: TypeAlias = dict[str, Any]
VERIFIER = "verify_record.py"


@pytest.fixture(scope="module")
def dealt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real rounds, with hole cards."""
    place = tmp_path_factory.mktemp("dealt") / "par"
    record_par(place, unburned_game("classic", {}, "a test"), 24, keyring, seed=4, size=64 * 1024)
    return place


def unpack(case: Path, place: Path) -> Path:
    with zipfile.ZipFile(case) as packed:
        packed.extractall(place)
    return place


def verified_by_others(case: Path, *more: str) -> tuple[int, Json]:
    """As somebody does who has the case and Python, and nothing of ours."""
    command = [sys.executable, "-I", VERIFIER, "record", "--json", *more]
    ran = subprocess.run(
        command, cwd=case, capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.stderr == ""
    return ran.returncode, json.loads(ran.stdout)


def wanted(case: SealedCase) -> list[str]:
    return [one.path for one in case.manifest.files]


def flip(file: Path, at: int, bits: int = 1) -> None:
    """Change bits of one byte of a file."""
    data = bytearray(file.read_bytes())
    data[at] ^= bits
    file.write_bytes(data)


def overwrite(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as changed:
        changed.seek(at)
        changed.write(data)


def end_after(record: Path, seq: int) -> None:
    """Remove all records after `seq`."""
    for segment in list(segments(record)):
        if segment.before.seq >= seq:
            segment.file.unlink()
            continue
        end = max(frame.end for frame in segment.frames if frame.seq <= seq)
        overwrite(segment.file, end, bytes(segment.end - end))
