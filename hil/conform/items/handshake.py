"""Frames in clear, HELLO and handshakes: who is served, who is not, and what ends a session."""

from __future__ import annotations

from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec.structs import replace

from firmware_protocol.messages import (
    PENDING_LIFE_MS,
    SCHEMA_HASHES,
    Capabilities,
    DeviceClass,
    FrameKind,
    Hello,
    HelloRsp,
    Info,
)
from firmware_protocol.tablelink import CommandCall, Frame, Handshake, prologue
from hil.conform.tester import ConformBench, HelloExchange, flip_bits, raw_frame

_NO_HS2: Final = "no HS2"
_ANSWERS: Final = (FrameKind.HELLO_RSP, FrameKind.HS2, FrameKind.PAIR2)
"""Not DATA: a session that ran before may not have ended yet."""
_OUT_OF_RANGE: Final = (
    (0, 0, "version_min"),
    (0, 16, "version_min"),
    (1, 0, "version_max"),
    (1, 16, "version_max"),
    (2, 4, "device_class"),
    (3, 149, "largest"),
)
"""Offset, value and name of a field of HELLO."""


async def hello_answered(bench: ConformBench) -> None:
    """HELLO is answered within HELLO_WAIT by a valid HELLO_RSP under its session id and counter
    0."""
    for session in (bench.pick(), 1, 0xFFFF):
        hello = bench.hello_frame()
        await bench.greet(Frame(FrameKind.HELLO, session, 0, hello.payload))
    bench.require(not bench.damage, "whole frames only")


async def flips(bench: ConformBench) -> None:
    """A HELLO with any one bit flipped is not answered; the next valid one is."""
    hello = bench.hello_frame().encode()
    for at in range(len(hello)):
        for bit in range(8):
            damaged = flip_bits(hello, at, 1 << bit)
            await _require_ignored(bench, damaged, f"HELLO with bit {8 * at + bit} flipped")


async def _require_ignored(bench: ConformBench, data: bytes, text: str) -> None:
    """Require that these bytes get no answer. An answer would come before that to the HELLO that
    follows, so that no timeout is needed."""
    hello = bench.hello_frame()
    bench.send(data + b"\0" + hello.encode(), f"{text}, then a whole HELLO")
    await bench.greeted(hello)
    answers = bench.frames(*_ANSWERS)
    for one in answers:
        bench.require(one.frame.session == hello.session, "an answer to the whole HELLO alone")
    bench.require(len(answers) <= 1, "one answer, to the whole HELLO alone")


async def flood(bench: ConformBench) -> None:
    """After 10,000 bytes without a 0x00, and after random bytes, the next valid frame is
    answered."""
    without = bytes(bench.rng.randrange(1, 256) for _ in range(10_000))
    rubbish = (
        (without, "10,000 bytes without 0x00"),
        (bench.rng.randbytes(4000), "4,000 random bytes"),
    )
    for data, text in rubbish:
        bench.send(data, text)
        await bench.pause(len(data) / 11.5)  # as long as they take at 115200 baud
        hello = bench.hello_frame()
        bench.send(b"\0" + hello.encode(), f"{text}, 0x00, then a whole HELLO")
        await bench.greeted(hello)


async def empties_and_pauses(bench: ConformBench) -> None:
    """Empty frames mean nothing. A frame sent byte by byte with pauses is taken."""
    hello = bench.hello_frame()
    bench.send(bytes(300) + hello.encode() + bytes(3), "300 times 0x00, then HELLO")
    await bench.greeted(hello)
    await bench.unanswered(
        *_ANSWERS, since=bench.mark + 1, expected="no answer to empty frames", ms=bench.late_ms
    )
    hello = bench.hello_frame()
    data = hello.encode()
    for at in range(len(data)):
        text = "HELLO byte by byte, 10 ms apart, once 1 s" if at == 0 else None
        bench.send(data[at : at + 1], text)
        await bench.pause(1000 if at == 20 else 10)
    await bench.greeted(hello)


async def misshapen(bench: ConformBench) -> None:
    """A cut frame, two frames spliced, an unknown kind or version and a wrong n are not
    answered."""
    one, other = bench.hello_frame(), bench.hello_frame()
    data, decoded = one.encode(), one.decoded()
    for bad, text in (
        (data[:20] + b"\0", "HELLO cut after 20 bytes"),
        (data[10:], "HELLO without its first 10 bytes"),
        (data[:-1] + other.encode(), "two HELLO without the 0x00 between"),
        (data[:25] + other.encode()[25:], "the halves of two HELLO"),
        (raw_frame(b"\x17" + decoded[1:]), "kind 7, otherwise a HELLO"),
        (raw_frame(b"\x1e" + decoded[1:]), "kind 14, otherwise a HELLO"),
        (raw_frame(b"\x00" + decoded[1:]), "a HELLO of version 0"),
        (raw_frame(b"\x20" + decoded[1:]), "a HELLO of version 2"),
        (raw_frame(b"\xf0" + decoded[1:]), "a HELLO of version 15"),
        (raw_frame(flip_bits(decoded, 1)), "HELLO with n 33, 32 bytes"),
        (raw_frame(flip_bits(decoded, 1) + b"\0"), "HELLO with n 33, 33 bytes"),
        (raw_frame(decoded[:1] + b"\x1f" + decoded[2:-1]), "HELLO with n 31, 31 bytes"),
        (raw_frame(decoded + b"\0"), "HELLO with a byte more than n"),
        (raw_frame(decoded[:2] + b"\0\0" + decoded[4:]), "HELLO of session 0"),
        (raw_frame(flip_bits(decoded, 4)), "HELLO with counter 1"),
    ):
        await _require_ignored(bench, bad, text)


async def random_differs(bench: ConformBench) -> None:
    """HELLO_RSP has another `random` each time; all else but `state` stays the same."""
    first = await bench.greet()
    seen = {first.hello_rsp.random}
    for _ in range(8):
        hello_rsp = (await bench.greet()).hello_rsp
        bench.require(
            hello_rsp.random not in seen,
            "a `random` that was not there before",
            hello_rsp.random.hex(),
        )
        seen.add(hello_rsp.random)
        for field in HelloRsp.SPEC.fields:
            was, now = getattr(first.hello_rsp, field), getattr(hello_rsp, field)
            if field not in ("random", "state"):
                bench.require_equal(now, was, f"`{field}` as before: {was!r}")


async def introduces_itself(bench: ConformBench) -> None:
    """HELLO_RSP names the profile's class, legal texts, and the schema hash of the common
    version."""
    hello_rsp = (await bench.greet()).hello_rsp  # greet() has validated the texts
    bench.require_equal(hello_rsp.device_class, bench.device_class)
    bench.require(
        hello_rsp.version_min <= 1 <= hello_rsp.version_max,
        "version 1",
        f"{hello_rsp.version_min} to {hello_rsp.version_max}",
    )
    newer = (await bench.greet(version_min=1, version_max=9, schema=bytes(8))).hello_rsp
    # The schema of a later version is unknown here.
    expected = SCHEMA_HASHES.get(min(9, newer.version_max), newer.schema)
    for found, schema in ((hello_rsp.schema, SCHEMA_HASHES[1]), (newer.schema, expected)):
        bench.require_equal(found, schema, f"schema {schema.hex()}")
    for device_class in range(4):  # the class in HELLO has no effect
        again = (await bench.greet(device_class=device_class)).hello_rsp
        bench.require_equal(again.device_class, bench.device_class)


_OF_CLASS: Final = {
    DeviceClass.SHOE: 0xFF,
    DeviceClass.SHUFFLER: 0xFF00,
    DeviceClass.STATION: 0xFF0000,
}
"""Bits of the capabilities of each class."""


async def own_capabilities(bench: ConformBench) -> None:
    """HELLO_RSP names capabilities of the device's class only, and GATEWAY if it is an adapter."""
    found = (await bench.greet()).hello_rsp.capabilities
    allowed = _OF_CLASS[bench.device_class] | Capabilities.GATEWAY
    bench.require(
        not found & ~allowed,
        f"capabilities of a {bench.profile}, and GATEWAY",
        str(Capabilities(found & ~allowed)),
    )
    if Capabilities.GATEWAY in found:
        bench.note("GATEWAY: what is tested ends at the adapter")


async def no_common_version(bench: ConformBench) -> None:
    """A HELLO of versions 15 to 15 is answered; HS1 after it is not."""
    for version in (1, 15):
        greeting = await bench.greet(version_min=15, version_max=15, schema=bytes(8))
        shake, frame = bench.hs1(greeting, text="HS1 after a HELLO of versions 15 to 15")
        shake.wipe()
        if version == 15:
            bench.send(raw_frame(b"\xf2" + frame.decoded()[1:]), "the HS1 in version 15")
        await bench.unanswered(FrameKind.HS2, expected="no HS2")
    await bench.session()


async def ill_formed(bench: ConformBench) -> None:
    """A HELLO whose reserved bytes are not zero, or with a field out of its range, is not
    answered."""
    reserved = ((4 + at, 0x80, f"a bit of reserved byte {at} set") for at in range(4))
    fields = ((at, value, f"{field} {value}") for at, value, field in _OUT_OF_RANGE)
    for at, value, text in (*reserved, *fields):
        hello = bench.hello_frame()
        payload = hello.payload[:at] + bytes((value,)) + hello.payload[at + 1 :]
        bad = Frame(FrameKind.HELLO, hello.session, 0, payload)
        await _require_ignored(bench, bad.encode(), f"HELLO with {text}")


async def paired_host(bench: ConformBench) -> None:
    """The paired host gets an HS2 that opens, and INFO is answered under the new keys."""
    await bench.fall_silent()
    session = await bench.session(resume=False)
    for _ in range(3):
        await session.check_alive("INFO each time it comes")
    again = await bench.session(resume=False)
    bench.require(again.info.boot == session.info.boot, "the same boot as in the session before")


async def strange_host(bench: ConformBench) -> None:
    """A strange host's HS1 is not answered, and the paired host is served right after."""
    stranger = X25519PrivateKey.generate()
    for own, text in (
        (stranger, "HS1 of a host that is not paired"),
        (bench.own, "HS1 of a stranger under the paired host's fingerprint"),
    ):
        bench.hs1(await bench.greet(own=own), own=stranger, text=text)
        await bench.unanswered(FrameKind.HS2, expected=_NO_HS2)
    await bench.session()


async def replayed(bench: ConformBench) -> None:
    """An HS1 that was recorded is not answered when it is replayed, with its HELLO or without."""
    greeting = await bench.greet()
    shake, hs1 = bench.hs1(greeting)
    await bench.hs2(shake, greeting.session)
    bench.send_frame(hs1, "the same HS1 again")
    await bench.unanswered(FrameKind.HS2, expected=_NO_HS2)
    await bench.greet(greeting.hello)
    bench.send_frame(hs1, "the same HELLO again, then the same HS1")
    await bench.unanswered(FrameKind.HS2, expected=_NO_HS2)
    await bench.session()


async def changed_on_the_way(bench: ConformBench) -> None:
    """When HELLO or HELLO_RSP was changed on the way (versions, capabilities, serial number), HS1
    is not answered; under another session id it is ignored, and the right one after it is
    served."""
    ways: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
        ("HELLO's versions", {"version_max": 9}, {}),
        ("HELLO's fingerprint", {"fingerprint": bytes(16)}, {}),
        ("HELLO_RSP's versions", {}, {"version_max": 15}),
        ("HELLO_RSP's capabilities", {}, {"capabilities": Capabilities(0x7)}),
        ("HELLO_RSP's serial number", {}, {"serial": "ANOTHER-1"}),
        ("HELLO_RSP's random", {}, {"random": bytes(8)}),
    )
    for what, hello, answer in ways:
        greeting = await bench.greet()
        seen = _prologue(greeting, hello, answer)
        if seen == greeting.prologue:
            continue  # it has this value already
        bench.hs1(greeting, seen=seen, text=f"HS1 as if {what} had been changed on the way")
        await bench.unanswered(FrameKind.HS2, expected=_NO_HS2)
    await _other_id(bench)
    await bench.session()


async def _other_id(bench: ConformBench) -> None:
    """HS1 under another session id is ignored, and the right one after it is served."""
    greeting = await bench.greet()
    shake = Handshake.kk("host", greeting.prologue, bench.own, bench.device_key)
    right = Frame(FrameKind.HS1, greeting.session, 0, shake.write())
    bench.send_frame(replace(right, session=bench.pick()), "HS1 under another session id")
    await bench.unanswered(FrameKind.HS2, expected=_NO_HS2)
    bench.send_frame(right, "the same HS1 under its own session id")
    await bench.hs2(shake, greeting.session)


def _prologue(greeting: HelloExchange, hello: dict[str, Any], answer: dict[str, Any]) -> bytes:
    """The prologue of a host that saw these fields."""
    hello_seen = replace(Hello.decode(greeting.hello.payload), **hello)
    answer_seen = replace(greeting.hello_rsp, **answer)
    return prologue(
        replace(greeting.hello, payload=hello_seen.encode()),
        replace(greeting.answer, payload=answer_seen.encode()),
    )


async def undisturbed(bench: ConformBench) -> None:
    """HELLO, HS1 and garbage during a session do not end it."""
    session = await bench.session()
    await bench.greet()
    await session.check_alive("HELLO does not end the session")
    pending = await bench.shake()
    await session.check_alive("HS1 that opens does not end the session")
    greeting = await bench.greet(own=X25519PrivateKey.generate())
    bench.hs1(greeting, own=X25519PrivateKey.generate(), text="HS1 of a stranger")
    await session.check_alive("HS1 that does not open does not end the session")
    bench.send(bench.rng.randbytes(700) + b"\0", "700 random bytes")
    frame = pending.sealer.seal(bytes(56))
    bad = flip_bits(frame.payload, 60)
    bench.send_frame(Frame(FrameKind.DATA, frame.session, 0, bad), "DATA of the pending session")
    await session.check_alive("garbage does not end the session")
    mark = len(session.received)
    await bench.pause(1500)
    bench.require(len(session.received) - mark >= 4, "DEVICE_BEAT goes on in the session")
    await session.check_alive()


async def takes_over(bench: ConformBench) -> None:
    """The first valid DATA of a new session ends the former one, whose frames are then ignored."""
    former = await bench.session()
    new = await bench.shake()
    await bench.pause(600)
    await former.check_alive("the former session goes on until the new one's first DATA")
    await new.begin("INFO_REPLY under the new keys")
    former.beating = False
    await bench.pause(bench.late_ms)  # what was on its way
    former.send(CommandCall(900, former.boot, Info()))
    await bench.pause(bench.quiet_ms)
    bench.require(not former.received[former.mark :], "no DATA under the former session")
    await new.check_alive()
    await new.catch_up()


async def forgotten(bench: ConformBench) -> None:
    """A handshake without DATA is forgotten after PENDING_LIFE."""
    await bench.fall_silent()
    session = await bench.shake()
    await bench.pause(2000)
    await bench.begin(session)  # a host has 3 s
    await bench.fall_silent()
    session = await bench.shake()
    await bench.pause(PENDING_LIFE_MS + 500 + bench.late_ms)
    session.call(Info())
    await bench.unanswered(FrameKind.DATA, expected="no DATA under keys older than 10 s")
