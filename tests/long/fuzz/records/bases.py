"""Right records of all kinds, small ones, for the fuzzer to change."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random
from typing import Final
from unittest import mock

from msgspec.structs import replace

from controller.audit.format.records import Kind, RecordActor, RecordEntry
from controller.audit.log import Log
from controller.audit.read.reader import segments
from controller.audit.text.device_events import SAYINGS
from controller.audit.verify import INVALID, verify
from controller.procedure.engine import EVENTS, Procedure
from controller.sim.scripts.format import read_scripts
from tests.support.audit.record.dealing import Revealing, boot
from tests.support.audit.record.resigning import Draft, put_together, save, taken_apart
from tests.support.audit.record.retiring import DAYS, aged, retired
from tests.support.audit.record.scripted import FILES, record_all
from tests.support.audit.record.table import NOON, FakeClock, begun, device_report, note
from tests.support.audit.tools.by_page import Pen, closed
from tests.support.audit.verifying import read_independently
from tests.support.paths import ROOT
from tests.support.procedure.random_games import GAMES, some_game

SCRIPTED: Final = 6
"""Scripts of each file."""
DEALT: Final = 45
"""Entries of a random table."""
MOST_TABLES: Final = 300
BEFORE: Final = ROOT / "tests" / "long" / "fixtures_before" / "records.tar.xz"
OF_BEFORE: Final = 70
"""Records of a record of an earlier version."""


class WrongBase(AssertionError):
    """A record that is to be changed is wrong already."""


def drafts(scratch: Path, seed: int) -> list[Draft]:
    """All of them, signed again, and right for both verifiers."""
    with _names(seed):
        found = [draft for make in _SOURCES for draft in make(scratch, Random(seed))]
    return [draft for draft in found if _is_right(draft, scratch / "signed")]


def _is_right(draft: Draft, place: Path) -> bool:
    """A random table may do what no record may hold. Raises WrongBase for other wrong records."""
    save(put_together(draft), place)
    report, other = verify(place), read_independently(place)
    shutil.rmtree(place)
    wrong = report.code == INVALID, other["wrong"] is not None
    if any(wrong) and (not all(wrong) or not draft.name.startswith("table-")):
        raise WrongBase(f"{draft.name}: {report.findings[:1]} {other['wrong']}")
    return not any(wrong)


@contextmanager
def _names(seed: int) -> Iterator[None]:
    """Records and boots of the same names each time."""
    random = Random(f"names {seed}")
    with mock.patch("secrets.token_hex", lambda size: random.randbytes(size).hex()):
        yield


# --- rounds -----------------------------------------------------------------------------------


def _scripts(scratch: Path, random: Random) -> Iterator[Draft]:
    for file in FILES:
        every = read_scripts(file)
        for number, scripted in enumerate(random.sample(every, min(SCRIPTED, len(every)))):
            name = f"script-{file.stem}-{number}"
            record_all(scratch / name, [scripted])
            yield taken_apart(scratch / name, name)


def _tables(scratch: Path, random: Random) -> Iterator[Draft]:
    """Random tables until each event was decided or refused at one of them."""
    missing = {(kind.__name__, taken) for kind in EVENTS for taken in (True, False)}
    for number in range(MOST_TABLES):
        name = GAMES[number % len(GAMES)]
        game, what = some_game(Random(f"fuzz {number}"), name)
        table = Revealing(Procedure(game), f"fuzz {what} {number}")
        table._illegal = 0.08 if number % 2 else 0.0
        table.play_to(DEALT)
        here = {
            (made.data.event.__class__.__name__, made.kind == "decision") for made in table.entries
        }
        if missing.isdisjoint(here) and number >= 2 * len(GAMES):
            continue
        missing -= here
        name = f"table-{number}-{name}"
        with closing(boot(scratch / name, game, size=32 * 1024)) as log:
            for at, made in enumerate(table.entries):
                log.write([made])
                if made.sign or at % 25 == 24:
                    log.sign()
        yield taken_apart(scratch / name, name)


# --- everything beside rounds -----------------------------------------------------------------


def _people(scratch: Path, _: Random) -> Iterator[Draft]:
    """Every report of devices, links and people; with remarks, faults and a second boot."""
    place, seqs = scratch / "people", count(1)
    for part in range(3):
        with closing(begun(place, size=32 * 1024)) as log:
            for at, (kind, what) in enumerate(sorted(SAYINGS)):
                if at % 3 == part and kind in _KIND_ROLE:
                    _report(log, kind, what, seqs)
            log.write([RecordEntry("fault", RecordActor("device", "controller"), _FAULT)])
            log.write([note(f"a note, {part}", 30)])
            log.sign()
    yield taken_apart(place, "people")


_FAULT: Final = {"what": "disk", "detail": {"errno": 28, "left": [1, -1, None, True], "why": ""}}
_KIND_ROLE: Final[dict[Kind, str]] = {"device": "device", "link": "technician", "person": "floor"}


def _report(log: Log, kind: Kind, what: str, seqs: count[int]) -> None:
    who = RecordActor(_KIND_ROLE[kind], "SH-1" if kind == "device" else "Bo Chan")
    data = {"what": what, "name": "Ann Lee", "seat": 3, "open": True, "counts": {"crc": 2}}
    made = RecordEntry(kind, who, data)
    if kind == "device":
        made = replace(device_report("SH-1", next(seqs)), data=data)
    if what == "adopted":
        two = {"what": "adopted", "device": "SH-2", "two": ["Ann Lee", "Bo Chan"]}
        made = replace(device_report("SH-2", 400), kind="link", data=two)
    log.write([made])
    if what == "adopted":
        log.write([device_report("SH-2", 800)])
        log.write([device_report("SH-2", 801)])


def _clocks(scratch: Path, _: Random) -> Iterator[Draft]:
    """The clock is set, a day ends, a boot begins before the record ends, a write was torn."""
    place = scratch / "clocks"
    clock = FakeClock()
    with closing(begun(place, clock=clock)) as log:
        log.write([note("before", 40)])
        clock.set(3600.0)
        log.write([note("after", 40), device_report("SH-1", 1)])
        clock.set(-1800.0)
        log.write([note("back", 40)])
        log.sign()
        clock.go(86_000.0)
        log.write([note("a day later", 40), device_report("SH-2", 7)])
    (last,) = segments(place)
    data = bytearray(last.buffer)
    data[last.end : last.end + 90] = b"nobody knows these" * 5
    last.file.write_bytes(data)
    late = FakeClock(NOON + 3 * 86_400_000_000)
    begun(place, clock=late, accept=("Ann", "Bo")).close()
    with closing(begun(place, clock=FakeClock(NOON + 4 * 86_400_000_000))) as log:
        two = {"what": "adopted", "device": "SH-2", "two": ["Ann Lee", "Bo Chan"]}
        adopted = RecordEntry("link", RecordActor("floor", "Ann Lee"), two)
        log.write([device_report("SH-1", 2), adopted, device_report("SH-2", 1, epoch=8)])
    yield taken_apart(place, "clocks")


def _witnessed(scratch: Path, _: Random) -> Iterator[Draft]:
    """Checkpoints that a witness has countersigned, in the record and beside it."""
    (scratch / "aged").mkdir()
    made = aged(scratch / "aged")
    place = made.record
    with closing(begun(place, clock=FakeClock(NOON + 9 * 86_400_000_000))) as log:
        who = RecordActor("device", "controller")
        log.write([RecordEntry("witnessed", who, {"note": made.notes[-1].decode()}, 16)])
        log.write([RecordEntry("unwitnessed", who, {"since": NOON}, 16)])
    yield taken_apart(place, "witnessed")
    for day in (1, 3):
        copy = shutil.copytree(place, scratch / f"retired-{day}")
        retired(copy, DAYS[day], scratch / f"old-{day}.zip")
        yield taken_apart(copy, f"retired-{day}")


def _before(scratch: Path, _: Random) -> Iterator[Draft]:
    """Records of version 1, as they were made: the beginning, and the last segment alone."""
    with tarfile.open(BEFORE) as packed:
        for member in packed:
            data = packed.extractfile(member)
            file = scratch / "before" / member.name
            if data is not None and file.suffix == ".seg":
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data.read())
    for place in sorted((scratch / "before").iterdir()):
        yield taken_apart(place, f"before-{place.name}", OF_BEFORE)
        last = max((place / "segments").glob("0*.seg"))
        alone = scratch / "alone" / place.name
        (alone / "segments").mkdir(parents=True)
        shutil.copy(last, alone / "segments")
        yield taken_apart(alone, f"before-{place.name}-alone", OF_BEFORE)


def _by_page(scratch: Path, _: Random) -> Iterator[Draft]:
    """Records that another writer made from the page, of version 1."""
    makes: dict[str, Callable[[], Pen]] = {
        "page-one": lambda: closed(rounds=2),
        "page-many": lambda: closed(4096, rounds=3, boots=2),
    }
    for name, make in makes.items():
        yield taken_apart(make().save(scratch / name), name)


_SOURCES: Final = (_scripts, _tables, _people, _clocks, _witnessed, _before, _by_page)


def digest(draft: Draft) -> str:
    """Tells whether a base is the same as in another run."""
    return sha256(repr([entry.record["kind"] for entry in draft.entries]).encode()).hexdigest()[:8]
