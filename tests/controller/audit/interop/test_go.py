"""Go's transparency log packages accept our trees, proofs and notes, and the reverse."""

import json
import os
import random
import shutil
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from controller.audit.format.merkle import Span, leaf_hash
from controller.audit.format.notes import (
    NoteProblem,
    VerifiedSignature,
    VerifierKey,
    format_note,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from tests.conftest import require
from tests.support.audit.leaves import Leaves
from tests.support.audit.record import growing
from tests.support.audit.tools.signers import (
    BOOT_KEY,
    CERTIFICATE,
    CHECKPOINT,
    ORIGIN,
    SECONDS,
    SIGNED,
    STRANGER,
    TABLE_KEY,
    TEXT,
    WITNESS,
    WITNESSED,
)

SOURCE = Path(__file__).with_name("transparency.go")
GOPATH = Path("/usr/share/gocode")
MODULES = GOPATH / "src/golang.org/x/mod/sumdb"
MAX_SIZE = 130

Ask = Callable[[str, dict[str, Any]], Any]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """A request to transparency.go, and its response."""
    require(
        shutil.which("go") and MODULES.is_dir(), "go and golang-golang-x-mod-dev, to ask Go's logs"
    )
    folder = tmp_path_factory.mktemp("go")
    program = folder / "transparency"
    ours = {
        "GO111MODULE": "off",
        "GOCACHE": str(folder / "cache"),
        "GOFLAGS": "",
        "GOPATH": str(GOPATH),
    }
    built = subprocess.run(
        ["go", "build", "-o", str(program), str(SOURCE)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=os.environ | ours,
    )
    assert built.returncode == 0, built.stderr

    def run(word: str, question: dict[str, Any]) -> Any:
        done = subprocess.run(
            [program, word],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def all_base64(some: Iterable[bytes]) -> list[str]:
    return [base64(one) for one in some]


def open_all(ask: Ask, keys: Iterable[VerifierKey], notes: Iterable[bytes]) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = ask(
        "open", {"Keys": [str(key) for key in keys], "Notes": all_base64(notes)}
    )
    return answers


def changed(data: bytes, chance: random.Random) -> bytes:
    """The note with one or a few errors."""
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(data))
        end = min(len(data), at + chance.choice((0, 1, 1, 4, 60)))
        pieces = (b"", b"\n", b"A", b"=", b" ", b"+", "— ".encode(), b"\xff", data[at:end] * 2)
        data = data[:at] + chance.choice(pieces) + data[end:]
    return data


def test_all_roots_and_proofs_are_those_of_go(ask: Ask) -> None:
    records = growing.records(MAX_SIZE)
    leaves = Leaves(leaf_hash(record) for record in records)
    places = [(index, size) for size in range(1, MAX_SIZE + 1) for index in range(size)]
    answer = ask(
        "tree",
        {
            "Records": all_base64(records),
            "Inclusion": [
                {"Index": index, "Size": size, "Proof": all_base64(leaves.inclusion(index, size))}
                for index, size in places
            ],
            "Consistency": [
                {
                    "Old": index + 1,
                    "New": size,
                    "Proof": all_base64(leaves.consistency(index + 1, size)),
                }
                for index, size in places
            ],
        },
    )
    tree = Span()
    for record, root in zip(records, answer["Roots"], strict=True):
        tree.add(leaf_hash(record))
        assert tree.root() == b64decode(root)
    assert answer["Inclusion"] == answer["Consistency"] == [""] * len(places)


def test_go_rejects_what_we_reject(ask: Ask) -> None:
    """So that the test before is not vacuous."""
    records = growing.records(20)
    leaves = Leaves(leaf_hash(record) for record in records)
    others = Leaves(leaf_hash(record) for record in [b"altered", *records[1:]])
    answer = ask(
        "tree",
        {
            "Records": all_base64(records),
            "Inclusion": [
                {"Index": 11, "Size": 20, "Proof": all_base64(source.inclusion(index, 20))}
                for source, index in ((leaves, 11), (leaves, 10), (others, 11))
            ],
            "Consistency": [
                {"Old": 11, "New": 20, "Proof": all_base64(source.consistency(old, 20))}
                for source, old in ((leaves, 11), (leaves, 10), (others, 11))
            ],
        },
    )
    wrong = "invalid transparency proof"
    assert answer["Inclusion"] == answer["Consistency"] == ["", wrong, wrong]


def test_go_verifies_our_notes(ask: Ask) -> None:
    keys = [BOOT_KEY.verifier, TABLE_KEY.verifier, WITNESS.cosigner]
    odd = "\n\nwords — é\n\n"
    foreign = format_note(odd, STRANGER.sign(odd), TABLE_KEY.sign(odd))
    notes = [SIGNED, WITNESSED, CERTIFICATE, foreign]
    found = open_all(ask, keys, [note.encode() for note in notes])
    assert [(one["Text"], one["Names"], one["Why"]) for one in found] == [
        (TEXT, [ORIGIN], ""),
        (TEXT, [ORIGIN, WITNESS.name], ""),
        (parse_note(CERTIFICATE).text, [TABLE_KEY.name], ""),
        (odd, [TABLE_KEY.name], ""),
    ]


def test_we_verify_gos_notes(ask: Ask) -> None:
    for seconds in (0, SECONDS, (1 << 63) - 1):
        answer = ask(
            "sign", {"Text": TEXT, "Name": ORIGIN, "Witness": "witness.example", "Time": seconds}
        )
        table, witness = (VerifierKey.parse(key) for key in answer["Keys"])
        note = parse_note(answer["Note"])
        assert verify_note(note, [witness, table]) == (
            VerifiedSignature(table),
            VerifiedSignature(witness, seconds),
        )
        assert parse_checkpoint(note.text) == CHECKPOINT
        assert format_note(note.text, *note.signatures) == answer["Note"]


def test_go_parses_every_note_that_we_parse(ask: Ask) -> None:
    """Our parser is stricter than Go's and accepts nothing that Go rejects."""
    chance = random.Random("notes that were changed")
    keys = [BOOT_KEY.verifier, WITNESS.cosigner]
    notes = [changed(WITNESSED.encode(), chance) for _ in range(4000)]
    taken = 0
    for data, theirs in zip(notes, open_all(ask, keys, notes), strict=True):
        try:
            note = parse_note(data)
            ours = verify_note(note, keys)
        except NoteProblem:
            continue
        assert (theirs["Why"], theirs["Text"]) == ("", note.text)
        assert theirs["Names"] == [one.verifier.name for one in ours]
        taken += 1
    assert taken > 100
