"""Proof files: verification, and rejection of altered ones."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from controller.audit.format.merkle import leaf_hash
from controller.audit.format.notes import Checkpoint, certificate, format_note
from controller.audit.proofs import (
    OlderSize,
    Proof,
    ProofProblem,
    ProvedRecord,
    decode_proof,
    encode_proof,
    last_signed,
    make_proof,
    verify_proof,
)
from controller.audit.read.reader import records
from tests.support.audit.leaves import Leaves
from tests.support.audit.tools.outside import bytes_of, origin_of, table_key, whole
from tests.support.audit.tools.signers import BOOT, ORIGIN, TABLE_KEY, signing_key

__all__ = ["whole"]

Json = dict[str, Any]


@pytest.fixture(scope="module")
def proof(whole: Path) -> Proof:
    return make_proof(whole, [3, 30], last_signed(whole), [OlderSize(17), OlderSize(64)])


def no_more(found: Json) -> None:
    found["records"], found["grown"] = [], []


def other_seq(found: Json) -> None:
    found["records"][0]["seq"] += 1


def other_record(found: Json) -> None:
    text = found["records"][0]["record"]
    found["records"][0]["record"] = text.replace('"round":0', '"round":1')


def swapped(found: Json) -> None:
    one, two = found["records"]
    one["record"], two["record"] = two["record"], one["record"]


def one_hash_less(found: Json) -> None:
    found["records"][1]["hashes"].pop()


def one_hash_more(found: Json) -> None:
    found["records"][1]["hashes"].append("00" * 32)


def no_hash(found: Json) -> None:
    found["records"][1]["hashes"][0] = "00" * 31 + "0G"


def short_hash(found: Json) -> None:
    found["grown"][1]["hashes"][0] = "00"


def other_size(found: Json) -> None:
    found["grown"][0]["size"] = 18


def other_root(found: Json) -> None:
    found["grown"][0]["root"] = "11" * 32


def other_origin(found: Json) -> None:
    found["origin"] = "holecard/mega-1/0123456789abcdef"


def false_signature(found: Json) -> None:
    found["checkpoint"] = found["checkpoint"][:-8] + "AAAAAA=\n"


def false_certificate(found: Json) -> None:
    head, _, line = found["certificate"].rpartition("\n\n")
    found["certificate"] = f"{head[:-1]}3\n\n{line}"


def claims_a_checkpoint(found: Json) -> None:
    found["grown"][0]["checkpoint"] = found["checkpoint"]
    found["grown"][0]["certificate"] = found["certificate"]


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (no_more, "holds no record and no older tree"),
        (other_seq, "record 4 is not in the tree"),
        (other_record, "record 3 is not in the tree"),
        (swapped, "record 3 is not in the tree"),
        (one_hash_less, "record 30 is not in the tree"),
        (one_hash_more, "record 30 is not in the tree"),
        (no_hash, "holds a hash that is none"),
        (short_hash, "holds a hash that is none"),
        (other_size, "is not the one of 18, grown"),
        (other_root, "is not the one of 17, grown"),
        (other_origin, "is no key of the table"),
        (false_signature, "base64|is not one of this text"),
        (false_certificate, "is not one of this text"),
        (claims_a_checkpoint, "for a tree of 17"),
    ],
)
def test_an_altered_proof_is_rejected(
    harm: Callable[[Json], None], words: str, proof: Proof, whole: Path
) -> None:
    found: Json = json.loads(encode_proof(proof))
    harm(found)
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
    assert len(verify_proof("p", by_strangers([first, second]), TABLE_KEY.verifier).records) == 2
    with pytest.raises(ProofProblem, match="record 1 says that it is 2"):
        verify_proof("p", by_strangers([second, second]), TABLE_KEY.verifier)
    with pytest.raises(ProofProblem, match="record 1 cannot be read"):
        verify_proof("p", by_strangers(["{}"]), TABLE_KEY.verifier)


def test_another_tables_proof_is_rejected(whole: Path) -> None:
    (first, *_) = (data.decode() for data in bytes_of(whole))
    theirs = by_strangers([first])
    ours = msgspec.structs.replace(theirs, origin=origin_of(whole))
    for one in (theirs, ours):
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
    boot_key = base64.b64decode(by_hand(found["certificate"], public)[3])
    origin, size, root = by_hand(found["checkpoint"], boot_key)
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
    signature = base64.b64decode(line.split(" ")[2])[4:]
    Ed25519PublicKey.from_public_bytes(public).verify(signature, f"{text}\n".encode())
    return text.split("\n")


def test_a_proof_contains_the_records_own_notes(proof: Proof, whole: Path) -> None:
    notes = {
        msgspec.json.decode(one.data)["note"]
        for _, one in records(whole)
        if one.kind in ("checkpoint", "certificate")
    }
    assert {proof.checkpoint, proof.certificate} <= notes
