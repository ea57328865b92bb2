"""Checkpoints, cosignatures and boot certificates: strict parsing and verification."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.format.notes import (
    Certificate,
    Checkpoint,
    NoteProblem,
    Signature,
    SignedNote,
    SigningKey,
    VerifiedSignature,
    VerifierKey,
    certificate,
    format_note,
    parse_checkpoint,
    parse_note,
    read_certificate,
    verify_note,
)
from tests.support.audit.tools.signers import (
    BOOT,
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
    close,
    names,
    signing_key,
)

ROOT = TEXT.splitlines()[2]


@given(names, st.integers(0, (1 << 63) - 1), st.binary(min_size=32, max_size=32))
def test_a_checkpoint_round_trips(origin: str, size: int, root: bytes) -> None:
    checkpoint = Checkpoint(origin, size, root)
    assert parse_checkpoint(checkpoint.text()) == checkpoint


@given(st.text() | close | st.builds("{}\n{}\n{}\n".format, st.text(), st.text(), st.text()))
def test_any_input_is_a_checkpoint_or_a_note_problem(text: str) -> None:
    try:
        checkpoint = parse_checkpoint(text)
    except NoteProblem:
        return
    assert checkpoint.text() == text


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"\n1\n{ROOT}\n", "a checkpoint without an origin"),
        (f"{ORIGIN}\n01\n{ROOT}\n", "no number: '01'; allowed: 0 to 9223372036854775807, no lead"),
        (f"{ORIGIN}\n00\n{ROOT}\n", "no number: '00'"),
        (f"{ORIGIN}\n-1\n{ROOT}\n", "no number: '-1'"),
        (f"{ORIGIN}\n+1\n{ROOT}\n", "no number: '+1'"),
        (f"{ORIGIN}\n1_0\n{ROOT}\n", "no number: '1_0'"),
        (f"{ORIGIN}\n 1\n{ROOT}\n", "no number: ' 1'"),
        (f"{ORIGIN}\n\u0661\n{ROOT}\n", r"no number: '\u0661'"),
        (f"{ORIGIN}\n\n{ROOT}\n", "no number: ''"),
        (f"{ORIGIN}\n9223372036854775808\n{ROOT}\n", "no number: '9223372036854775808'"),
        (f"{ORIGIN}\n{'9' * 5000}\n{ROOT}\n", f"no number: '{'9' * 64}...'; allowed: "),
        (f"{ORIGIN}\n1\n{ROOT[:-4]}\n", "base64 of 30 bytes; allowed: 32"),
        (f"{ORIGIN}\n1\n{ROOT[:-1]}\n", "no base64: "),
        (f"{ORIGIN}\n1\n\n", "no base64 as it is to be written: ''"),
        (f"{ORIGIN}\n1\nAAAA{ROOT}\n", "base64 of 35 bytes; allowed: 32"),
        (f"{ORIGIN}\n1\n{ROOT}\nextension\n", "a checkpoint of 4 lines; allowed: origin, size,"),
        (f"{ORIGIN}\n1\n{ROOT}\n\n", "a checkpoint of 4 lines; allowed: origin, size, root"),
        (f"{ORIGIN}\n1\n", "a checkpoint of 2 lines; allowed: origin, size, root"),
        (f"{ORIGIN}\n1\n{ROOT}", "a text that does not end with a newline"),
        ("", "a text that does not end with a newline"),
    ],
)
def test_an_invalid_checkpoint_is_rejected_with_a_reason(text: str, what: str) -> None:
    with pytest.raises(NoteProblem) as problem:
        parse_checkpoint(text)
    assert problem.value.what.startswith(what)


@pytest.mark.parametrize(
    "checkpoint",
    [
        Checkpoint("", 1, CHECKPOINT.root),
        Checkpoint("two\nlines", 1, CHECKPOINT.root),
        Checkpoint(ORIGIN, -1, CHECKPOINT.root),
        Checkpoint(ORIGIN, 1 << 63, CHECKPOINT.root),
        Checkpoint(ORIGIN, 1, CHECKPOINT.root[:31]),
    ],
)
def test_an_invalid_checkpoint_has_no_text(checkpoint: Checkpoint) -> None:
    with pytest.raises(NoteProblem):
        checkpoint.text()


def test_a_cosignature_has_a_time() -> None:
    note = parse_note(WITNESSED)
    both = verify_note(note, [WITNESS.cosigner, BOOT_KEY.verifier])
    assert both == (
        VerifiedSignature(BOOT_KEY.verifier),
        VerifiedSignature(WITNESS.cosigner, SECONDS),
    )
    later = (SECONDS + 1).to_bytes(8) + note.signatures[1].bytes[8:]
    changed = Signature(WITNESS.name, WITNESS.cosigner.key_id, later)
    with pytest.raises(NoteProblem, match=f"^the signature of {WITNESS.name} is not one of"):
        verify_note(SignedNote(TEXT, (note.signatures[0], changed)), [WITNESS.cosigner])


@pytest.mark.parametrize("seconds", [0, 1, (1 << 63) - 1])
def test_every_valid_time_round_trips(seconds: int) -> None:
    assert verify_note(
        parse_note(format_note(TEXT, WITNESS.cosign(TEXT, seconds))), [WITNESS.cosigner]
    ) == (VerifiedSignature(WITNESS.cosigner, seconds),)


@pytest.mark.parametrize("seconds", [-1, 1 << 63, 1 << 64])
def test_an_invalid_time_is_rejected(seconds: int) -> None:
    with pytest.raises(NoteProblem, match=rf"^a cosignature at second {seconds}; allowed: 0 to "):
        WITNESS.cosign(TEXT, seconds)
    if 0 < seconds < 1 << 64:
        late = Signature(WITNESS.name, WITNESS.cosigner.key_id, seconds.to_bytes(8) + bytes(64))
        with pytest.raises(NoteProblem, match=rf"^a cosignature at second {seconds}; allowed: "):
            verify_note(SignedNote(TEXT, (late,)), [WITNESS.cosigner])


def test_signatures_and_cosignatures_are_distinguished() -> None:
    plain, cosigned = WITNESS.sign(TEXT), WITNESS.cosign(TEXT, SECONDS)
    assert plain.key_id != cosigned.key_id
    for signature, key in (
        (Signature(WITNESS.name, plain.key_id, cosigned.bytes[8:]), WITNESS.verifier),
        (Signature(WITNESS.name, plain.key_id, cosigned.bytes), WITNESS.verifier),
        (Signature(WITNESS.name, cosigned.key_id, bytes(8) + plain.bytes), WITNESS.cosigner),
        (Signature(WITNESS.name, cosigned.key_id, plain.bytes), WITNESS.cosigner),
    ):
        with pytest.raises(NoteProblem, match=r"^(the signature of|a cosignature at second) "):
            verify_note(SignedNote(TEXT, (signature,)), [key])


def test_sign_refuses_the_text_of_a_cosignature() -> None:
    with pytest.raises(NoteProblem, match=r"^a text to be signed that begins with 'cosignature/v1"):
        WITNESS.sign(f"cosignature/v1\ntime {SECONDS}\n{TEXT}")


@pytest.mark.parametrize("text", ["words\n", f"{TEXT}more\n", TEXT[:-1], ""])
def test_only_checkpoints_are_cosigned(text: str) -> None:
    with pytest.raises(NoteProblem):
        WITNESS.cosign(text, SECONDS)


def test_every_flipped_bit_of_a_cosigned_note_is_detected() -> None:
    data = WITNESSED.encode()
    known = [BOOT_KEY.verifier, WITNESS.cosigner]
    assert len(verify_note(parse_note(data), known)) == 2
    for at in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        try:
            found = verify_note(parse_note(bytes(flipped)), known)
        except NoteProblem:
            continue
        assert len(found) == 1


KEY = BOOT_KEY.verifier.key
LINES = CERTIFICATE.splitlines()[:5]


def with_line(at: int, *lines: str) -> str:
    """A note signed by the table's key in which a line is replaced."""
    text = "".join(f"{line}\n" for line in (*LINES[:at], *lines, *LINES[at + 1 :]))
    return format_note(text, TABLE_KEY.sign(text))


def test_a_certificate_round_trips() -> None:
    found = read_certificate(CERTIFICATE, TABLE_KEY.verifier)
    assert found == Certificate(ORIGIN, BOOT, KEY, 7)
    assert verify_note(parse_note(SIGNED), [found.verifier]) == (
        VerifiedSignature(BOOT_KEY.verifier),
    )


def test_the_encoding_is_that_of_the_format() -> None:
    encoded = str(BOOT_KEY.verifier).rpartition("+")[2]
    assert CERTIFICATE.split("\n")[:6] == ["holecard boot key 1", ORIGIN, BOOT, LINES[3], "7", ""]
    assert len(LINES[3]) == 44
    assert len(encoded) == 44
    name, _, _ = CERTIFICATE.partition("\n— ")[2].partition(" ")
    assert name == f"{ORIGIN}/table"


def test_every_flipped_bit_is_detected() -> None:
    data = CERTIFICATE.encode()
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
        read_certificate(CERTIFICATE, table.verifier)
    if table.name != TABLE_KEY.name:
        with pytest.raises(NoteProblem, match=rf"certifies nothing of '{ORIGIN}'$"):
            certificate(ORIGIN, BOOT, KEY, 7, table)
        text = parse_note(CERTIFICATE).text
        with pytest.raises(NoteProblem, match=rf"certifies nothing of '{ORIGIN}'$"):
            read_certificate(format_note(text, table.sign(text)), table.verifier)


def test_a_cosignature_is_not_accepted_as_a_certificate() -> None:
    with pytest.raises(NoteProblem, match=r"^a note that none of the known keys has signed$"):
        read_certificate(CERTIFICATE, TABLE_KEY.cosigner)
    key = Ed25519PrivateKey.generate()
    table = SigningKey(TABLE_KEY.name, key).cosigner
    text = parse_note(CERTIFICATE).text
    signature = bytes(8) + key.sign(b"cosignature/v1\ntime 0\n" + text.encode())
    note = format_note(text, Signature(table.name, table.key_id, signature))
    assert verify_note(parse_note(note), [table]) == (VerifiedSignature(table, 0),)
    with pytest.raises(NoteProblem, match=rf"COSIGNATURE\) certifies nothing of '{ORIGIN}'$"):
        read_certificate(note, table)


def test_unknown_signatures_are_ignored() -> None:
    text = parse_note(CERTIFICATE).text
    assert read_certificate(
        format_note(text, WITNESS.sign(text), TABLE_KEY.sign(text)), TABLE_KEY.verifier
    ) == read_certificate(CERTIFICATE, TABLE_KEY.verifier)


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
    assert read_certificate(
        certificate(origin, boot, key, seq, table), table.verifier
    ) == Certificate(origin, boot, key, seq)


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
