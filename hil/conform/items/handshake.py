"""Handshakes: who is served, who is not, and what a new session does to the one before."""

from __future__ import annotations

from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec.structs import replace

from firmware_protocol.messages import (
    PENDING_LIFE_MS,
    Capabilities,
    FrameKind,
    Hello,
    Info,
)
from firmware_protocol.tablelink.framing import Frame
from firmware_protocol.tablelink.hello import prologue
from firmware_protocol.tablelink.noise import Handshake
from firmware_protocol.tablelink.plaintext import CommandCall
from hil.conform.tester.bench import ConformBench, HelloExchange, Trial, flipped

_NO_HS2: Final = "no HS2"


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
    bad = flipped(frame.payload, 60)
    bench.send_frame(Frame(FrameKind.DATA, frame.session, 0, bad), "DATA of the pending session")
    await session.check_alive("garbage does not end the session")
    mark = len(session.got)
    await bench.pause(1500)
    bench.require(len(session.got) - mark >= 4, "DEVICE_BEAT goes on in the session")
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
    former.say(CommandCall(900, former.boot, Info()))
    await bench.pause(bench.quiet_ms)
    bench.require(not former.got[former.mark :], "no DATA under the former session")
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


TRIALS: Final[dict[str, Trial]] = {
    "HS-1": paired_host,
    "HS-2": strange_host,
    "HS-3": replayed,
    "HS-4": changed_on_the_way,
    "HS-5": undisturbed,
    "HS-6": takes_over,
    "HS-7": forgotten,
}
