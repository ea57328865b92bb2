"""Proofs of records: made, verified, and rejected when altered."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeAlias

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.errors import CannotProve, RecordDamaged, RecordProblem
from controller.audit.export import check_case, export_case
from controller.audit.format.merkle import leaf_hash
from controller.audit.format.notes import Checkpoint, SigningKey, certificate, format_note
from controller.audit.format.segments import segment_file
from controller.audit.log import Log
from controller.audit.proofs import (
    OlderSize,
    Proof,
    ProofProblem,
    ProvedRecord,
    TreeHashes,
    decode_proof,
    encode_proof,
    last_signed,
    make_proof,
    seqs_of_round,
    signed_as,
    verify_proof,
)
from controller.audit.read.lookup import Selection
from controller.audit.read.reader import records, segments
from controller.audit.read.signatures import BadSignature
from controller.audit.witness import CosignedNote
from tests.support.audit.leaves import Leaves
from tests.support.audit.record import growing
from tests.support.audit.record.table import TABLE_KEY, begun, note
from tests.support.audit.tools.outside import (
    VERIFIER,
    WITNESS,
    bytes_of,
    grow,
    of_round,
    origin_of,
    play,
    played,
    root_of,
    table_key,
)
from tests.support.audit.tools.signers import BOOT, ORIGIN, STRANGER, signing_key
from tests.support.audit.tools.signers import TABLE_KEY as STRANGE_TABLE
from tests.support.audit.witnessing import NOW, seen_by

Json = dict[str, Any]


@pytest.fixture(scope="module")
def proof(whole: Path) -> Proof:
    return make_proof(whole, [3, 30], last_signed(whole), [OlderSize(17), OlderSize(64)])


Place: TypeAlias = tuple[str | int, ...]
HARMS: dict[str, tuple[Place, Callable[[Any], Any], str]] = {
    "nothing": (
        (),
        lambda found: {**found, "records": [], "grown": []},
        "holds no record and no older tree",
    ),
    "another seq": (("records", 0, "seq"), lambda seq: seq + 1, "record 4 is not in the tree"),
    "another record": (
        ("records", 0, "record"),
        lambda text: text.replace('"round":0', '"round":1'),
        "record 3 is not in the tree",
    ),
    "records swapped": (
        ("records",),
        lambda both: [
            {**one, "record": other["record"]} for one, other in zip(both, both[::-1], strict=True)
        ],
        "record 3 is not in the tree",
    ),
    "a hash less": (
        ("records", 1, "hashes"),
        lambda hashes: hashes[:-1],
        "record 30 is not in the tree",
    ),
    "a hash more": (
        ("records", 1, "hashes"),
        lambda hashes: [*hashes, "00" * 32],
        "record 30 is not in the tree",
    ),
    "no hash": (
        ("records", 1, "hashes", 0),
        lambda _: "00" * 31 + "0G",
        "holds a hash that is none",
    ),
    "a short hash": (("grown", 1, "hashes", 0), lambda _: "00", "holds a hash that is none"),
    "another size": (("grown", 0, "size"), lambda _: 18, "is not the one of 18, grown"),
    "another root": (("grown", 0, "root"), lambda _: "11" * 32, "is not the one of 17, grown"),
    "another origin": (
        ("origin",),
        lambda _: "holecard/mega-1/0123456789abcdef",
        "is no key of the table",
    ),
    "a false signature": (
        ("checkpoint",),
        lambda note: note[:-8] + "AAAAAA=\n",
        "base64|is not one of this text",
    ),
    "a false certificate": (
        ("certificate",),
        lambda note: re.sub(r".\n\n", "3\n\n", note),
        "is not one of this text",
    ),
    "a checkpoint of another tree": (
        (),
        lambda found: {
            **found,
            "grown": [
                {
                    **found["grown"][0],
                    "checkpoint": found["checkpoint"],
                    "certificate": found["certificate"],
                }
            ],
        },
        "for a tree of 17",
    ),
}
"""What is changed, how, and what is said of it."""


def altered(found: Any, place: Place, change: Callable[[Any], Any]) -> Any:
    if not place:
        return change(found)
    found[place[0]] = altered(found[place[0]], place[1:], change)
    return found


@pytest.mark.parametrize("harm", HARMS)
def test_an_altered_proof_is_rejected(harm: str, proof: Proof, whole: Path) -> None:
    place, change, words = HARMS[harm]
    found = altered(json.loads(encode_proof(proof)), place, change)
    with pytest.raises(ProofProblem, match=words):
        verify_proof("p", decode_proof("p", json.dumps(found).encode()), table_key(whole))


def by_strangers(records_: list[str], origin: str = ORIGIN) -> Proof:
    """Correctly signed by another table's keys."""
    leaves, size = Leaves(leaf_hash(one.encode()) for one in records_), len(records_)
    text = Checkpoint(origin, size, leaves.root(size)).text()
    boot, table = signing_key(origin), signing_key(f"{origin}/table")
    proved = tuple(
        ProvedRecord(at + 1, record, tuple(one.hex() for one in leaves.inclusion(at, size)))
        for at, record in enumerate(records_)
    )
    return Proof(
        "holecard proof 1",
        origin,
        format_note(text, boot.sign(text)),
        certificate(origin, BOOT, boot.verifier.key, 2, table),
        proved,
        (),
    )


def test_a_record_with_a_wrong_seq_is_rejected(whole: Path) -> None:
    first, second, *_ = (data.decode() for data in bytes_of(whole))
    assert (
        len(verify_proof("p", by_strangers([first, second]), STRANGE_TABLE.verifier).records) == 2
    )
    with pytest.raises(ProofProblem, match="record 1 says that it is 2"):
        verify_proof("p", by_strangers([second, second]), STRANGE_TABLE.verifier)
    with pytest.raises(ProofProblem, match="record 1 cannot be read"):
        verify_proof("p", by_strangers(["{}"]), STRANGE_TABLE.verifier)


def test_another_tables_proof_is_rejected(whole: Path) -> None:
    (first, *_) = (data.decode() for data in bytes_of(whole))
    theirs = by_strangers([first])
    for one in (theirs, msgspec.structs.replace(theirs, origin=origin_of(whole))):
        with pytest.raises(ProofProblem, match=r"is no key of the table|none of the known keys"):
            verify_proof("p", one, table_key(whole))


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b"\xff", b'{"format":"holecard proof 2"}', b"[" * 9000]
)
def test_a_malformed_proof_is_rejected(data: bytes) -> None:
    with pytest.raises(ProofProblem, match="is no proof"):
        decode_proof("p", data)


def test_a_proof_has_no_other_fields(proof: Proof) -> None:
    found: Json = json.loads(encode_proof(proof))
    found["note"] = "trust me"
    with pytest.raises(ProofProblem, match="is no proof"):
        decode_proof("p", json.dumps(found).encode())


def test_a_proof_is_verified_from_the_format_alone(proof: Proof, whole: Path) -> None:
    """With hashes and Ed25519 only, without this software."""
    found: Json = json.loads(encode_proof(proof))
    public = base64.b64decode(str(table_key(whole)).split("+", 2)[2])[1:]
    origin, size, root = by_hand(
        found["checkpoint"], base64.b64decode(by_hand(found["certificate"], public)[3])
    )
    assert origin == found["origin"]
    for one in found["records"]:
        index, last = one["seq"] - 1, int(size) - 1
        top = hashlib.sha256(b"\0" + one["record"].encode()).digest()
        for text in one["hashes"]:
            beside = bytes.fromhex(text)
            if index % 2 or index == last:
                top = hashlib.sha256(b"\1" + beside + top).digest()
                while index % 2 == 0 and index:
                    index, last = index // 2, last // 2
            else:
                top = hashlib.sha256(b"\1" + top + beside).digest()
            index, last = index // 2, last // 2
        assert base64.b64encode(top).decode() == root
        assert json.loads(one["record"])["seq"] == one["seq"]


def by_hand(note_: str, public: bytes) -> list[str]:
    text, _, line = note_.rpartition("\n\n")
    Ed25519PublicKey.from_public_bytes(public).verify(
        base64.b64decode(line.split(" ")[2])[4:], f"{text}\n".encode()
    )
    return text.split("\n")


def test_a_proof_contains_the_records_own_notes(proof: Proof, whole: Path) -> None:
    notes = {
        msgspec.json.decode(one.data)["note"]
        for _, one in records(whole)
        if one.kind in ("checkpoint", "certificate")
    }
    assert {proof.checkpoint, proof.certificate} <= notes


def proof_of(record: Path, *seqs: int, older: tuple[OlderSize, ...] = ()) -> Proof:
    return make_proof(record, seqs, last_signed(record), older)


# --- what is proved ---------------------------------------------------------------------------


def test_every_record_is_proved_as_the_rfc_defines_it(whole: Path) -> None:
    data, said = bytes_of(whole), last_signed(whole).checkpoint
    assert (said.size, said.root) == (len(data) - 1, root_of(whole, said.size))
    every = range(1, said.size + 1)
    proof = proof_of(whole, *every)
    assert [one.seq for one in proof.records] == list(every)
    for one in proof.records:
        assert one.record.encode() == data[one.seq - 1]
        assert [bytes.fromhex(text) for text in one.hashes] == list(
            growing.inclusion(one.seq - 1, data[: said.size])
        )


@pytest.mark.parametrize("seq", [1, 2, 7, 25, 40, 63, 64, 65, 80])
def test_a_proof_of_a_single_record_is_the_same(seq: int, whole: Path) -> None:
    """It reads only the record's own segment, whose snapshot contains the tree before."""
    size = last_signed(whole).checkpoint.size
    (one,) = proof_of(whole, seq).records
    assert [bytes.fromhex(text) for text in one.hashes] == list(
        growing.inclusion(seq - 1, bytes_of(whole)[:size])
    )


def test_only_the_needed_segments_are_read(whole: Path) -> None:
    read: list[int] = []
    last = list(segments(whole))[-1]
    make_proof(whole, [last.before.seq + 2], last_signed(whole), (), read.append)
    assert read == [last.number]


def test_every_older_tree_is_proved(whole: Path) -> None:
    data, said = bytes_of(whole), last_signed(whole).checkpoint
    older = tuple(OlderSize(size) for size in range(1, said.size + 1))
    proof = proof_of(whole, older=older)
    assert not proof.records
    for one in proof.grown:
        assert bytes.fromhex(one.root) == growing.root(data[: one.size])
        assert [bytes.fromhex(text) for text in one.hashes] == list(
            growing.consistency(one.size, data[: said.size])
        )
    found = verify_proof("p", proof, table_key(whole))
    assert [size for size, _, _ in found.grown] == [one.size for one in older]


@given(data=st.data())
def test_random_proofs_verify(data: st.DataObject, whole: Path) -> None:
    size = last_signed(whole).checkpoint.size
    some = st.sets(st.integers(1, size), max_size=6)
    seqs, sizes = data.draw(some), data.draw(some)
    if not seqs | sizes:
        return
    proof = proof_of(whole, *seqs, older=tuple(map(OlderSize, sorted(sizes))))
    found = verify_proof("p", decode_proof("p", encode_proof(proof)), table_key(whole))
    assert [one.seq for one in found.records] == sorted(seqs)
    assert found.checkpoint.root == root_of(whole, size)


def test_a_round_is_proved_with_all_its_records(whole: Path) -> None:
    signed_ = last_signed(whole)
    seqs, unsigned = seqs_of_round(whole, 5, signed_)
    assert (seqs, unsigned) == ([one.seq for one in of_round(whole, 5)], 0)
    assert len(seqs) >= 6
    found = verify_proof("p", make_proof(whole, seqs, signed_), table_key(whole))
    assert {one.round for one in found.records} == {5}


def test_the_current_round_is_proved_up_to_the_checkpoint(place: Path) -> None:
    with closing(begun(place)) as log:
        play(log, 1, 2)
        log.write([note("later", round=2), note("next", round=3)])
        signed_ = last_signed(place)
        seqs, unsigned = seqs_of_round(place, 2, signed_)
        assert unsigned == 1
        assert max(seqs) == signed_.checkpoint.size
        with pytest.raises(CannotProve, match="nothing of round 3 is signed"):
            seqs_of_round(place, 3, signed_)
        with pytest.raises(CannotProve, match="there is no round 4"):
            seqs_of_round(place, 4, signed_)
        with pytest.raises(CannotProve, match="not over record"):
            make_proof(place, [signed_.checkpoint.size + 1], signed_)


@pytest.mark.parametrize(("seqs", "sizes"), [([0], []), ([-3], []), ([1], [0]), ([], [9999])])
def test_missing_records_are_not_proved(seqs: list[int], sizes: list[int], whole: Path) -> None:
    with pytest.raises(CannotProve, match="allowed: 1 to "):
        make_proof(whole, seqs, last_signed(whole), [OlderSize(size) for size in sizes])


def test_the_last_checkpoint_may_be_in_an_earlier_segment(place: Path) -> None:
    with closing(begun(place, size=8192)) as log:
        play(log, 1, 1)
        said = last_signed(place)
        while len(list(segments(place))) == 1:
            log.write([note("more", 200)])
        assert last_signed(place) == said


def test_an_older_checkpoint_is_accepted(tmp_path: Path) -> None:
    record = played(tmp_path / "record", 3)
    old = last_signed(record)
    made = seen_by(record, tmp_path / "archive")
    grow(record, count=40)
    found = signed_as(record, "w.note", made.note.encode())
    assert (found.checkpoint, found.seq, found.certificate) == (
        old.checkpoint,
        old.seq,
        old.certificate,
    )
    seen = verify_proof("p", make_proof(record, [3], found), table_key(record), WITNESS.cosigner)
    assert (seen.witnessed, seen.witnessed_size) == (NOW, made.size)
    proof = make_proof(record, [], last_signed(record), [OlderSize(made.size, found)])
    seen = verify_proof("p", proof, table_key(record), WITNESS.cosigner)
    assert seen.grown == ((made.size, made.root, True),)
    assert (seen.witnessed, seen.witnessed_size) == (NOW, made.size)
    with pytest.raises(ProofProblem, match="has countersigned none of its checkpoints"):
        verify_proof("p", proof, table_key(record), STRANGER.cosigner)


def test_a_foreign_checkpoint_is_rejected(whole: Path, tmp_path: Path) -> None:
    said = last_signed(whole).checkpoint
    boot = SigningKey(said.origin, TABLE_KEY)

    def noted(size: int, root: bytes, origin: str = said.origin) -> bytes:
        text = Checkpoint(origin, size, root).text()
        return format_note(text, boot.sign(text)).encode()

    for note_, words in (
        (noted(said.size, said.root), "is not signed by the table"),
        (noted(said.size, said.root[::-1]), "has no such checkpoint"),
        (noted(10**15, said.root), "has no such checkpoint"),
        (noted(9, said.root, "holecard/other/0123456789abcdef"), "is a checkpoint of holecard/ot"),
        (b"nothing", "is no checkpoint"),
    ):
        with pytest.raises(CannotProve, match=words):
            signed_as(whole, "f", note_)


def test_a_damaged_record_is_not_proved(whole: Path, tmp_path: Path) -> None:
    said = last_signed(whole)
    copy = shutil.copytree(whole, tmp_path / "copy")
    for number in [one.number for one in segments(copy)][1:]:
        file = segment_file(copy, number)
        before = file.read_bytes()
        for at in range(30, next(segments(copy, number)).end, 997):
            data = bytearray(before)
            data[at] ^= 1
            file.write_bytes(data)
            with pytest.raises(RecordProblem):
                make_proof(copy, [5], said)
        file.write_bytes(before)


def test_a_forged_snapshot_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = played(tmp_path / "record")
    last = list(segments(record))[-1]
    lie = ("00" * 32, *last.snapshot.frontier[1:])
    false = last._replace(snapshot=msgspec.structs.replace(last.snapshot, frontier=lie))
    monkeypatch.setattr("controller.audit.proofs.segments", lambda place, start: iter([false]))
    with pytest.raises(RecordDamaged, match="have another root than is signed"):
        make_proof(record, [last.before.seq + 1], last_signed(record))


def test_an_unknown_signature_is_rejected(whole: Path) -> None:
    stranger = signing_key(f"{origin_of(whole)}/table", "stranger").verifier
    with pytest.raises(BadSignature, match="as the table's key, not"):
        last_signed(whole, stranger)
    assert last_signed(whole, table_key(whole)) == last_signed(whole)


def test_a_long_record_is_proved_in_constant_memory(place: Path) -> None:
    with closing(begun(place, size=256 * 1024)) as log:
        for turn in range(60):
            log.write([note(f"{turn} {at}", 400, round=turn) for at in range(60)])
    signed_ = last_signed(place)
    assert len(list(segments(place))) > 8
    tracemalloc.start()
    TreeHashes(place, [2], signed_).gather()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3 * 256 * 1024 + 2**20


# --- a record that its table writes meanwhile -------------------------------------------------


TIMES = 12
MAX_SIZE = 1500
"""Batches of about six records each."""


@contextmanager
def being_written(place: Path) -> Iterator[Log]:
    """Append notes to small segments until the readers are done."""
    log, enough = begun(place, size=32 * 1024), Event()

    def write() -> None:
        for turn in range(1, MAX_SIZE):
            if enough.is_set():
                return
            for at in range(turn % 4 + 1):
                log.write([note(f"{turn} {at}", 40 * at, round=turn)] * (turn % 3 + 1))
            log.sign()

    writer = Thread(target=write, name="table")
    writer.start()
    try:
        yield log
    finally:
        enough.set()
        writer.join()
        log.close()


def test_a_witness_cosigns_a_growing_record(tmp_path: Path) -> None:
    record, archive = tmp_path / "record", tmp_path / "archive"
    seen: list[CosignedNote] = []
    with being_written(record):
        while len(seen) < TIMES or seen[-1].size == seen[0].size:
            seen.append(seen_by(record, archive))
    for made in seen:
        assert made.root == root_of(record, made.size)
    assert [made.before for made in seen[1:]] == [made.size for made in seen[:-1]]
    assert seen[-1].size > seen[0].size


def test_proofs_are_made_of_a_growing_record(place: Path) -> None:
    with being_written(place):
        for _ in range(TIMES):
            signed = last_signed(place)
            proof = make_proof(place, [2, signed.checkpoint.size], signed)
            assert verify_proof("p", proof, table_key(place)).checkpoint == signed.checkpoint


def test_cases_are_exported_from_a_growing_record(tmp_path: Path, place: Path) -> None:
    with being_written(place):
        cases = [export_case(place, tmp_path / f"case-{at}", Selection()) for at in range(TIMES)]
    for case in cases:
        assert case.manifest.remarks == ()
        assert check_case(case.out).right
    for case in (cases[0], cases[-1]):
        ran = subprocess.run(
            [sys.executable, "-I", VERIFIER, "record"],
            cwd=case.out, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout
