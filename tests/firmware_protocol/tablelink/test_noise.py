"""The handshakes: published vectors, and everything that fails.

The vectors are those of flynn/noise (vectors.txt, as Debian ships it in
golang-github-flynn-noise-dev 1.0.0): keys counting up, empty payloads in the handshake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.messages import (
    BadKey,
    HandshakeNotAuthentic,
    HandshakeOrder,
    HandshakeSize,
    WeakKey,
)
from firmware_protocol.tablelink import Handshake, label_psk
from firmware_protocol.tablelink.noise import Cipher, Role

HOST = X25519PrivateKey.from_private_bytes(bytes(range(32)))
DEVICE = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
HOST_E = X25519PrivateKey.from_private_bytes(bytes(range(0x20, 0x40)))
DEVICE_E = X25519PrivateKey.from_private_bytes(bytes(range(0x41, 0x61)))
PSK = b"!verysecretverysecretverysecret!"
AFTERWARDS = (b"yellowsubmarine", b"submarineyellow")


def public(key: X25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def kk(
    role: Role, prologue: bytes = b"", own: Any = None, theirs: bytes | None = None
) -> Handshake:
    mine, other = (HOST, DEVICE) if role == "host" else (DEVICE, HOST)
    return Handshake.kk(role, prologue, own or mine, theirs or public(other))


def xx(role: Role, prologue: bytes = b"", psk: bytes = PSK) -> Handshake:
    return Handshake.xxpsk3(role, prologue, HOST if role == "host" else DEVICE, psk)


def talk(host: Handshake, device: Handshake) -> list[bytes]:
    """Both sides to the end; what was said."""
    said = []
    for writer, reader in ((host, device), (device, host)) * 2:
        if writer.finished:
            break
        said.append(writer.write())
        reader.read(said[-1])
    return said


class Published(NamedTuple):
    make: Callable[..., Handshake]
    prologue: bytes
    messages: str
    """In hexadecimal, one after the other; blanks mean nothing."""
    afterwards: tuple[str, str]


AFTER_KK = (
    "3dc2f873e6658db54bb9c572f74b4c1cf45ad75c65239938a138836f952884",
    "8e3bc17a298d558e3a06e40efb7b7fb5c96c4aa1d5e4d5f787d2515e14b998",
)
AFTER_XX = (
    "ff43d872c9028bdb9c54fa2c87bf427cd7fdf53b281d89649f183629b8f2e9",
    "50ca5d06223b9346bc628ee151bf174732e4afc56fe3fca4baff4173abe983",
)
VECTORS = {
    "KK": Published(
        kk,
        b"",
        """
        358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254
        0add9701c614f83639fc5b8469a824e1
        64b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d48466
        adae6f9cdefe2c94ee03225c37604b0a
        """,
        AFTER_KK,
    ),
    "KK with a prologue": Published(
        kk,
        b"notsecret",
        """
        358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254
        3e047c5ed566988814daa1e9e4605341
        64b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d48466
        4938a09e1060496bb538cb5f75115a31
        """,
        AFTER_KK,
    ),
    "XXpsk3": Published(
        xx,
        b"",
        """
        358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254
        813e50d4de1a8d4e0d61efe2041f7ca6
        64b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d48466
        f05a4cb6e4cb79e094bd585a0b9fbc734db005568fc515c58c9fde6291e3e292
        20fbe03545fe15b4e8e1acca1559b4b2de52d9ae55517db0f969b67cfd1a046a
        8651088810f5c175e542fa61507d8cfac7670c9c1f1e3eb7c8fcfa1e632b0d46
        6be2a1a293e4da8f69787704224eafe4849020203ee23d283e335821b48f1adf
        """,
        AFTER_XX,
    ),
    "XXpsk3 with a prologue": Published(
        xx,
        b"notsecret",
        """
        358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254
        1c21324e86ac7d65b7dc06cf3b651e32
        64b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d48466
        f05a4cb6e4cb79e094bd585a0b9fbc734db005568fc515c58c9fde6291e3e292
        a276b6138dab236a57f9a781388562c174bef9f634ada92d349e837ac7ccd978
        8651088810f5c175e542fa61507d8cfac7670c9c1f1e3eb7c8fcfa1e632b0d46
        bb08fbcd509f32a5dfabbf43a22dbc5e5002092ca11ba0dddc4faedad0330f85
        """,
        AFTER_XX,
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_published_vectors(name: str) -> None:
    published = VECTORS[name]
    host = published.make("host", published.prologue)
    device = published.make("device", published.prologue)
    host.fix_ephemeral(HOST_E)
    device.fix_ephemeral(DEVICE_E)
    assert b"".join(talk(host, device)) == bytes.fromhex(published.messages)
    keys, others = host.split(), device.split()
    assert (keys.send, keys.receive) == (others.receive, others.send)
    assert keys.transcript == others.transcript
    # The first message afterwards is the host's in both patterns.
    order = (keys.send, keys.receive)
    for key, plain, sealed in zip(order, AFTERWARDS, published.afterwards, strict=True):
        assert Cipher(key).seal(0, b"", plain).hex() == sealed


# --- what must fail -------------------------------------------------------------------------

STRANGER = X25519PrivateKey.generate()


@pytest.mark.parametrize(
    ("host", "device"),
    [
        pytest.param(kk("host", own=STRANGER), kk("device"), id="another host"),
        # It has the serial number, and even the fingerprint: but not the key.
        pytest.param(kk("host"), kk("device", own=STRANGER), id="another device"),
        *(
            pytest.param(make("host", b"1 to 2"), make("device", b"1 to 1"), id="another prologue")
            for make in (kk, xx)
        ),
    ],
)
def test_what_differs_is_noticed(host: Handshake, device: Handshake) -> None:
    with pytest.raises(HandshakeNotAuthentic):
        talk(host, device)


def test_another_label_code_is_noticed_at_the_end() -> None:
    host, device = xx("host"), xx("device", psk=label_psk(bytes(16)))
    device.read(host.write())
    host.read(device.write())
    assert host.their_key == public(DEVICE)  # which proves nothing yet
    with pytest.raises(HandshakeNotAuthentic):
        device.read(host.write())


@pytest.mark.parametrize("make", [kk, xx])
def test_a_replayed_message_opens_nothing(make: Callable[..., Handshake]) -> None:
    """The device drew another HELLO_RSP.random, so the prologue is another."""
    first, second = make("host", b"random 1"), make("device", b"random 2")
    with pytest.raises(HandshakeNotAuthentic):
        second.read(first.write())
    # And one that is replayed within its own handshake finds it a step further.
    host, device = make("host"), make("device")
    said = host.write()
    device.read(said)
    with pytest.raises(HandshakeOrder):
        device.read(said)
    host.read(device.write())


@pytest.mark.parametrize("make", [kk, xx])
def test_every_changed_byte_of_the_transcript_is_noticed(make: Callable[..., Handshake]) -> None:
    """Byte 31 too, whose highest bit X25519 ignores: the transcript does not."""
    for turn, message in enumerate(talk(make("host"), make("device"))):
        for at in {31, *range(0, len(message), 3)}:
            host, device = make("host"), make("device")
            sides = [(host, device), (device, host)] * 2
            for writer, reader in sides[:turn]:
                reader.read(writer.write())
            writer, reader = sides[turn]
            said = bytearray(writer.write())
            said[at] ^= 0x80
            for error in (HandshakeNotAuthentic, HandshakeOrder):
                with pytest.raises(error):
                    reader.read(bytes(said))
            assert not reader.finished


@pytest.mark.parametrize("make", [kk, xx])
@pytest.mark.parametrize("size", [0, 1, 47, 49, 255])
def test_a_message_of_another_length_is_refused(make: Callable[..., Handshake], size: int) -> None:
    with pytest.raises(HandshakeSize):
        make("device").read(bytes(size))


def test_a_weak_key_is_rejected() -> None:
    """Points of low order: the result of X25519 is zero, with any other key."""
    for weak in (bytes(32), b"\x01" + bytes(31)):
        with pytest.raises(WeakKey):
            kk("device").read(weak + bytes(16))
        with pytest.raises(WeakKey):
            kk("host", theirs=weak).write()


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_has_32_bytes(size: int) -> None:
    with pytest.raises(BadKey):
        Handshake.kk("host", b"", HOST, bytes(size))
    with pytest.raises(BadKey):
        xx("host", psk=bytes(size))


def test_steps_come_in_order() -> None:
    host, device = kk("host"), kk("device")
    for step in (device.write, lambda: host.read(bytes(48)), host.split):
        with pytest.raises(HandshakeOrder):
            step()
    with pytest.raises(HandshakeOrder):
        _ = xx("host").their_key
    talk(host, device)
    for step in (host.write, lambda: device.read(bytes(48))):
        with pytest.raises(HandshakeOrder):
            step()


def test_keys_are_given_once_and_shown_never() -> None:
    host, device = kk("host"), kk("device")
    talk(host, device)
    assert repr(host.split()) == "SessionKeys(...)"
    with pytest.raises(HandshakeOrder):
        host.split()
    device.wipe()
    with pytest.raises(HandshakeOrder):
        device.split()


def test_each_handshake_has_other_keys() -> None:
    seen = set()
    for _ in range(3):
        host, device = kk("host"), kk("device")
        talk(host, device)
        keys = host.split()
        seen |= {keys.send, keys.receive}
    assert len(seen) == 6
