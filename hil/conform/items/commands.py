"""Commands: answered once and in time, refused by name, never carried out twice."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from firmware_protocol.conformance import Profile
from firmware_protocol.device import InjectDefect
from firmware_protocol.messages import (
    COMMANDS,
    Abort,
    Arm,
    ButtonMask,
    Buzz,
    BuzzPattern,
    Command,
    DeckKind,
    DeviceClass,
    Eject,
    Fault,
    Info,
    InfoReply,
    LampPattern,
    Lamps,
    Lock,
    LockState,
    Refusal,
    Refused,
    Reply,
    Reread,
    RereadReply,
    Resume,
    ResumeMode,
    ResumeReply,
    Selftest,
    SelftestReply,
    Start,
    Verdict,
)
from firmware_protocol.tablelink import NO_CHAIN, CommandCall, encode_plaintext
from hil.conform.tester import (
    ACTIONS,
    ConformBench,
    ItemSkipped,
    TesterSession,
    call_bytes,
    described,
    flip_bits,
    message_text,
)

_SEAT: Final = 1
_BUZZES: Final = "mechanism.buzzes"
_DARK: Final = Lamps(_SEAT, bytes(3), LampPattern.OFF, 0, 0)
_RESUME_BODY: Final = Resume(1, 1, NO_CHAIN, ResumeMode.CHECK).encode()


class ClassCommands(Struct, frozen=True):
    """The commands of a class of devices."""

    own: tuple[Command, ...]
    """Harmless ones: EJECT is sent during a shuffle, so that no door opens."""
    idempotent: Command
    out_of_range: tuple[tuple[int, bytes, int], ...]
    """Id, body and offset of a field that is out of its range."""


_CLASSES: Final[dict[Profile, ClassCommands]] = {
    "shoe": ClassCommands(
        (Lock(LockState.LOCKED), Reread(1, 1)),
        Lock(LockState.LOCKED),
        (
            (Lock.ID, b"\x02", 0),
            (Lock.ID, b"\xff", 0),
            (Reread.ID, bytes(4) + b"\x01\0\0\0", 0),
            (Reread.ID, b"\x01\0\0\0" + bytes(4), 4),
        ),
    ),
    "shuffler": ClassCommands(
        (Abort(), Start(6, 0, DeckKind.FULL_52), Eject(), Abort()),
        Abort(),
        ((Start.ID, b"\0\0", 0), (Start.ID, b"\x0d\0", 0)),
    ),
    "station": ClassCommands(
        (Arm(_SEAT, ButtonMask(0), 0, 0), _DARK, Buzz(BuzzPattern.OFF)),
        _DARK,
        (
            (Arm.ID, b"\0\x01\0\x01\0\x01\0", 0),
            (Arm.ID, b"\x10\x01\0\x01\0\x01\0", 0),
            (Arm.ID, b"\x01\0\x02\x01\0\x01\0", 1),
            (Arm.ID, b"\x01\0\x80\x01\0\x01\0", 1),
            (Lamps.ID, b"\x10\1\1\1\1\1\1\1\1", 0),
            (Lamps.ID, b"\x01\1\1\1\x05\1\1\1\1", 4),
            (Buzz.ID, b"\x05", 0),
        ),
    ),
}


async def repeated(bench: ConformBench) -> str | None:
    """A repeat of a command that is not idempotent gets the same reply, also while it is under
    way, and nothing is done twice."""
    session = await bench.session()
    defect = await _inject_defect(bench)
    mark, came = len(session.accepted), len(session.received)
    for _ in range(2):
        session.call(Selftest(), ident=50)  # a repeat of one under way waits for its reply
    first = await session.ask(Selftest(), ident=50)
    if defect:
        bench.require_type(first, SelftestReply)
    await bench.pause(200)
    shown = message_text(first)
    others = [
        one.reply for one in session.replies(came) if one.command_id == 50 and one.reply != first
    ]
    bench.require_none(others, f"{shown} alone")
    faults = _faults(session, mark)
    await _repair(bench, defect)
    mark = len(session.accepted)
    for _ in range(2):
        again = await session.ask(Selftest(), ident=50)
        bench.require_equal(again, first, f"{shown}, as before")
    await bench.pause(300)
    bench.require_none(_faults(session, mark), "no further FAULT for a repeat")
    new = await bench.session()  # the memory outlives a session
    again = await new.ask(Selftest(), ident=50, boot=session.boot)
    bench.require_equal(again, first, f"{shown}, also in the next session")
    remark = await _buzzes_once(bench, new)
    bench.require(
        not (defect and not faults and isinstance(first, SelftestReply) and first.code),
        "a FAULT event too for what SELFTEST found",
    )
    return remark


async def _buzzes_once(bench: ConformBench, session: TesterSession) -> str | None:
    """Count sounds, if the operator can; else returns a remark."""
    if bench.profile != "station" or not bench.operator.exact:
        return None
    try:
        before = await described(bench, _BUZZES, int)
    except ItemSkipped as lacking:
        return f"sounds were not counted: needs {lacking.why}"
    first = await session.ask(Buzz(BuzzPattern.TICK), ident=60)
    again = await session.ask(Buzz(BuzzPattern.TICK), ident=60)
    played = await described(bench, _BUZZES, int) - before
    bench.require(
        again == first and played <= 1,
        f"{message_text(first)} again, and one sound at most",
        f"{message_text(again)}, and {played} sounds",
    )
    return None


def _faults(session: TesterSession, mark: int) -> list[Fault]:
    return [one.event for one in session.accepted[mark:] if isinstance(one.event, Fault)]


async def _inject_defect(bench: ConformBench) -> InjectDefect | None:
    """Inject a defect for SELFTEST, if possible, so that a test that is run again has another
    reply."""
    if not bench.operator.exact:
        return None
    defect = ACTIONS[bench.profile].defect
    done = await bench.try_request(defect)
    await bench.pause(100)
    return defect if done else None


async def _repair(bench: ConformBench, defect: InjectDefect | None) -> None:
    if defect is not None:
        await bench.request(replace(defect, on=False))
        await bench.pause(100)


async def stale(bench: ConformBench) -> None:
    """A command older than those remembered is refused STALE, if it is not idempotent."""
    session = await bench.session()
    await _done(bench, session, 100)
    session.check_refused(await session.ask(Selftest(), ident=50), Refusal.STALE)
    for ident in range(101, 109):
        await _done(bench, session, ident)
    session.check_refused(await session.ask(Selftest(), ident=100), Refusal.STALE)
    await _done(bench, session, 101)
    for ident, command in enumerate((Info(), _CLASSES[bench.profile].idempotent), 1):
        reply = await session.ask(command, ident=ident)
        bench.require(
            not (isinstance(reply, Refused) and reply.why is Refusal.STALE),
            "an idempotent command carried out, whatever its id",
            message_text(reply),
        )
    await session.check_alive()


async def _done(bench: ConformBench, session: TesterSession, ident: int) -> None:
    bench.require_type(await session.ask(Selftest(), ident=ident), SelftestReply)


async def unknown(bench: ConformBench) -> None:
    """Commands of other classes, reserved and unknown ids are refused UNKNOWN."""
    session = await bench.session()
    foreign = [
        kind
        for kind, command in COMMANDS.items()
        if command.CLASS not in (DeviceClass.ANY, bench.device_class)
    ]
    for kind in (*foreign, 0x43, 0x48, 0x4F, 0x52, 0x58, 0x5F, 0x63, 0x73, 0x10, 0xC0, 0xFF, 0x00):
        await _unknown(bench, session, kind)
    data = call_bytes(foreign[0], session.next_id, session.boot, b"\x77", flags=9, size=120)
    await _refused_bytes(bench, session, data, Refusal.UNKNOWN, "a foreign command, misshapen")


async def _unknown(bench: ConformBench, session: TesterSession, kind: int) -> None:
    data = call_bytes(kind, session.next_id, session.boot)
    await _refused_bytes(bench, session, data, Refusal.UNKNOWN, f"COMMAND {kind:#04x}")


async def _refused_bytes(
    bench: ConformBench, session: TesterSession, data: bytes, why: Refusal, text: str
) -> Refused:
    session.next_id += 1
    reply = await session.ask_bytes(data, text, int.from_bytes(data[4:8], "little"))
    if reply is None:
        raise bench.finding(f"REFUSED {why.name} within 500 ms")
    refused, kind = session.check_refused(reply, why), data[2]
    shown = message_text(refused)
    bench.require(refused.command == kind, f"REFUSED that names {kind:#04x}", shown)
    return refused


async def malformed(bench: ConformBench) -> None:
    """A field out of its range, and padding that is not zero, is refused MALFORMED."""
    session = await bench.session()
    ranges = ((Resume.ID, _RESUME_BODY[:16] + b"\x02", 16), *_CLASSES[bench.profile].out_of_range)
    for kind, body, offset in ranges:
        data = call_bytes(kind, session.next_id, session.boot, body)
        text = f"{COMMANDS[kind].NAME} with a field at {offset} out of its range"
        refused = await _refused_bytes(bench, session, data, Refusal.MALFORMED, text)
        bench.require(
            refused.arg == offset, f"REFUSED MALFORMED with arg {offset}", message_text(refused)
        )
    for command in (Info(), Selftest(), *_CLASSES[bench.profile].own[:1]):
        whole = encode_plaintext(CommandCall(1, session.boot, command))
        size = command.SPEC.size
        for data, text in (
            (flip_bits(whole, 55), "its last byte of padding 1"),
            (flip_bits(whole, 16 + size, 0x80), "its first byte of padding 128"),
            (flip_bits(whole, 1), "a flag set"),
            (whole[:3] + bytes((size + 1,)) + whole[4:], "len one too large"),
            (whole.ljust(120, b"\0"), "a plaintext of 120 bytes"),
        ):
            numbered = data[:4] + session.next_id.to_bytes(4, "little") + data[8:]
            sent = f"{command.NAME} with {text}"
            refused = await _refused_bytes(bench, session, numbered, Refusal.MALFORMED, sent)
            bench.require(not refused.arg, "REFUSED MALFORMED with arg 0", message_text(refused))
    await session.check_alive()


async def not_resumed(bench: ConformBench) -> None:
    """Unless the last RESUME was OK, all but INFO, RESUME and REREAD is refused NOT_RESUMED."""
    session = await bench.session(resume=False)
    await _only_some(bench, session)
    ring = await session.learn()
    await _only_some(bench, session)
    if bench.profile == "shoe" and ring.oldest <= ring.head:
        await session.demand(Reread(ring.epoch, ring.head), RereadReply)
    await session.catch_up()
    after = "SELFTEST_REPLY after RESUME"
    bench.require_type(await session.ask(Selftest()), SelftestReply, after)
    fork = Resume(ring.epoch, 0xFFFFFFFF, ring.chain, ResumeMode.CHECK)
    bench.require(
        (await session.demand(fork, ResumeReply)).verdict is not Verdict.OK,
        "FORK for next 0xFFFFFFFF",
    )
    await _only_some(bench, session)
    await session.catch_up()


async def _only_some(bench: ConformBench, session: TesterSession) -> None:
    await session.demand(Info(), InfoReply)
    for command in (Selftest(), *_CLASSES[bench.profile].own):
        if isinstance(command, Reread):
            reply = await session.ask(command)
            refused = isinstance(reply, Refused) and reply.why is Refusal.NOT_RESUMED
            shown = message_text(reply)
            bench.require(not refused, "REREAD carried out before RESUME", shown)
        else:
            await session.refused(command, Refusal.NOT_RESUMED)


async def in_time(bench: ConformBench) -> None:
    """Every command is answered within its deadline, with its own reply or REFUSED."""
    session = await bench.session()
    ring = await session.learn()
    await session.catch_up()
    resume = Resume(ring.epoch, ring.head + 1, ring.chain, ResumeMode.CHECK)
    for command in (Info(), resume, Selftest(), *_CLASSES[bench.profile].own):
        reply = await session.ask(command)
        if isinstance(command, Info | Resume | Selftest):
            bench.require_type(reply, command.REPLY)
    # A command beside a SELFTEST that may still be at work.
    number = session.call(Selftest())
    mark = len(session.received)
    await session.check_alive("INFO is answered beside a SELFTEST")
    await session.answer(Selftest(), number, 0)
    for kind in (0x43, 0x58):
        await _unknown(bench, session, kind)
    strays = [one for one in session.replies(mark) if one.host_boot != session.boot]
    bench.require_none(strays, "replies with the command's host boot")


async def other_boot(bench: ConformBench) -> None:
    """The same command id under another host boot is another command."""
    session = await bench.session()
    await _done(bench, session, 90)
    for boot, ident in ((session.boot ^ 0xFFFF0, 90), (session.boot ^ 0xFF00, 3)):
        expected = f"SELFTEST_REPLY for command {ident} of another host boot"
        reply = await session.ask(Selftest(), ident=ident, boot=boot)
        bench.require_type(reply, SelftestReply, expected)
    await _changed_result(bench, session)


async def _changed_result(bench: ConformBench, session: TesterSession) -> None:
    """With an injected defect: the command of the other boot is not answered from the cache."""
    defect = await _inject_defect(bench)
    if defect is None:
        return
    try:
        well = await session.ask(Selftest(), ident=90)
        ill: Reply = await session.ask(Selftest(), ident=90, boot=session.boot ^ 0xF0F0F0)
    finally:
        await _repair(bench, defect)
    bench.require(ill != well, "a new SELFTEST under another host boot", message_text(ill))
