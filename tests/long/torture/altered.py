"""Random alterations of records: every bit of a small one, and rewritten records with rounds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, Final

from controller.audit import verify_record
from controller.audit.format.notes import NoteProblem, format_note, parse_note
from controller.audit.format.records import KINDS
from controller.audit.format.segments import segment_file
from controller.audit.read.reader import segments
from controller.audit.verify import INVALID, WitnessedCheckpoint, seen_by_witness, verify
from tests.support.audit.record.forging import Original, forged, original, read
from tests.support.audit.record.resigning import Json
from tests.support.audit.record.table import begun, device_report, note
from tests.support.audit.tools.outside import WITNESS
from tests.support.audit.tools.signers import SECONDS

ZEROS: Final = 4_000
"""Number of bits behind the last record that are tried."""
REWRITINGS: Final = 600


class Unnoticed(AssertionError):
    """An altered record passed verification."""


# --- every bit --------------------------------------------------------------------------------


def small(place: Path) -> Path:
    """A closed record in one segment of 16 KiB; returns its file."""
    log = begun(place)
    for number in range(3):
        log.write([note(f"{number}", 30), device_report("SH-1", number + 1)])
    log.close()
    return segment_file(place, 1)


def flips(place: Path, share: int, seed: int) -> Iterator[tuple[str, str]]:
    """Flip bits one by one; yields the position of each and how it is detected."""
    file = small(place)
    whole = file.read_bytes()
    end = len(whole.rstrip(b"\0"))
    random = Random(seed)
    zeros = [random.randrange(8 * end, 8 * len(whole)) for _ in range(ZEROS // share)]
    for where, bits in (("frames", range(0, 8 * end, share)), ("zeros", zeros)):
        for bit in bits:
            changed = bytearray(whole)
            changed[bit // 8] ^= 1 << bit % 8
            file.write_bytes(changed)
            yield where, _shown(place, where, bit)
    file.write_bytes(whole)


def _shown(place: Path, where: str, bit: int) -> str:
    """`found`; or `explained` if an incomplete write could leave the same bytes. Only
    unacknowledged bytes may be explained, and they are reported."""
    mine, remarks = _ours(place)
    theirs = verify_record.verify(verify_record.Reading(place, None, None), None, lambda _: None)
    if mine == INVALID == theirs["exit"]:
        return "found"
    told_of = [any("cut off" in one for one in every) for every in (remarks, theirs["remarks"])]
    both = (mine == INVALID or told_of[0]) and (theirs["exit"] == INVALID or told_of[1])
    if where == "zeros" and both:
        return "explained"
    raise Unnoticed(f"bit {bit % 8} of byte {bit // 8}: ours {mine}, theirs {theirs['exit']}")


def _ours(place: Path, witness: WitnessedCheckpoint | None = None) -> tuple[int, tuple[str, ...]]:
    report = verify(place, witness=witness)
    return report.code, report.remarks


# --- rewritings -------------------------------------------------------------------------------


def rewritings(scratch: Path, share: int, seed: int) -> Iterator[tuple[str, bool]]:
    """Rewrite a record at random, with and without keys; yields what was done, and whether the
    record itself shows it even with new signatures."""
    first, random, file = original(scratch), Random(seed), scratch / "seen.note"
    note_of, witness = _seen(first)
    file.write_bytes(note_of)
    for number in range(REWRITINGS // share):
        name = random.choice(tuple(_DOINGS))
        shuffled = Random(random.random())
        place = scratch / f"forged-{number}"

        def change(records: list[Json], name: str = name, chance: Random = shuffled) -> None:
            _DOINGS[name](records, chance)

        state = shuffled.getstate()
        forged(first.place, place / "bare", change, None)
        shuffled.setstate(state)
        try:
            forged(first.place, place / "signed", change, first.keys)
        except NoteProblem:
            continue  # not a valid certificate
        if read(place / "bare") == read(first.place):
            continue  # two equal records were swapped
        _must_be_wrong(name, place / "bare", None, None)
        if read(place / "signed") == read(first.place):
            continue  # signing again restores it: a note, a key
        alone, _ = _ours(place / "signed")
        _must_be_wrong(name, place / "signed", witness, file)
        yield name, alone == INVALID


def _seen(first: Original) -> tuple[bytes, WitnessedCheckpoint]:
    *_, last = segments(first.place)
    said = parse_note(json.loads(last.frames[-1].data)["data"]["note"])
    note_of = format_note(said.text, *said.signatures, WITNESS.cosign(said.text, SECONDS)).encode()
    return note_of, seen_by_witness(note_of, WITNESS.cosigner)


def _must_be_wrong(
    name: str, place: Path, witness: WitnessedCheckpoint | None, file: Path | None
) -> None:
    mine, _ = _ours(place, witness)
    key = verify_record.Key(WITNESS.cosigner.name, WITNESS.cosigner.key)
    reading = verify_record.Reading(place, None, file)
    theirs = verify_record.verify(reading, key if file else None, lambda _: None)["exit"]
    if not mine == INVALID == theirs:
        raise Unnoticed(f"{place}: {name}: ours {mine}, theirs {theirs}")


def _place(records: list[Json], random: Random) -> int:
    """The position of a record between the first and the last: the last is not signed."""
    return random.randrange(1, len(records) - 1)


def _delete(records: list[Json], random: Random) -> None:
    del records[_place(records, random)]


def _duplicate(records: list[Json], random: Random) -> None:
    at = _place(records, random)
    records.insert(at, deepcopy(records[at]))


def _swap(records: list[Json], random: Random) -> None:
    one, other = _place(records, random), _place(records, random)
    records[one], records[other] = records[other], records[one]


def _move(records: list[Json], random: Random) -> None:
    record = records.pop(_place(records, random))
    records.insert(_place(records, random), record)


def _alter(records: list[Json], random: Random) -> None:
    """Replace one number or word."""
    found = [leaf for record in records[1:-1] for leaf in _leaves(record)]
    holder, key = random.choice(found)
    was = holder[key]
    holder[key] = was + random.choice((-1, 1)) if isinstance(was, int) else f"{was}x"


def _kind(records: list[Json], random: Random) -> None:
    record = records[_place(records, random)]
    record["kind"] = random.choice([kind for kind in KINDS if kind != record["kind"]])


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list):
            yield from _leaves(inner)
        elif isinstance(inner, int | str) and not isinstance(inner, bool) and key != "seq":
            yield value, key


_DOINGS: Final = {
    "deleted": _delete,
    "duplicated": _duplicate,
    "swapped": _swap,
    "moved": _move,
    "altered": _alter,
    "of another kind": _kind,
}


def counted(found: Iterator[tuple[str, str]] | Iterator[tuple[str, bool]]) -> dict[str, int]:
    count: Counter[str] = Counter()
    for what, how in found:
        if isinstance(how, str):
            count[f"bits in {what} {how}"] += 1
        else:
            count[what] += 1
            count["shown by the record itself though all was signed again"] += how
    return dict(count)
