"""Hole cards: commitments and seals by FORMAT.md and RFC 9180; nothing prints one."""

import base64
import copy
import hashlib
import hmac
import io
import pickle
import pprint
import re
import struct
import traceback
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.bindings._rust import openssl
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.pretty import pretty_repr

from controller.audit.format.hole_cards import (
    CardCommitment,
    CardOpening,
    HoleKey,
    NotCommitted,
    NotOpened,
    OtherCard,
    SealProblem,
    WrongForm,
    WrongKey,
    check,
    commit,
    commitment,
    nonce,
    open_sealed,
    opened_card,
    opening,
    seal,
)
from controller.audit.format.records import DeviceCursor
from drivers.devices import Sealed, SealedCard
from firmware_protocol.messages import CardFlags, CardRead
from tests.support.audit.record.sealed_card import (
    BODY,
    CARD,
    COMMITTED,
    CURSOR,
    HOLE_KEY,
    OPENED,
    PUBLIC,
    READ,
    SALT,
    SURVEILLANCE,
    TABLE,
    at,
)
from tests.support.audit.tools import rfc9180

BODIES = st.builds(
    CardRead,
    shoe=st.integers(0, 0xFFFFFFFF),
    pos=st.integers(1, 65535),
    card=st.integers(0, 51),
    confidence=st.integers(0, 100),
    alternative=st.sampled_from([*range(52), 0x40, 0xFE]),
    flags=st.just(CardFlags(0)),
    dwell=st.integers(0, 65535),
    back=st.integers(0, 255),
    salt=st.binary(min_size=11, max_size=11),
)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
CURSORS = st.builds(
    at, device=NAMES, epoch=st.integers(0, 0xFFFFFFFF), seq=st.integers(0, 0xFFFFFFFF)
)


# --- as the page of the format has it ---------------------------------------------------------


def test_the_bytes_are_those_of_the_format() -> None:
    place = struct.pack("<II", 5, 9)
    made = hmac.new(bytes(range(32)), b"holecard-nonce-v1\0SH-0001\0" + place + SALT, "sha256")
    assert nonce(HOLE_KEY, at("SH-0001", 5, 9), Sealed(SALT)) == made.digest()
    raw = made.digest() + BODY.encode()
    assert (OPENED.open(), len(raw), raw[32 + 6]) == (raw, 56, CARD)
    bound = b"holecard-v1\0mega-1\0SH-0001\0" + place + raw
    committed = commitment(TABLE, at("SH-0001", 5, 9), OPENED)
    assert committed == hashlib.sha256(bound).digest()
    assert committed.hex() == COMMITTED.commitment_hex
    sealed = base64.b64decode(COMMITTED.sealed_b64, validate=True)
    assert (len(sealed), rfc9180.open_with(SURVEILLANCE, committed, b"", sealed)) == (104, raw)


RFC = {
    name: bytes.fromhex(text)
    for name, text in {  # RFC 9180, appendix A.2.1, sequence number 0
        "info": "4f6465206f6e2061204772656369616e2055726e",
        "skEm": "f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600",
        "skRm": "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb",
        "pkRm": "4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a",
        "enc": "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a",
        "key": "ad2744de8e17f4ebba575b3f5f5a8fa1f69c2a07f6e7500bc60ca6e3e3ec1c91",
        "base_nonce": "5c4d98150661b848853b547f",
        "shared_secret": "0bbe78490412b4bbea4812666f7916932b828bba79942424abb65244930d69a7",
        "pt": "4265617574792069732074727574682c20747275746820626561757479",
        "aad": "436f756e742d30",
        "ct": (
            "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28"
        ),
    }.items()
}


def test_the_reference_implementation_passes_rfc_9180() -> None:
    ephemeral = X25519PrivateKey.from_private_bytes(RFC["skEm"])
    dh = ephemeral.exchange(X25519PublicKey.from_public_bytes(RFC["pkRm"]))
    assert rfc9180.shared_secret(dh, RFC["enc"] + RFC["pkRm"]) == RFC["shared_secret"]
    assert rfc9180.schedule(RFC["shared_secret"], RFC["info"]) == (RFC["key"], RFC["base_nonce"])
    sealed = rfc9180.seal_with(ephemeral, RFC["pkRm"], RFC["info"], RFC["aad"], RFC["pt"])
    assert sealed == RFC["enc"] + RFC["ct"]
    private = X25519PrivateKey.from_private_bytes(RFC["skRm"])
    assert rfc9180.open_with(private, RFC["info"], RFC["aad"], sealed) == RFC["pt"]


def test_the_product_opens_the_vector_of_rfc_9180() -> None:
    suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
    private = X25519PrivateKey.from_private_bytes(RFC["skRm"])
    # The vector has associated data, which the library supports only internally.
    opened = openssl.hpke._decrypt_with_aad(
        suite, RFC["enc"] + RFC["ct"], private, info=RFC["info"], aad=RFC["aad"]
    )
    assert opened == RFC["pt"]


@given(BODIES, st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_product_and_reference_open_each_others_seals(
    body: CardRead, ephemeral: bytes, secret: bytes
) -> None:
    private = X25519PrivateKey.from_private_bytes(secret)
    public = private.public_key()
    opened = opening(HOLE_KEY, CURSOR, Sealed(body))
    committed = commitment(TABLE, CURSOR, opened)
    theirs = rfc9180.seal_with(
        X25519PrivateKey.from_private_bytes(ephemeral),
        public.public_bytes_raw(),
        committed,
        b"",
        opened.open(),
    )
    assert open_sealed(private, committed, theirs).open() == opened.open()
    ours = seal(public, committed, opened)
    assert rfc9180.open_with(private, committed, b"", ours) == opened.open()


# --- round and round --------------------------------------------------------------------------


@given(NAMES, CURSORS, BODIES, st.binary(min_size=32, max_size=32))
def test_a_commitment_opens_to_its_card(
    table: str, cursor: DeviceCursor, body: CardRead, raw_key: bytes
) -> None:
    hole_key = HoleKey(raw_key)
    made = commit(table, cursor, Sealed(body), hole_key, PUBLIC)
    again = opening(hole_key, cursor, Sealed(CardRead.decode(body.encode())))
    check(again, table, cursor, made.commitment_hex, body.card)
    check(CardOpening.of_hex(again.open().hex()), table, cursor, made.commitment_hex, body.card)
    card = opened_card(cursor, table, made.commitment_hex, made.sealed_b64, SURVEILLANCE)
    assert card == body.card
    assert (len(made.commitment_hex), len(made.sealed_b64)) == (64, 140)


@given(BODIES, CURSORS, BODIES, CURSORS)
def test_each_device_record_has_its_own_nonce(
    body: CardRead, cursor: DeviceCursor, other: CardRead, elsewhere: DeviceCursor
) -> None:
    one = nonce(HOLE_KEY, cursor, Sealed(body.salt))
    two = nonce(HOLE_KEY, elsewhere, Sealed(other.salt))
    assert (one == two) == ((cursor, body.salt) == (elsewhere, other.salt))
    assert one != nonce(HoleKey(bytes(32)), cursor, Sealed(SALT))


def test_results_have_the_same_length_for_every_card() -> None:
    every = [
        commit(TABLE, CURSOR, Sealed(msgspec.structs.replace(BODY, card=card)), HOLE_KEY, PUBLIC)
        for card in range(52)
    ]
    assert {(len(one.commitment_hex), len(one.sealed_b64)) for one in every} == {(64, 140)}
    assert len({one.commitment_hex for one in every}) == 52


def test_sealing_twice_gives_different_bytes() -> None:
    again = commit(TABLE, CURSOR, READ, HOLE_KEY, PUBLIC)
    assert again.commitment_hex == COMMITTED.commitment_hex
    assert again.sealed_b64 != COMMITTED.sealed_b64


# --- what does not fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "cursor"),
    [
        ("mega-2", CURSOR),
        ("mega", at("1SH-0001")),
        (TABLE, msgspec.structs.replace(CURSOR, device="SH-0002")),
        (TABLE, msgspec.structs.replace(CURSOR, epoch=6)),
        (TABLE, msgspec.structs.replace(CURSOR, seq=10)),
        (TABLE, at(epoch=9, seq=5)),
    ],
)
def test_a_commitment_binds_table_device_and_record(table: str, cursor: DeviceCursor) -> None:
    check(OPENED, TABLE, CURSOR, COMMITTED.commitment_hex)
    with pytest.raises(NotCommitted, match="does not give the commitment"):
        check(OPENED, table, cursor, COMMITTED.commitment_hex)
    with pytest.raises(NotCommitted):
        opened_card(cursor, table, COMMITTED.commitment_hex, COMMITTED.sealed_b64, SURVEILLANCE)


@given(st.integers(0, 56 * 8 - 1))
def test_every_flipped_bit_of_an_opening_is_detected(bit: int) -> None:
    raw = bytearray(OPENED.open())
    raw[bit // 8] ^= 1 << bit % 8
    with pytest.raises((NotCommitted, WrongForm)):
        check(CardOpening.of_bytes(bytes(raw)), TABLE, CURSOR, COMMITTED.commitment_hex)


def test_a_different_card_is_rejected() -> None:
    for card in range(52):
        if card == CARD:
            check(OPENED, TABLE, CURSOR, COMMITTED.commitment_hex, card)
            continue
        with pytest.raises(OtherCard) as caught:
            check(OPENED, TABLE, CURSOR, COMMITTED.commitment_hex, card)
        assert str(caught.value) == "the card is not the one that was committed to"


@given(st.integers(0, 104 * 8 - 1))
def test_every_flipped_bit_of_a_seal_is_detected(bit: int) -> None:
    raw = bytearray(base64.b64decode(COMMITTED.sealed_b64))
    raw[bit // 8] ^= 1 << bit % 8
    sealed = base64.b64encode(raw).decode()
    with pytest.raises(NotOpened, match="this key does not open it"):
        opened_card(CURSOR, TABLE, COMMITTED.commitment_hex, sealed, SURVEILLANCE)


def test_a_wrong_key_or_commitment_does_not_decrypt() -> None:
    other = X25519PrivateKey.generate()
    with pytest.raises(NotOpened):
        opened_card(CURSOR, TABLE, COMMITTED.commitment_hex, COMMITTED.sealed_b64, other)
    moved = commit(TABLE, msgspec.structs.replace(CURSOR, seq=10), READ, HOLE_KEY, PUBLIC)
    with pytest.raises(NotOpened):
        opened_card(CURSOR, TABLE, moved.commitment_hex, COMMITTED.sealed_b64, SURVEILLANCE)


def test_a_seal_of_another_opening_is_rejected() -> None:
    """A dishonest table: the sealed opening must match its commitment."""
    lie = CardOpening(bytes(32), msgspec.structs.replace(BODY, card=0).encode())
    sealed = base64.b64encode(seal(PUBLIC, bytes.fromhex(COMMITTED.commitment_hex), lie)).decode()
    with pytest.raises(NotCommitted):
        opened_card(CURSOR, TABLE, COMMITTED.commitment_hex, sealed, SURVEILLANCE)


def test_a_sealed_invalid_card_is_rejected() -> None:
    raw = bytearray(OPENED.open())
    raw[32 + 6] = 52
    committed = bytes.fromhex(COMMITTED.commitment_hex)
    sealed = rfc9180.seal_with(
        X25519PrivateKey.generate(), PUBLIC.public_bytes_raw(), committed, b"", bytes(raw)
    )
    with pytest.raises(WrongForm, match="byte 6 of the opening's body is no card"):
        open_sealed(SURVEILLANCE, committed, sealed)


def test_a_weak_public_key_is_rejected() -> None:
    for weak in (bytes(32), b"\x01" + bytes(31)):
        with pytest.raises(WrongKey, match="surveillance's public key"):
            commit(TABLE, CURSOR, READ, HOLE_KEY, X25519PublicKey.from_public_bytes(weak))


FORMS: dict[str, Callable[[], object]] = {
    "hole key": lambda: HoleKey(bytes(31)),
    "nonce": lambda: CardOpening(bytes(31), bytes(24)),
    "body": lambda: CardOpening(bytes(32), bytes(25)),
    "opening, short": lambda: CardOpening.of_bytes(bytes(55)),
    "opening, empty": lambda: CardOpening.of_hex(""),
    "opening, capitals": lambda: CardOpening.of_hex(OPENED.open().hex().upper()),
    "opening, blanks": lambda: CardOpening.of_hex(OPENED.open().hex(" ")),
    "opening, no hex": lambda: CardOpening.of_hex("zz" * 56),
    "opening, no ASCII": lambda: CardOpening.of_hex("٣" * 112),
    "commitment": lambda: check(OPENED, TABLE, CURSOR, "00"),
    "commitment to seal with": lambda: seal(PUBLIC, bytes(31), OPENED),
    "commitment to open with": lambda: open_sealed(SURVEILLANCE, bytes(33), bytes(104)),
    "sealed": lambda: open_sealed(SURVEILLANCE, bytes(32), bytes(103)),
    "sealed, empty": lambda: opened_card(CURSOR, TABLE, "00" * 32, "", SURVEILLANCE),
    "sealed, no base64": lambda: opened_card(CURSOR, TABLE, "00" * 32, "é", SURVEILLANCE),
    "sealed, a newline": lambda: opened_card(
        CURSOR, TABLE, "00" * 32, COMMITTED.sealed_b64 + "\n", SURVEILLANCE
    ),
    "sealed, loose bits": lambda: opened_card(
        CURSOR, TABLE, "00" * 32, COMMITTED.sealed_b64[:-2] + "B=", SURVEILLANCE
    ),
    "table, empty": lambda: check(OPENED, "", CURSOR, COMMITTED.commitment_hex),
    "table, a zero": lambda: check(OPENED, "a\0b", CURSOR, COMMITTED.commitment_hex),
    "table, no text": lambda: check(OPENED, "\ud800", CURSOR, COMMITTED.commitment_hex),
    "device": lambda: opening(HOLE_KEY, at(device="a\0"), READ),
    "epoch": lambda: opening(HOLE_KEY, at(epoch=-1), READ),
    "seq": lambda: opening(HOLE_KEY, at(seq=1 << 32), READ),
}


@pytest.mark.parametrize("form", FORMS)
def test_malformed_values_are_rejected(form: str) -> None:
    with pytest.raises(WrongForm) as caught:
        FORMS[form]()
    assert str(caught.value)
    assert OPENED.open().hex() not in str(caught.value)


@given(st.text(), st.text(), st.text(), st.integers(), st.integers())
def test_any_recorded_text_raises_seal_problem(
    table: str, committed: str, sealed: str, epoch: int, seq: int
) -> None:
    with pytest.raises(SealProblem):
        opened_card(at("SH", epoch, seq), table, committed, sealed, SURVEILLANCE)
    with pytest.raises(SealProblem):
        check(OPENED, table, at("SH", epoch, seq), COMMITTED.commitment_hex)


SECRETS = (OPENED, READ, HOLE_KEY, OPENED.card)
WAYS: dict[str, Callable[[Any], str]] = {
    "repr": repr,
    "format": lambda one: f"{one} {one!s:>30} {one:>9} {[one]}",
    "pprint": pprint.pformat,
    "rich": pretty_repr,
    "attributes": lambda one: repr(
        [getattr(one, name) for name in dir(one) if name not in ("open", "__doc__")]
    ),
}


def shows(text: str) -> list[str]:
    """Everything readable of a value, without object addresses."""
    text = re.sub("0x[0-9a-f]+", "", text)
    return [
        sign
        for sign in (
            str(CARD),
            "salty",
            OPENED.open().hex(),
            repr(OPENED.open())[2:20],
            HOLE_KEY.open().hex(),
            repr(HOLE_KEY.open())[2:20],
        )
        if sign in text
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("secret", SECRETS, ids=lambda one: type(one).__name__)
def test_no_secret_value_is_printed(secret: Sealed[object], way: str) -> None:
    text = WAYS[way](secret)
    assert text
    assert not shows(text), text


@pytest.mark.parametrize("secret", SECRETS, ids=lambda one: type(one).__name__)
def test_no_secret_value_is_pickled_or_copied(secret: Sealed[object]) -> None:
    ways: list[Callable[[object], object]] = [pickle.dumps, msgspec.json.encode, vars]
    for way in ways:
        with pytest.raises(TypeError) as caught:
            way(secret)
        assert not shows(str(caught.value))
    assert copy.deepcopy(secret) is secret


def test_a_card_is_opened_explicitly() -> None:
    assert isinstance(OPENED.card, SealedCard)
    assert OPENED.card.open() == CARD
    assert CardOpening(OPENED.open()[:32], BODY.encode()).card.open() == CARD


def test_recorded_values_are_printed() -> None:
    assert msgspec.json.decode(msgspec.json.encode(COMMITTED), type=CardCommitment) == COMMITTED


BROKEN: dict[str, Callable[[], object]] = {
    "key": lambda: commit(
        TABLE, CURSOR, READ, HOLE_KEY, X25519PublicKey.from_public_bytes(bytes(32))
    ),
    "table": lambda: commit("", CURSOR, READ, HOLE_KEY, PUBLIC),
    "device": lambda: commit(TABLE, at(""), READ, HOLE_KEY, PUBLIC),
    "other commitment": lambda: check(OPENED, TABLE, CURSOR, "00" * 32, CARD - 1),
    "other card": lambda: check(OPENED, TABLE, CURSOR, COMMITTED.commitment_hex, CARD - 1),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_no_traceback_with_variables_shows_a_card(broken: str) -> None:
    try:
        BROKEN[broken]()
    except SealProblem as problem:
        frames = [frame.f_locals for frame, _ in traceback.walk_tb(problem.__traceback__)][1:]
        assert frames
        held = repr(frames) + pretty_repr(frames)
        assert not shows(held), held
        console = Console(file=io.StringIO(), width=200)
        console.print(problem)
        assert isinstance(console.file, io.StringIO)
        assert not shows(console.file.getvalue())
    else:
        pytest.fail("nothing was refused")
