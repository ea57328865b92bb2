"""Verifier and signing keys: published examples, parsing, secrecy of private keys."""

from __future__ import annotations

import pickle
from base64 import b64decode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.format.notes import (
    Checkpoint,
    KeyKind,
    NoteProblem,
    SigningKey,
    VerifiedSignature,
    VerifierKey,
    format_note,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from tests.support.audit.tools.signers import close

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
    assert str(key) == SPEC_KEY
    assert key.key_id.hex() == "530d903a"


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
    secret = bytes(range(32))
    key = SigningKey("bj-3", Ed25519PrivateKey.from_private_bytes(secret))
    assert repr(key) == str(key) == f"{key}" == "SigningKey(bj-3)"
    assert repr(key.verifier) == f"VerifierKey(bj-3+{key.verifier.key_id.hex()}, ED25519)"
    assert not hasattr(key, "__dict__")
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(key)
