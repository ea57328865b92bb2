"""The golden bytes of each version. Those of a released one never change: mend the code instead.

What is checked by struct, bit by bit or by noiseprotocol does not share code with what made them.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from msgspec import structs
from noise.connection import Keypair, NoiseConnection

from firmware_protocol import vectors
from firmware_protocol.generate.catalogue import Version
from firmware_protocol.messages import MESSAGES, FrameKind, Payload
from firmware_protocol.tablelink import (
    CommandCall,
    CommandReply,
    Deframer,
    EventRecord,
    Frame,
    FrameDamage,
    Opener,
    Sealer,
    cobs_decode,
    cobs_encode,
    crc32c,
    decode_plaintext,
    encode_plaintext,
    fingerprint,
    label_psk,
    read_label,
)
from firmware_protocol.tablelink.noise import KK_NAME, XX_NAME
from firmware_protocol.vectors import make
from tests.support.firmware_protocol.framing import plain_cobs, plain_crc
from tests.support.firmware_protocol.strategies import catalogue

DIGESTS: dict[int, str] = {}
"""SHA-256 over the files of each released version, in the order of vectors.NAMES."""


def raw(text: str) -> bytes:
    return bytes.fromhex(text)


def test_the_vectors_are_those_that_the_code_makes() -> None:
    for name, text in make.made().items():
        assert vectors.text(name.removesuffix(".json")) == text, name


def test_a_released_version_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = [version.number for version in catalogue().versions if version.released]
    texts = {one: "".join(vectors.text(name, one) for name in vectors.NAMES) for one in numbers}
    # A version that is released now and is not in DIGESTS is pinned there with what this shows.
    assert {
        one: hashlib.sha256(text.encode()).hexdigest() for one, text in texts.items()
    } == DIGESTS
    assert make.main([]) == 0
    released = structs.replace(catalogue(), versions=(Version(1, released=True),))
    monkeypatch.setattr(make, "load_catalogue", lambda: released)
    monkeypatch.setattr(make, "FOLDER", tmp_path)
    assert make.main([]) == 1
    assert make.main(["--write"]) == 1
    assert "is released" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# --- CRC, COBS, damage ----------------------------------------------------------------------


def test_crc() -> None:
    for data, crc in (
        *((raw(one["bytes"]), int(one["crc32c"], 16)) for one in vectors.load("crc")),
        # RFC 3720, B.4, as this CRC's byte order has them.
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ):
        assert crc32c(data) == plain_crc(data) == crc


def test_cobs() -> None:
    both = vectors.load("cobs")
    for one in both["good"]:
        decoded, encoded = raw(one["decoded"]), raw(one["encoded"])
        assert cobs_encode(decoded) == plain_cobs(decoded) == encoded
        assert cobs_decode(encoded) == decoded
    for bad in both["bad"]:
        assert cobs_decode(raw(bad)) is None


@pytest.mark.parametrize("one", vectors.load("damage"), ids=lambda one: one["name"])
def test_damage(one: dict[str, Any]) -> None:
    heard = [
        {"damage": what.cause.value, "size": what.size}
        if isinstance(what, FrameDamage)
        else {"frame": what.kind.name, "session": what.session, "payload": what.payload.hex()}
        for what in Deframer().feed(raw(one["stream"]))
    ]
    assert heard == one["heard"]


# --- messages -------------------------------------------------------------------------------


def by_hand(one: dict[str, Any]) -> bytes:
    """The plaintext as the page has it, by struct alone."""
    body = raw(one["body"])
    if one["kind"] == "event":
        head = struct.pack(
            "<BBIIIQBB",
            1,
            0,
            one["epoch"],
            one["seq"],
            one["boot"],
            int(one["t_us"]),
            one["id"],
            len(body),
        )
        hashed = (head + body).ljust(48, b"\0")
        return hashed + hashlib.blake2b(raw(one["chain_before"]) + hashed).digest()[:8]
    size = 120 if one["message"] in ("INFO_REPLY", "REREAD_REPLY") else 56
    if one["kind"] == "control":
        return (struct.pack("<BBBB", 4, 0, one["id"], len(body)) + body).ljust(size, b"\0")
    kind = 2 if one["kind"] == "command" else 3
    numbers = one["command_id"], int(one["host_boot"])
    head = struct.pack("<BBBBIQ", kind, 0, one["id"], len(body), *numbers)
    return (head + body).ljust(size, b"\0")


def test_every_message_is_there() -> None:
    assert {one["id"] for one in vectors.load("messages")} == set(MESSAGES)


@pytest.mark.parametrize(
    "one", vectors.load("messages"), ids=lambda one: f"{one['message']}-{one['sample']}"
)
def test_message(one: dict[str, Any]) -> None:
    expected = raw(one["plaintext"])
    assert by_hand(one) == expected
    what = decode_plaintext(expected, sender=MESSAGES[one["id"]].FROM)
    assert encode_plaintext(what) == expected
    if isinstance(what, EventRecord):
        message: Payload = what.event
        assert what.follows(raw(one["chain_before"]))
        assert [what.epoch, what.seq, what.boot, str(what.t_us)] == [
            one[name] for name in ("epoch", "seq", "boot", "t_us")
        ]
    elif isinstance(what, CommandCall):
        message = what.command
    elif isinstance(what, CommandReply):
        message = what.reply
    else:
        message = what
    fields = next(kind.fields for kind in catalogue().messages if kind.id == one["id"])
    assert (make.shown(fields, message), message.encode()) == (one["fields"], raw(one["body"]))


FORMS = {  # by hand, as protocol.md and the tables have them
    "CARD_READ": "<IHBBBBHB11s",
    "LOADED": "<IBHIB",
    "DONE": "<IHHHB",
    "BUTTON": "<BBBHIH",
    "ARM": "<BHHH",
    "LAMPS": "<B3sBHH",
    "RESUME": "<II8sB",
    "RESUME_REPLY": "<III8sBI8s",
    "EVT_ACK": "<IIB",
    "DEVICE_BEAT": "<IIIQBHII",
    "TIME_ANSWER": "<QQQ",
    "INFO_REPLY": "<32sIBHH",
}


@pytest.mark.parametrize("name", FORMS)
def test_fields_by_hand(name: str) -> None:
    for one in vectors.load("messages"):
        if one["message"] == name:
            letters = FORMS[name].translate(str.maketrans("", "", "<0123456789"))
            # JSON has bytes in hexadecimal and numbers of 64 bits in decimal.
            values = [
                raw(value) if letter == "s" else int(value)
                for letter, value in zip(letters, one["fields"].values(), strict=True)
            ]
            assert struct.pack(FORMS[name], *values) == raw(one["body"])


# --- frames, chain, handshakes --------------------------------------------------------------


def test_a_frame_of_every_kind() -> None:
    seen = set()
    for one in vectors.load("frames"):
        kind, payload, wire = FrameKind[one["kind"]], raw(one["payload"]), raw(one["wire"])
        frame = Frame(kind, one["session"], one["counter"], payload, one["version"])
        assert Deframer().feed(wire) == [frame]
        whole = struct.pack("<BBHI", 16 | kind, len(payload), one["session"], one["counter"])
        whole += payload
        by_hand = plain_cobs(whole + struct.pack("<I", plain_crc(whole))) + b"\0"
        assert frame.encode() == by_hand == wire
        seen.add(kind)
    assert seen == set(FrameKind)


def test_chain() -> None:
    ring = vectors.load("chain")
    before = bytes(8)
    for seq, one in enumerate(ring["records"], 1):
        data = raw(one["bytes"])
        record = decode_plaintext(data, sender="device")
        assert isinstance(record, EventRecord)
        assert (record.epoch, record.seq, record.follows(before)) == (ring["epoch"], seq, True)
        before = hashlib.blake2b(before + data[:48]).digest()[:8]
        assert before == data[48:] == raw(one["chain"])


def independent(one: dict[str, Any], name: bytes) -> tuple[Any, Any]:
    """The handshake of the vector, both sides by noiseprotocol."""
    sides = []
    for role, other in (("host", "device"), ("device", "host")):
        side: Any = NoiseConnection.from_name(name)
        side.set_keypair_from_private_bytes(Keypair.STATIC, raw(one[role]["private"]))
        side.set_keypair_from_private_bytes(
            Keypair.EPHEMERAL, raw(one[f"{role}_ephemeral"]["private"])
        )
        if name == KK_NAME:
            side.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, raw(one[other]["public"]))
        else:
            side.set_psks(raw(one["psk"]))
        (side.set_as_initiator if role == "host" else side.set_as_responder)()
        side.set_prologue(raw(one["prologue"]))
        with pytest.warns(UserWarning, match="ephemeral"):
            side.start_handshake()
        sides.append(side)
    return sides[0], sides[1]


@pytest.mark.parametrize(
    ("file", "name", "said"),
    [
        ("handshake_kk", KK_NAME, ("HS1", "HS2")),
        ("handshake_xxpsk3", XX_NAME, ("PAIR1", "PAIR2", "PAIR3")),
    ],
)
def test_handshake(file: str, name: bytes, said: tuple[str, ...]) -> None:
    one = vectors.load(file)
    hellos = [
        Frame(FrameKind[kind], one["session"], 0, raw(one[kind])).decoded()
        for kind in ("HELLO", "HELLO_RSP")
    ]
    assert b"".join(hellos) == raw(one["prologue"])
    host, device = independent(one, name)
    for turn, kind in enumerate(said):
        writer, reader = (host, device) if turn % 2 == 0 else (device, host)
        message = bytes(writer.write_message())
        assert message == raw(one[kind])
        reader.read_message(message)
    state = host.noise_protocol
    for secret, made in (
        ("host_to_device", bytes(state.cipher_state_encrypt.k)),
        ("device_to_host", bytes(state.cipher_state_decrypt.k)),
        ("transcript", host.get_handshake_hash()),
        ("host_fingerprint", fingerprint(raw(one["host"]["public"]))),
        ("device_fingerprint", fingerprint(raw(one["device"]["public"]))),
    ):
        assert made == raw(one[secret]), secret


def test_pairing_secret() -> None:
    one = vectors.load("handshake_xxpsk3")
    assert read_label(one["label"]) == raw(one["code"])
    psk = hashlib.blake2b(b"TableLink pair" + raw(one["code"]), digest_size=32).digest()
    assert label_psk(raw(one["code"])) == psk == raw(one["psk"])
    done = Sealer(raw(one["device_to_host"]), one["session"]).seal(
        raw(one["PAIR_DONE"]["plaintext"])
    )
    assert done.encode() == raw(one["PAIR_DONE"]["wire"])


def test_sealed() -> None:
    session = vectors.load("handshake_kk")
    ends = {
        side: Opener(raw(session[key]), session["session"])
        for side, key in (("host", "host_to_device"), ("device", "device_to_host"))
    }
    for one in vectors.load("sealed"):
        (frame,) = Deframer().feed(raw(one["wire"]))
        assert isinstance(frame, Frame)
        assert frame.header() == raw(one["associated"])
        assert ends[one["from"]].open(frame) == raw(one["plaintext"])
        key = raw(session["host_to_device" if one["from"] == "host" else "device_to_host"])
        nonce = struct.pack("<IQ", 0, one["counter"])
        sealed = ChaCha20Poly1305(key).encrypt(nonce, raw(one["plaintext"]), raw(one["associated"]))
        assert sealed == raw(one["payload"])


def test_the_handshake_by_the_page_alone() -> None:
    """HKDF, mix and seal as PROTOCOL.md writes them down, for KK from the device's side."""
    one = vectors.load("handshake_kk")

    def dh(private: str, public: str) -> bytes:
        own = X25519PrivateKey.from_private_bytes(raw(private))
        return own.exchange(X25519PublicKey.from_public_bytes(raw(public)))

    def blake(data: bytes) -> bytes:
        return hashlib.blake2b(data).digest()

    def hkdf(chaining: bytes, secret: bytes) -> tuple[bytes, bytes]:
        t = hmac.new(chaining, secret, hashlib.blake2b).digest()
        first = hmac.new(t, b"\x01", hashlib.blake2b).digest()
        return first, hmac.new(t, first + b"\x02", hashlib.blake2b).digest()

    host, device = one["host"], one["device"]
    eh, ed = one["host_ephemeral"], one["device_ephemeral"]
    h = ck = k = KK_NAME.ljust(64, b"\0")
    for mixed in (one["prologue"], host["public"], device["public"], eh["public"]):
        h = blake(h + raw(mixed))
    for private, public in ((device["private"], eh["public"]), (device["private"], host["public"])):
        ck, k = hkdf(ck, dh(private, public))
    tag = ChaCha20Poly1305(k[:32]).encrypt(bytes(12), b"", h)
    assert raw(eh["public"]) + tag == raw(one["HS1"])
    h = blake(blake(h + tag) + raw(ed["public"]))
    for private, public in ((ed["private"], eh["public"]), (ed["private"], host["public"])):
        ck, k = hkdf(ck, dh(private, public))
    tag = ChaCha20Poly1305(k[:32]).encrypt(bytes(12), b"", h)
    assert raw(ed["public"]) + tag == raw(one["HS2"])
    assert [key[:32].hex() for key in hkdf(ck, b"")] == [
        one["host_to_device"],
        one["device_to_host"],
    ]
