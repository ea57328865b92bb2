"""Signed notes and keys: encoding, verification, published examples, altered notes."""

import pickle
from base64 import b64decode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.format.notes import (
    MAX_LINES,
    MAX_SIGNATURES,
    MAX_SIZE,
    Checkpoint,
    KeyKind,
    NoteProblem,
    Signature,
    SignedNote,
    SigningKey,
    VerifiedSignature,
    VerifierKey,
    format_note,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from tests.support.audit.tools.signers import (
    BOOT_KEY,
    ORIGIN,
    SECONDS,
    SIGNED,
    STRANGER,
    TEXT,
    WITNESS,
    WITNESSED,
    close,
    names,
    signatures,
    signing_key,
    texts,
)


def line(signature: Signature) -> str:
    return format_note("x\n", signature).removeprefix("x\n\n")


def test_the_encoding_is_that_of_the_format() -> None:
    head, dash, rest = SIGNED.partition("\n— ")
    assert head == f"{ORIGIN}\n20852\n{TEXT.splitlines()[2]}\n"
    name, _, encoded = rest.partition(" ")
    assert (dash, name) == ("\n— ", ORIGIN)
    assert (b64decode(encoded)[:4], len(b64decode(encoded))) == (BOOT_KEY.verifier.key_id, 68)
    assert encoded.endswith("=\n")


@given(texts, st.lists(signatures, min_size=1, max_size=4))
def test_a_note_round_trips(text: str, some: list[Signature]) -> None:
    note = format_note(text, *some)
    assert parse_note(note) == parse_note(note.encode()) == SignedNote(text, tuple(some))


@given(texts, names)
def test_a_signed_note_is_verified(text: str, name: str) -> None:
    key = signing_key(name)
    note = parse_note(format_note(text, STRANGER.sign(text), key.sign(text)))
    assert verify_note(note, [WITNESS.cosigner, key.verifier]) == (VerifiedSignature(key.verifier),)
    assert VerifierKey.parse(str(key.verifier)) == key.verifier
    assert VerifierKey.parse(str(key.cosigner)) == key.cosigner
    with pytest.raises(NoteProblem, match=r" is not one of this text$"):
        verify_note(SignedNote(f"x{text}", note.signatures), [key.verifier])


def test_unknown_keys_are_ignored() -> None:
    note = parse_note(SIGNED)
    same_name = signing_key(ORIGIN, "another").verifier
    same_key = VerifierKey("another-name", BOOT_KEY.verifier.key)
    for known in ([], [STRANGER.verifier], [same_name], [same_key], [BOOT_KEY.cosigner]):
        with pytest.raises(NoteProblem, match=r"^a note that none of the known keys has signed$"):
            verify_note(note, known)
        found = verify_note(note, [*known, BOOT_KEY.verifier])
        assert found == (VerifiedSignature(BOOT_KEY.verifier),)


def test_one_wrong_signature_of_a_known_key_is_an_error() -> None:
    right = BOOT_KEY.sign(TEXT)
    wrong = Signature(right.name, right.key_id, right.bytes[::-1])
    for some in ((wrong,), (right, wrong), (wrong, right), (right, WITNESS.sign(TEXT), wrong)):
        note = parse_note(format_note(TEXT, *some))
        with pytest.raises(NoteProblem, match=f"^the signature of {ORIGIN} is not one of this"):
            verify_note(note, [WITNESS.verifier, BOOT_KEY.verifier])
    assert verify_note(
        parse_note(format_note(TEXT, WITNESS.sign(TEXT), wrong)), [WITNESS.verifier]
    ) == (VerifiedSignature(WITNESS.verifier),)


@pytest.mark.parametrize("size", [1, 7, 8, 63, 65, 71, 73, 200])
def test_a_signature_of_wrong_length_is_rejected(size: int) -> None:
    for key in (BOOT_KEY.verifier, BOOT_KEY.cosigner):
        note = SignedNote(TEXT, (Signature(ORIGIN, key.key_id, bytes(size)),))
        with pytest.raises(NoteProblem, match=r" is not one of this text$"):
            verify_note(note, [key])


def test_a_key_is_returned_once() -> None:
    two = format_note(TEXT, WITNESS.cosign(TEXT, SECONDS), WITNESS.cosign(TEXT, SECONDS + 9))
    assert verify_note(
        parse_note(two), [WITNESS.cosigner, VerifierKey.parse(str(WITNESS.cosigner))]
    ) == (VerifiedSignature(WITNESS.cosigner, SECONDS),)


def test_two_keys_with_the_same_name_and_id_are_rejected() -> None:
    one, other = (VerifierKey("witness.example", n.to_bytes(32)) for n in (30424, 42834))
    assert one.key_id == other.key_id
    with pytest.raises(NoteProblem, match=r"^two keys with the name and id of VerifierKey\(wit"):
        verify_note(parse_note(SIGNED), [BOOT_KEY.verifier, one, other])


def test_every_flipped_bit_of_a_note_is_detected() -> None:
    data = SIGNED.encode()
    for at in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        with pytest.raises(NoteProblem):
            verify_note(parse_note(bytes(flipped)), [BOOT_KEY.verifier])


def test_every_truncation_is_detected() -> None:
    data = SIGNED.encode()
    for at in range(len(data)):
        for rest in (data[:at], data[at:] if at else b"", data[:at] + data[at + 1 :]):
            with pytest.raises(NoteProblem):
                verify_note(parse_note(rest), [BOOT_KEY.verifier])


@given(st.text() | close | st.binary())
def test_any_input_is_a_note_or_a_note_problem(data: str | bytes) -> None:
    try:
        note = parse_note(data)
    except NoteProblem:
        return
    again = format_note(note.text, *note.signatures)
    assert again == (data if isinstance(data, str) else data.decode())


@given(st.integers(0, len(WITNESSED)), st.integers(0, 40), close | st.text(max_size=3))
def test_any_altered_note_is_a_note_or_a_note_problem(at: int, cut: int, put: str) -> None:
    data = WITNESSED[:at] + put + WITNESSED[at + cut :]
    try:
        note = parse_note(data)
        found = verify_note(note, [BOOT_KEY.verifier, WITNESS.cosigner])
    except NoteProblem:
        return
    assert (format_note(note.text, *note.signatures), note.text) == (data, TEXT)
    assert len(found) == 2 or data != WITNESSED


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("", "a note without an empty line between its text and its signatures"),
        ("words\n", "a note without an empty line between its text and its signatures"),
        ("words\n\n", "a note that does not end with a line of signature"),
        (f"words\n\n{'— key eHh4eHg='}", "a note that does not end with a line of signature"),
        ("words\n\n— key eHh4eHg=\n\n", "a note that does not end with a line of signature"),
        ("words\n\n- key eHh4eHg=\n", "no line of signature: '- key eHh4eHg='"),
        ("words\n\n—key eHh4eHg=\n", r"no line of signature: '\u2014key eHh4eHg='"),
        ("words\n\n—  eHh4eHg=\n", "no name of a key: ''; allowed: no spaces, no +, not empty"),
        (
            "words\n\n— a+b eHh4eHg=\n",
            "no name of a key: 'a+b'; allowed: no spaces, no +, not empty",
        ),
        (
            "words\n\n— a\u2003b eHh4eHg=\n",
            r"no name of a key: 'a\u2003b'; allowed: no spaces, no +, not empty",
        ),
        ("words\n\n— key\n", "no base64 as it is to be written: ''"),
        ("words\n\n— key  eHh4eHg=\n", "no base64: ' eHh4eHg='"),
        ("words\n\n— key eHh4eHg= \n", "no base64: 'eHh4eHg= '"),
        ("words\n\n— key eHh4eHg\n", "no base64: 'eHh4eHg'"),
        ("words\n\n— key eHh4eHg==\n", "no base64: 'eHh4eHg=='"),
        ("words\n\n— key eHh4-Hg=\n", "no base64: 'eHh4-Hg='"),
        ("words\n\n— key ééé=\n", r"no base64: '\xe9\xe9\xe9='"),
        ("words\n\n— key eHh4eHh=\n", "no base64 as it is to be written: 'eHh4eHh='"),
        ("words\n\n— key eHh4eA==\n", "a signature of 'key' that is no more than a key id"),
        (
            "wo\trds\n\n— key eHh4eHg=\n",
            r"a note with the character '\t'; allowed: none but newlines",
        ),
        (
            "words\r\n\n— key eHh4eHg=\n",
            r"a note with the character '\r'; allowed: none but newlines",
        ),
        (
            "wo\0rds\n\n— key eHh4eHg=\n",
            r"a note with the character '\x00'; allowed: none but newlines",
        ),
        ("words\ud800\n\n— key eHh4eHg=\n", "a text that UTF-8 cannot say"),
        (b"words\xff\n\n\xe2\x80\x94 key eHh4eHg=\n", "a note that is not UTF-8"),
    ],
)
def test_an_invalid_note_is_rejected_with_a_reason(data: str | bytes, what: str) -> None:
    with pytest.raises(NoteProblem) as problem:
        parse_note(data)
    assert problem.value.what == str(problem.value) == what


@pytest.mark.parametrize("code", [code for code in range(32) if code != 10])
def test_control_characters_are_rejected(code: int) -> None:
    right = BOOT_KEY.sign("words\n")
    for text in (f"wo{code:c}rds\n", f"{code:c}words\n", f"words\n{code:c}\n"):
        with pytest.raises(NoteProblem, match=r"^a note with the character "):
            BOOT_KEY.sign(text)
        with pytest.raises(NoteProblem, match=r"^a note with the character "):
            format_note(text, right)
    with pytest.raises(NoteProblem, match=r"^a note with the character "):
        parse_note(format_note("words\n", right).replace("wo", f"wo{code:c}"))


def test_the_text_ends_at_the_last_empty_line() -> None:
    forged = f"{SIGNED}\n— key eHh4eHg=\n"
    assert parse_note(forged).text == SIGNED
    with pytest.raises(NoteProblem, match="none of the known keys"):
        verify_note(parse_note(forged), [BOOT_KEY.verifier])
    for text in ("\n", "\n\n", "a\n\n", "\n\na\n\n\nb\n"):
        assert parse_note(format_note(text, BOOT_KEY.sign(text))).text == text


def test_notes_have_size_limits() -> None:
    one = Signature("k", b"abcd", b"e")
    most = format_note("x\n", *[one] * MAX_SIGNATURES)
    assert len(parse_note(most).signatures) == MAX_SIGNATURES
    with pytest.raises(NoteProblem, match=r"^a note with 101 signatures; allowed: 100$"):
        parse_note(most + line(one))
    longest = format_note("x\n" * MAX_LINES, one)
    assert parse_note(longest).text.count("\n") == MAX_LINES
    with pytest.raises(NoteProblem, match=r"^a text of 1001 lines; allowed: 1000$"):
        parse_note(f"x\n{longest}")
    room = MAX_SIZE - len(format_note("\n", one).encode())
    assert len(format_note("x" * room + "\n", one).encode()) == MAX_SIZE
    for text in ("x" * (room + 1), "é" * (room // 2 + 1)):
        with pytest.raises(NoteProblem, match=r"^a note of 1\d{5} bytes; allowed: 131072$"):
            format_note(text + "\n", one)
    with pytest.raises(NoteProblem, match=r"^a note of 131073 or more bytes; allowed: 131072$"):
        parse_note("x" * (MAX_SIZE + 1))


@pytest.mark.parametrize("text", ["", "no newline", "a\rb\n", "\ud800\n", "tab\t\n"])
def test_an_invalid_text_is_not_signed(text: str) -> None:
    for attempt in (BOOT_KEY.sign, lambda text: format_note(text, BOOT_KEY.sign(TEXT))):
        with pytest.raises(NoteProblem):
            attempt(text)


def test_invalid_signatures_are_not_encoded() -> None:
    with pytest.raises(NoteProblem, match=r"^a note that does not end with a line of signature$"):
        format_note(TEXT)
    for wrong in (
        Signature("two words", b"abcd", bytes(64)),
        Signature("key", b"abc", bytes(64)),
        Signature("key", b"abcde", bytes(64)),
        Signature("key", b"abcd", b""),
        Signature("a\n\n— key", b"abcd", bytes(64)),
    ):
        with pytest.raises(NoteProblem):
            format_note(TEXT, BOOT_KEY.sign(TEXT), wrong)


SPEC_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
SPEC_NOTE = (
    "This is an example message.\n"
    "\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKu"
    "wHjG1Yu72IneyaQM=\n"
)
"""The example of C2SP signed-note."""
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_SEED = b64decode("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz")[1:]
GO_TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
GO_NOTE = (
    f"{GO_TEXT}\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6"
    "KE6RyyBwJnAM=\n"
)
"""The example of Go's package note."""
COSIGNED = (
    "example.com/behind-the-sofa\n"
    "20852163\n"
    "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    "\n"
    "— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q"
    "1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
    "— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2o"
    "yin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n"
)
"""The example of C2SP tlog-cosignature, for which no keys are published."""


def test_the_example_of_signed_note() -> None:
    key = VerifierKey.parse(SPEC_KEY)
    note = parse_note(SPEC_NOTE)
    assert verify_note(note, [key]) == (VerifiedSignature(key),)
    assert note.text == "This is an example message.\n"
    assert (str(key), key.key_id.hex()) == (SPEC_KEY, "530d903a")


def test_the_example_of_go() -> None:
    key = SigningKey("PeterNeumann", Ed25519PrivateKey.from_private_bytes(GO_SEED))
    assert str(key.verifier) == GO_KEY
    assert format_note(GO_TEXT, key.sign(GO_TEXT)) == GO_NOTE
    assert verify_note(parse_note(GO_NOTE), [VerifierKey.parse(GO_KEY)])


def test_the_example_of_tlog_cosignature() -> None:
    note = parse_note(COSIGNED)
    root = b64decode("CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=")
    assert parse_checkpoint(note.text) == Checkpoint("example.com/behind-the-sofa", 20852163, root)
    assert [len(one.bytes) for one in note.signatures] == [64, 72]
    assert note.signatures[1].name == "witness.example.com/w1"
    assert int.from_bytes(note.signatures[1].bytes[:8]) == 1679315147


def test_published_witness_keys_are_parsed() -> None:
    for text in (
        "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2",
        "Wit1+4dd489c8+BDd/u4KCwMnyfkbOqopYZJIGSuMxMnjGav6Pjb9W8Y3c",
    ):
        key = VerifierKey.parse(text)
        assert (str(key), key.kind) == (text, KeyKind.COSIGNATURE)


@given(st.text() | close | st.builds("{}+{}+{}".format, st.text(), st.text(), st.text()))
def test_any_input_is_a_key_or_a_note_problem(text: str) -> None:
    try:
        key = VerifierKey.parse(text)
    except NoteProblem:
        return
    assert str(key) == text


@pytest.mark.parametrize("name", ["", "two words", "plus+", "tab\t", "a\u2028b", "\ud800", "nul\0"])
def test_an_invalid_key_name_is_rejected(name: str) -> None:
    with pytest.raises(NoteProblem):
        VerifierKey(name, bytes(32))
    with pytest.raises(NoteProblem):
        SigningKey(name, Ed25519PrivateKey.generate())


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no verifier key: ''; allowed: NAME+8 hexadecimal digits+BASE64"),
        (SPEC_KEY.replace("530d903a", "530D903A"), "no verifier key: 'example.com/foo+530D903A+"),
        (SPEC_KEY.replace("530d903a", "530d903"), "no verifier key: 'example.com/foo+530d903+"),
        (SPEC_KEY.replace("530d903a", "530d903b"), "the key of example.com/foo does not have"),
        (
            SPEC_KEY.replace("foo", "fog"),
            "the key of example.com/fog does not have the id 530d903a",
        ),
        (SPEC_KEY.replace("+Ae", "+Be"), "a verifier key of kind 5; allowed: 1 ED25519, 4 COSIGN"),
        (SPEC_KEY.replace("+Ae", "+Aee"), "no base64: "),
        (SPEC_KEY[:-4], "a key of 29 bytes for example.com/foo; allowed: 32"),
        ("key+12345678+", "no base64 as it is to be written: ''"),
        ("key+12345678+AQ==", "a key of 0 bytes for key; allowed: 32"),
        (SPEC_KEY[11:].replace("/foo", ""), "no name of a key: ''"),
    ],
)
def test_an_invalid_verifier_key_is_rejected_with_a_reason(text: str, what: str) -> None:
    with pytest.raises(NoteProblem) as problem:
        VerifierKey.parse(text)
    assert problem.value.what.startswith(what)


def test_a_private_key_is_never_printed() -> None:
    key = SigningKey("bj-3", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
    assert repr(key) == str(key) == f"{key}" == "SigningKey(bj-3)"
    assert repr(key.verifier) == f"VerifierKey(bj-3+{key.verifier.key_id.hex()}, ED25519)"
    assert not hasattr(key, "__dict__")
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(key)
