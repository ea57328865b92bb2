"""Commands: one at a time, repeated only where that is harmless, answered or given up."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from firmware_protocol.host import (
    CommandTimedOut,
    LinkBusy,
    LinkSessionStarted,
    ProtocolViolated,
    RecordCursor,
    ReplyReceived,
    RingHeld,
)
from firmware_protocol.host.commands import MAX_COMMANDS
from firmware_protocol.messages import (
    Command,
    DeckKind,
    DeviceClass,
    FaultCode,
    FrameLimit,
    Info,
    InfoReply,
    Lock,
    LockReply,
    LockState,
    OutOfRange,
    Refusal,
    Refused,
    Reread,
    RereadReply,
    Resume,
    ResumeMode,
    Selftest,
    SelftestReply,
    Spec,
    Start,
    StartReply,
    UnknownMessage,
    Verdict,
)
from firmware_protocol.tablelink import NO_CHAIN, CommandCall, CommandReply
from tests.long.fuzz.scripted import BOOT, EPOCH, Scripted, Wired, defects, lock

LOCKED = LockState.LOCKED


def ids(wired: Wired, kind: type[Command]) -> list[int]:
    return [
        what.command_id
        for what in wired.device.said
        if isinstance(what, CommandCall) and isinstance(what.command, kind)
    ]


def shuffler(**more: Any) -> Wired:
    device = Scripted(answer={"device_class": DeviceClass.SHUFFLER})
    device.device_class = DeviceClass.SHUFFLER
    wired = Wired.opened(
        device,
        cursor=RecordCursor(EPOCH, 0, NO_CHAIN),
        device_class=DeviceClass.SHUFFLER,
        **more,
    )
    assert wired.link.resumed
    return wired


def test_a_command_is_answered(wired: Wired) -> None:
    assert wired.call(lock(LOCKED)) == 3  # after INFO and RESUME
    assert wired.of(ReplyReceived) == [ReplyReceived(3, lock(LOCKED), LockReply(LOCKED))]


def test_a_refusal_is_an_answer(wired: Wired) -> None:
    refused = Refused(Lock.ID, Refusal.NOT_NOW, 4)
    wired.device.replies[Lock] = lambda _: refused
    wired.call(lock())
    assert [one.reply for one in wired.of(ReplyReceived)] == [refused]


def test_commands_are_sent_serially(wired: Wired) -> None:
    wired.device.mute = {Lock}
    first, second = wired.call(lock()), wired.call(lock(LOCKED))
    wired.pass_ms(190)
    assert ids(wired, Lock) == [first]
    wired.device.mute = set()
    wired.pass_ms(10)
    assert ids(wired, Lock) == [first, first, second]
    assert [one.command_id for one in wired.of(ReplyReceived)] == [first, second]


def test_an_idempotent_command_is_retried_until_its_deadline(wired: Wired) -> None:
    wired.device.mute = {Lock}
    ident = wired.call(lock())
    wired.pass_ms(499)
    assert (ids(wired, Lock), wired.of(CommandTimedOut)) == ([ident] * 3, [])
    wired.pass_ms(1)
    assert wired.of(CommandTimedOut) == [CommandTimedOut(ident, lock(), sent=True)]
    wired.pass_ms(1000)
    assert ids(wired, Lock) == [ident] * 3


def test_a_command_that_is_not_idempotent_is_never_retried() -> None:
    wired = shuffler()
    ident = wired.call(Start(6, 0, DeckKind.FULL_52))
    wired.pass_ms(600)
    assert ids(wired, Start) == [ident]
    assert wired.of(CommandTimedOut) == [
        CommandTimedOut(ident, Start(6, 0, DeckKind.FULL_52), sent=True)
    ]
    wired.say(CommandReply(ident, BOOT, StartReply(1)))  # too late: nobody waits for it any more
    assert not wired.of(ReplyReceived)


def test_a_second_reply_to_a_repeated_command_is_ignored(wired: Wired) -> None:
    ident = wired.call(lock())
    wired.forget()
    assert wired.say(CommandReply(ident, BOOT, LockReply(LockState.OPEN))) == []


def test_a_reply_to_another_host_boot_is_ignored(wired: Wired) -> None:
    wired.device.mute = {Lock}
    ident = wired.call(lock())
    assert wired.say(CommandReply(ident, BOOT + 1, LockReply(LockState.OPEN))) == []
    assert wired.say(CommandReply(ident, BOOT, LockReply(LockState.OPEN)))


def test_a_reply_of_another_kind_is_a_defect_and_no_answer(wired: Wired) -> None:
    wired.device.mute = {Lock}
    ident = wired.call(lock())
    for wrong in (SelftestReply(FaultCode.NONE, 0), Refused(Info.ID, Refusal.BUSY, 0)):
        assert defects(wired.say(CommandReply(ident, BOOT, wrong))) == [UnknownMessage]
        # Nothing that could be written down leads to what was said.
        defect = wired.of(ProtocolViolated)[-1].error
        assert (defect.__traceback__, defect.__context__) == (None, None)
    assert isinstance(wired.say(CommandReply(ident, BOOT, LockReply(LOCKED)))[0], ReplyReceived)


def test_a_selftest_continues_beside_the_others(wired: Wired) -> None:
    test = wired.call(Selftest())
    ident = wired.call(lock())
    assert [one.command_id for one in wired.of(ReplyReceived)] == [ident]
    wired.pass_ms(9000)
    assert ids(wired, Selftest) == [test]
    with pytest.raises(LinkBusy, match="SELFTEST"):
        wired.call(Selftest())
    wired.say(CommandReply(test, BOOT, SelftestReply(FaultCode.NONE, 0)))
    assert wired.of(ReplyReceived)[-1].command_id == test
    wired.call(Selftest())
    wired.pass_ms(10_000)
    assert isinstance(wired.of(CommandTimedOut)[-1].command, Selftest)


def test_only_so_many_wait(wired: Wired) -> None:
    wired.device.mute = {Lock}
    for _ in range(MAX_COMMANDS):
        wired.call(lock())
    with pytest.raises(LinkBusy, match="32 commands"):
        wired.call(lock())
    wired.pass_ms(500)
    wired.call(lock())
    wired.device.mute = set()
    wired.pass_ms(1000)
    assert len(wired.of(ReplyReceived)) == MAX_COMMANDS


# --- without a session, and across sessions -------------------------------------------------


def test_what_cannot_be_sent_in_time_is_dropped(wired: Wired) -> None:
    wired.link.lost(wired.now)
    ident = wired.call(lock())
    wired.pass_ms(499)
    assert not wired.of(CommandTimedOut)
    wired.pass_ms(1)
    assert wired.of(CommandTimedOut) == [CommandTimedOut(ident, lock(), sent=False)]
    wired.forget()
    wired.open()
    assert not wired.device.received(Lock)


def test_what_waits_is_sent_as_soon_as_it_may(wired: Wired) -> None:
    wired.link.lost(wired.now)
    ident = wired.call(lock())
    wired.pass_ms(400)
    wired.open()
    assert wired.of(ReplyReceived) == [ReplyReceived(ident, lock(), LockReply(LockState.OPEN))]


def test_an_idempotent_command_continues_in_the_next_session(wired: Wired) -> None:
    wired.device.mute = {Lock}
    ident = wired.call(lock())
    wired.link.lost(wired.now)
    wired.device.mute = set()
    wired.device.said.clear()
    wired.open()
    assert ids(wired, Lock) == [ident]
    assert [one.command_id for one in wired.of(ReplyReceived)] == [ident]


def test_a_command_that_is_not_idempotent_fails_when_its_session_ends() -> None:
    wired = shuffler()
    ident = wired.call(Start(6, 0, DeckKind.FULL_52))
    wired.take(wired.link.lost(wired.now))
    assert wired.of(CommandTimedOut) == [
        CommandTimedOut(ident, Start(6, 0, DeckKind.FULL_52), sent=True)
    ]
    wired.device.said.clear()
    wired.open()
    assert not wired.device.received(Start)


def test_a_command_that_is_not_idempotent_is_answered_across_a_rekey() -> None:
    wired = Wired.running(rekey_frames=12)
    ident = wired.call(Selftest())
    while len(wired.of(LinkSessionStarted)) < 2:
        wired.pass_ms(50)
    assert not wired.of(CommandTimedOut)
    wired.say(CommandReply(ident, BOOT, SelftestReply(FaultCode.NONE, 0)))
    assert wired.of(ReplyReceived)[-1].command_id == ident


def test_no_command_that_is_not_idempotent_starts_during_a_rekey() -> None:
    wired = shuffler(rekey_frames=12)
    wired.device.mute = {Info}
    while len(wired.device.sealers) == 1:
        wired.pass_ms(10, beats=False)
        wired.hear(wired.device.sealers[0].seal(bytes(56)))
    wired.device.replies[Start] = lambda _: StartReply(1)
    ident = wired.call(Start(6, 0, DeckKind.FULL_52))
    assert not wired.device.received(Start)
    wired.device.mute = set()
    wired.pass_ms(200)
    assert wired.of(ReplyReceived)[-1].command_id == ident
    assert wired.device.session in [frame.session for frame in wired.device.frames]


def test_while_held_only_reads_go() -> None:
    device = Scripted(3, oldest=3)
    wired = Wired.opened(device, cursor=RecordCursor(EPOCH, 1, device.records[0].chain))
    assert wired.of(RingHeld)
    device.replies[Reread] = lambda ask: RereadReply(device.records[ask.seq - 1].encode())
    wired.link.call(lock(), wired.now)
    reread = wired.call(Reread(EPOCH, 3))
    info = wired.call(Info())
    wired.pass_ms(500)
    assert [one.command_id for one in wired.of(ReplyReceived)] == [reread, info]
    assert (device.received(Lock), [one.sent for one in wired.of(CommandTimedOut)]) == ([], [False])


def test_a_host_that_holds_alone_may_still_lock_the_shoe() -> None:
    device = Scripted(3, verdict=Verdict.OK)
    wired = Wired.opened(device, cursor=RecordCursor(EPOCH, 3, b"another!"))
    assert wired.of(RingHeld)
    ident = wired.call(lock(LOCKED))
    assert wired.of(ReplyReceived)[-1].command_id == ident


def test_resume_waits_for_a_command_that_waits_for_its_reply() -> None:
    device = Scripted(3)
    wired = Wired.opened(device)
    device.mute = {Reread}
    device.said.clear()
    wired.call(Reread(EPOCH, 1))
    wired.adopt()
    assert not device.received(Resume)
    wired.pass_ms(500)
    assert [one.mode for one in device.received(Resume)] == [ResumeMode.ADOPT]
    assert wired.link.resumed


def test_a_refused_info_is_reported_and_retried() -> None:
    device = Scripted()
    info, device.replies[Info] = device.replies[Info], lambda _: Refused(Info.ID, Refusal.BUSY, 0)
    wired = Wired.opened(device, cursor=RecordCursor(EPOCH, 0, NO_CHAIN))
    wired.pass_ms(1100)
    assert [type(one.command) for one in wired.of(ReplyReceived)] == [Info] * 3
    assert not wired.of(CommandTimedOut)
    device.replies[Info] = info
    wired.pass_ms(500)
    assert wired.link.resumed


# --- what may be asked for ------------------------------------------------------------------


class Long(Command, frozen=True, gc=False):
    """A command that this version does not have: its frame is too long for some."""

    ID: ClassVar = 0x42
    NAME: ClassVar = "LONG"
    CLASS: ClassVar = DeviceClass.ANY
    FROM: ClassVar = "host"
    SINCE: ClassVar = 1
    SIZE: ClassVar = 226
    IDEMPOTENT: ClassVar = True
    DEADLINE_MS: ClassVar = 500
    REPLY: ClassVar = InfoReply
    SPEC: ClassVar = Spec("LONG", "<")


def test_a_frame_longer_than_the_device_takes_is_not_sent() -> None:
    device = Scripted(answer={"largest": FrameLimit.MEDIUM})
    wired = Wired.opened(device, cursor=RecordCursor(EPOCH, 0, NO_CHAIN))
    device.frames.clear()
    wired.call(Long())
    wired.pass_ms(500)
    assert max(len(frame.payload) for frame in device.frames) == 72
    assert [one.sent for one in wired.of(CommandTimedOut)] == [False]


def test_misuse_is_refused(wired: Wired) -> None:
    for command, problem, why in (
        (Resume(0, 0, NO_CHAIN, ResumeMode.CHECK), ValueError, "RESUME is sent by the link itself"),
        (Start(6, 0, DeckKind.FULL_52), ValueError, "START is not a command of a shoe"),
        (Reread(0, 1), OutOfRange, "REREAD.epoch: 0"),
    ):
        with pytest.raises(problem, match=why):
            wired.call(command)
    assert wired.call(lock()) == 3  # no number was lost on them
