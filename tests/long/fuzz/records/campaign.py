"""Runs cases: changes a base, asks both verifiers, and classifies what they say."""

from __future__ import annotations

import json
import re
import shutil
import struct
import tempfile
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import msgspec

from controller.audit.errors import RecordProblem
from controller.audit.format.hole_cards import SealProblem
from controller.audit.format.notes import NoteProblem
from controller.audit.format.validation import WrongData
from controller.audit.verify import INCOMPLETE, INVALID, verify
from tests.long.fuzz.records.bases import drafts
from tests.long.fuzz.records.mutations import STRUCTURE, Mutation
from tests.long.fuzz.records.signed import MUTATIONS
from tests.support.audit.record.resigning import Draft, Files, put_together, save
from tests.support.audit.verifying import read_independently

_WAYS: Final = (*STRUCTURE, *MUTATIONS)
_TRIES: Final = 60


class Batch(NamedTuple):
    """Cases that one process runs."""

    seed: int
    first: int
    last: int
    findings: str
    scratch: str


class Found(NamedTuple):
    """A difference."""

    case: int
    base: str
    what: str
    place: str
    said: str
    file: str


class Result(NamedTuple):
    counted: Counter[str]
    found: list[Found]


class Verdicts(NamedTuple):
    """What both verifiers say of a record."""

    ours: int
    findings: tuple[str, ...]
    unchecked: tuple[str, ...]
    theirs: int
    wrong: str
    not_checked: tuple[str, ...] = ()

    def __str__(self) -> str:
        ours = f"audit verify: {self.ours} {'; '.join(self.findings[:3])[:500]}"
        left = f"; not checked: {self.unchecked}, {self.not_checked}" if self.left_out else ""
        return f"{ours}\n  verify_record: {self.theirs} {self.wrong[:300]}{left}"

    @property
    def left_out(self) -> bool:
        return bool(self.unchecked or self.not_checked)


USAGE: Final = 2
NO_RECORD: Final = "NoRecord"
CRASH: Final = 70
CRASHES: Final = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, NoteProblem, OSError),
    *(RuntimeError, SealProblem, TypeError, ValueError, WrongData, msgspec.MsgspecError),
    *(struct.error, zlib.error),
)
"""What no command may end with."""
_BY_REPLAY: Final = re.compile(
    r"round -?\d+, a (decision|refusal) by |its state is not what the decisions before it come to"
    r"|its snapshot has another state of the procedure|it is said to be by "
    r"|a (decision|refusal|snapshot|opened) that cannot be read: |.*: its game cannot be read"
)
"""Findings of the rules: only a program that deals the rounds again can have them."""


_ONLY_REPLAYED: Final = re.compile(
    r"decision: data\.rows|decision: data\.effects(\[\w*\])?$|refusal: (by\.seat|data)"
    r"|decision: data\.effects\[(Stations|ShoeLock|Shuffler|Told)\]|opened: game"
    r"|decision: data\.effects\[Prompt\](?!\.(stake|amount|odds|chips)\b)"
    r"|snapshot: data\.state|(decision|refusal)$"
    r"|(decision|refusal|snapshot): (flipped|removed|repeated|added|.* in a (string|name)$)"
)
"""Places that FORMAT.md leaves to those who repeat the decisions; and bytes, which may be there."""


def batch(part: Batch) -> Result:
    """Run the cases of a batch."""
    count: Counter[str] = Counter()
    found: list[Found] = []
    with tempfile.TemporaryDirectory(dir=part.scratch) as scratch:
        bases = _bases(part.seed, part.scratch)
        for case in range(part.first, part.last):
            made = mutated(bases, part.seed, case)
            files = put_together(made.draft)
            verdicts = judged(files, Path(scratch) / "record")
            kind = classified(made, verdicts)
            count.update(("cases", f"{made.what.partition(' ')[0]}: {kind}"))
            if kind.startswith("DIFFERENT"):
                found.append(_kept(part, case, made, verdicts, files))
    return Result(count, found)


@cache
def _bases(seed: int, scratch: str) -> list[Draft]:
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        return drafts(Path(folder), seed)


def mutated(bases: list[Draft], seed: int, case: int) -> Mutation:
    """The case of this number."""
    random = Random(f"{seed} {case}")
    weights = [weight for weight, _ in _WAYS]
    for _ in range(_TRIES):
        base = random.choice(bases)
        ((_, way),) = random.choices(_WAYS, weights)
        found = way(base, random)
        if found is not None:
            return found
    raise AssertionError(f"case {case} of seed {seed}: nothing could be changed")


def judged(files: Files, place: Path) -> Verdicts:
    """Both verdicts; any other exception than those of the commands is one of them too."""
    save(files, place)
    unchecked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    try:
        report = verify(place)
        findings = tuple(one.what for one in report.findings)
        ours, unchecked = report.code, report.unchecked
    except RecordProblem as problem:
        ours, findings = USAGE, (type(problem).__name__,)
    except CRASHES as problem:
        ours, findings = CRASH, (f"TRACEBACK {type(problem).__name__}: {problem}",)
    try:
        other = read_independently(place)
        theirs, wrong = other["exit"], (other["wrong"] or {}).get("what", "")
        not_checked = tuple(other["not_checked"])
    except CRASHES as problem:
        theirs, wrong = CRASH, f"TRACEBACK {type(problem).__name__}: {problem}"
    shutil.rmtree(place)
    return Verdicts(ours, findings, unchecked, theirs, wrong, not_checked)


def classified(made: Mutation, said: Verdicts) -> str:
    """The same verdict, a difference that FORMAT.md names, or another one."""
    ours, theirs = said.ours, said.theirs
    if CRASH in (ours, theirs):
        return "DIFFERENT traceback"
    if ours == theirs or ({ours, theirs} == {0, INCOMPLETE} and _named(said)):
        return f"{ours} {theirs}"
    if said.findings[:1] == (NO_RECORD,):
        return f"{ours} {theirs} without a segment"
    by_replay = all(map(_BY_REPLAY.match, said.findings)) and _ONLY_REPLAYED.match(made.place)
    if ours == INVALID and by_replay and not made.same:
        return f"{ours} {theirs} by replay"
    of_play = made.place.startswith(_OF_PLAY) and not made.same
    if (ours, theirs) == (INCOMPLETE, INVALID) and of_play and _other_code(said):
        return f"{ours} {theirs} by other code"
    return f"DIFFERENT {ours} {theirs}"


_LEFT_OUT: Final = re.compile(
    r"decisions were not settled again: |a later vocabulary: |from segment \d+: "
    r"|a checkpoint is of records too far back|a hole card's commitment lies in a segment"
)
"""What the stand-alone verifier may leave out when the record is right."""


def _named(said: Verdicts) -> bool:
    """Whether the verifier that did not check everything names a known reason."""
    if said.ours == INCOMPLETE:
        return _other_code(said)
    return bool(said.not_checked) and all(map(_LEFT_OUT.match, said.not_checked))


_OF_PLAY: Final = ("decision", "refusal", "opened", "snapshot: data.state")
"""Places of what only those judge who know the procedure."""


def _other_code(said: Verdicts) -> bool:
    """Whether our program says that it did not repeat the decisions: other code made them."""
    return any("decisions and refusals were made by" in one for one in said.unchecked)


# --- cases that are kept ----------------------------------------------------------------------


def _kept(part: Batch, case: int, made: Mutation, said: Verdicts, files: Files) -> Found:
    file = Path(part.findings) / f"{part.seed}-{case}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    packed = {path: b64encode(zlib.compress(data)).decode() for path, data in files.items()}
    about = {"base": made.draft.name, "what": made.what, "place": made.place, "said": str(said)}
    file.write_text(json.dumps({**about, "files": packed}))
    return Found(case, made.draft.name, made.what, made.place, str(said), str(file))


def again(file: Path) -> int:
    """Ask both verifiers again about the record in the file of a case."""
    kept = json.loads(file.read_text())
    files = {path: zlib.decompress(b64decode(data)) for path, data in kept["files"].items()}
    with tempfile.TemporaryDirectory() as scratch:
        said = judged(files, Path(scratch) / "record")
    print(f"{kept['what']} - {kept['place']} - {kept['base']}\n  {said}")
    same = said.ours == said.theirs
    print("the same" if same else "different")
    return 0 if same else 1
