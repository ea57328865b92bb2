"""Certificates of boot keys: encoding, parsing, rejection of anything else."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.format.notes import (
    Certificate,
    NoteProblem,
    Signature,
    SigningKey,
    VerifiedSignature,
    VerifierKey,
    certificate,
    format_note,
    parse_note,
    read_certificate,
    verify_note,
)
from tests.support.audit.certificate_note import KEY, NOTE
from tests.support.audit.tools.signers import (
    BOOT,
    BOOT_KEY,
    ORIGIN,
    SIGNED,
    STRANGER,
    TABLE_KEY,
    TEXT,
    WITNESS,
    signing_key,
)

LINES = NOTE.splitlines()[:5]


def with_line(at: int, *lines: str) -> str:
    """A note signed by the table's key in which a line is replaced."""
    text = "".join(f"{line}\n" for line in (*LINES[:at], *lines, *LINES[at + 1 :]))
    return format_note(text, TABLE_KEY.sign(text))


def test_a_certificate_round_trips() -> None:
    found = read_certificate(NOTE, TABLE_KEY.verifier)
    assert found == Certificate(ORIGIN, BOOT, KEY, 7)
    assert verify_note(parse_note(SIGNED), [found.verifier]) == (
        VerifiedSignature(BOOT_KEY.verifier),
    )


def test_the_encoding_is_that_of_the_format() -> None:
    encoded = str(BOOT_KEY.verifier).rpartition("+")[2]
    assert NOTE.split("\n")[:6] == ["holecard boot key 1", ORIGIN, BOOT, LINES[3], "7", ""]
    assert len(LINES[3]) == 44
    assert len(encoded) == 44
    name, _, _ = NOTE.partition("\n— ")[2].partition(" ")
    assert name == f"{ORIGIN}/table"


def test_every_flipped_bit_is_detected() -> None:
    data = NOTE.encode()
    for at in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        with pytest.raises(NoteProblem):
            read_certificate(bytes(flipped).decode("utf-8", "surrogateescape"), TABLE_KEY.verifier)


@pytest.mark.parametrize(
    ("note", "what"),
    [
        (with_line(0, "holecard boot key 2"), "no certificate: 'holecard boot key 2"),
        (with_line(0), "no certificate: "),
        (with_line(4, "7", "more"), "no certificate: "),
        (with_line(4, "7", ""), "no certificate: "),
        (with_line(1, ""), "no name of a key: ''"),
        (with_line(1, "two words"), "no name of a key: 'two words'"),
        (with_line(1, "holecard/bj-4/00112233445566ff"), "VerifierKey(holecard/bj-3/"),
        (with_line(2, BOOT.upper()), "no boot: '8899AABBCCDDEEFF'; allowed: 16 hexadecimal"),
        (with_line(2, BOOT[1:]), "no boot: '899aabbccddeeff'"),
        (with_line(3, LINES[3][4:]), "base64 of 29 bytes; allowed: 32"),
        (with_line(3, LINES[3][:-1]), "no base64: "),
        (with_line(4, "07"), "no number: '07'"),
        (with_line(4, "0"), "a boot that record 0 opened; allowed: 1 or more"),
        (with_line(4, "-7"), "no number: '-7'"),
        (SIGNED, "a note that none of the known keys has signed"),
        (format_note(TEXT, TABLE_KEY.sign(TEXT)), f"no certificate: '{ORIGIN}"),
        ("", "a note without an empty line between its text and its signatures"),
    ],
)
def test_an_invalid_certificate_is_rejected_with_a_reason(note: str, what: str) -> None:
    with pytest.raises(NoteProblem) as problem:
        read_certificate(note, TABLE_KEY.verifier)
    assert problem.value.what.startswith(what)


@pytest.mark.parametrize(
    "table",
    [
        STRANGER,
        signing_key(TABLE_KEY.name, "another"),
        signing_key(ORIGIN),
        signing_key(f"{ORIGIN}/table/table"),
        signing_key("holecard/bj-4/00112233445566ff/table"),
    ],
)
def test_only_the_tables_key_is_accepted(table: SigningKey) -> None:
    with pytest.raises(NoteProblem, match=r"^a note that none of the known keys has signed$"):
        read_certificate(NOTE, table.verifier)
    if table.name != TABLE_KEY.name:
        with pytest.raises(NoteProblem, match=rf"certifies nothing of '{ORIGIN}'$"):
            certificate(ORIGIN, BOOT, KEY, 7, table)
        text = parse_note(NOTE).text
        with pytest.raises(NoteProblem, match=rf"certifies nothing of '{ORIGIN}'$"):
            read_certificate(format_note(text, table.sign(text)), table.verifier)


def test_a_cosignature_is_not_accepted_as_a_certificate() -> None:
    with pytest.raises(NoteProblem, match=r"^a note that none of the known keys has signed$"):
        read_certificate(NOTE, TABLE_KEY.cosigner)
    key = Ed25519PrivateKey.generate()
    table = SigningKey(TABLE_KEY.name, key).cosigner
    text = parse_note(NOTE).text
    signature = bytes(8) + key.sign(b"cosignature/v1\ntime 0\n" + text.encode())
    note = format_note(text, Signature(table.name, table.key_id, signature))
    assert verify_note(parse_note(note), [table]) == (VerifiedSignature(table, 0),)
    with pytest.raises(NoteProblem, match=rf"COSIGNATURE\) certifies nothing of '{ORIGIN}'$"):
        read_certificate(note, table)


def test_unknown_signatures_are_ignored() -> None:
    text = parse_note(NOTE).text
    both = format_note(text, WITNESS.sign(text), TABLE_KEY.sign(text))
    assert read_certificate(both, TABLE_KEY.verifier) == read_certificate(NOTE, TABLE_KEY.verifier)


@pytest.mark.parametrize(
    ("origin", "boot", "key", "seq"),
    [
        ("", BOOT, KEY, 7),
        ("two\nlines", BOOT, KEY, 7),
        (ORIGIN, "", KEY, 7),
        (ORIGIN, BOOT + "0", KEY, 7),
        (ORIGIN, BOOT, KEY[:31], 7),
        (ORIGIN, BOOT, KEY + b"\0", 7),
        (ORIGIN, BOOT, KEY, 0),
        (ORIGIN, BOOT, KEY, -1),
    ],
)
def test_an_invalid_certificate_is_not_created(
    origin: str, boot: str, key: bytes, seq: int
) -> None:
    with pytest.raises(NoteProblem):
        certificate(origin, boot, key, seq, signing_key(f"{origin}/table".replace("\n", "")))


@given(
    st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="+"), min_size=1),
    st.text("0123456789abcdef", min_size=16, max_size=16),
    st.binary(min_size=32, max_size=32),
    st.integers(1, (1 << 63) - 1),
)
def test_certificates_of_random_boots_round_trip(
    origin: str, boot: str, key: bytes, seq: int
) -> None:
    table = signing_key(f"{origin}/table")
    note = certificate(origin, boot, key, seq, table)
    assert read_certificate(note, table.verifier) == Certificate(origin, boot, key, seq)


@given(st.text() | st.lists(st.text(max_size=20), max_size=6).map("\n".join))
def test_any_input_is_a_certificate_or_a_note_problem(text: str) -> None:
    with pytest.raises(NoteProblem):
        read_certificate(text, TABLE_KEY.verifier)
    try:
        note = format_note(f"{text}\n", TABLE_KEY.sign(f"{text}\n"))
    except NoteProblem:
        return
    with pytest.raises(NoteProblem):
        read_certificate(note, VerifierKey.parse(str(TABLE_KEY.verifier)))
