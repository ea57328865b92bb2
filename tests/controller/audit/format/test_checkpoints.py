"""Checkpoints and cosignatures: strict parsing, and the time of a cosignature."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.format.notes import (
    Checkpoint,
    NoteProblem,
    Signature,
    SignedNote,
    VerifiedSignature,
    format_note,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from tests.support.audit.tools.signers import (
    BOOT_KEY,
    CHECKPOINT,
    ORIGIN,
    SECONDS,
    TEXT,
    WITNESS,
    WITNESSED,
    close,
    names,
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
    note = parse_note(format_note(TEXT, WITNESS.cosign(TEXT, seconds)))
    assert verify_note(note, [WITNESS.cosigner]) == (VerifiedSignature(WITNESS.cosigner, seconds),)


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
    crossed = (
        (Signature(WITNESS.name, plain.key_id, cosigned.bytes[8:]), WITNESS.verifier),
        (Signature(WITNESS.name, plain.key_id, cosigned.bytes), WITNESS.verifier),
        (Signature(WITNESS.name, cosigned.key_id, bytes(8) + plain.bytes), WITNESS.cosigner),
        (Signature(WITNESS.name, cosigned.key_id, plain.bytes), WITNESS.cosigner),
    )
    for signature, key in crossed:
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
