"""Frames and HELLO: what the device makes of bytes in clear."""

from __future__ import annotations

from typing import Final

from firmware_protocol.messages import SCHEMA_HASHES, FrameKind, HelloRsp
from firmware_protocol.tablelink.framing import Frame
from hil.conform.tester.bench import ConformBench, Trial, flipped, raw

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
            damaged = flipped(hello, at, 1 << bit)
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
        (raw(b"\x17" + decoded[1:]), "kind 7, otherwise a HELLO"),
        (raw(b"\x1e" + decoded[1:]), "kind 14, otherwise a HELLO"),
        (raw(b"\x00" + decoded[1:]), "a HELLO of version 0"),
        (raw(b"\x20" + decoded[1:]), "a HELLO of version 2"),
        (raw(b"\xf0" + decoded[1:]), "a HELLO of version 15"),
        (raw(flipped(decoded, 1)), "HELLO with n 33, 32 bytes"),
        (raw(flipped(decoded, 1) + b"\0"), "HELLO with n 33, 33 bytes"),
        (raw(decoded[:1] + b"\x1f" + decoded[2:-1]), "HELLO with n 31, 31 bytes"),
        (raw(decoded + b"\0"), "HELLO with a byte more than n"),
        (raw(decoded[:2] + b"\0\0" + decoded[4:]), "HELLO of session 0"),
        (raw(flipped(decoded, 4)), "HELLO with counter 1"),
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
            bench.require(
                not (field not in ("random", "state") and was != now),
                f"`{field}` as before: {was!r}",
                repr(now),
            )


async def introduces_itself(bench: ConformBench) -> None:
    """HELLO_RSP names the profile's class, legal texts, and the schema hash of the common
    version."""
    hello_rsp = (await bench.greet()).hello_rsp  # greet() has validated the texts
    bench.require(
        hello_rsp.device_class is bench.device_class,
        bench.device_class.name,
        hello_rsp.device_class.name,
    )
    bench.require(
        hello_rsp.version_min <= 1 <= hello_rsp.version_max,
        "version 1",
        f"{hello_rsp.version_min} to {hello_rsp.version_max}",
    )
    newer = (await bench.greet(version_min=1, version_max=9, schema=bytes(8))).hello_rsp
    # The schema of a later version is unknown here.
    expected = SCHEMA_HASHES.get(min(9, newer.version_max), newer.schema)
    for found, schema in ((hello_rsp.schema, SCHEMA_HASHES[1]), (newer.schema, expected)):
        bench.require(found == schema, f"schema {schema.hex()}", found.hex())
    for device_class in range(4):  # the class in HELLO has no effect
        again = (await bench.greet(device_class=device_class)).hello_rsp
        bench.require(
            again.device_class is bench.device_class,
            bench.device_class.name,
            again.device_class.name,
        )


async def no_common_version(bench: ConformBench) -> None:
    """A HELLO of versions 15 to 15 is answered; HS1 after it is not."""
    for version in (1, 15):
        greeting = await bench.greet(version_min=15, version_max=15, schema=bytes(8))
        shake, frame = bench.hs1(greeting, text="HS1 after a HELLO of versions 15 to 15")
        shake.wipe()
        if version == 15:
            bench.send(raw(b"\xf2" + frame.decoded()[1:]), "the HS1 in version 15")
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


TRIALS: Final[dict[str, Trial]] = {
    "FR-1": hello_answered,
    "FR-2": flips,
    "FR-3": flood,
    "FR-4": empties_and_pauses,
    "FR-5": misshapen,
    "HE-1": random_differs,
    "HE-2": introduces_itself,
    "HE-3": no_common_version,
    "HE-4": ill_formed,
}
