"""What an event of the link means: happenings, rate-limited, and changes of the state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import structlog

from drivers import events as happenings
from drivers.devices import LinkState, Trigger
from drivers.events import AnyHappening
from drivers.session.lookup import WantedDevice, identity_of
from firmware_protocol.host import (
    AlertReceived,
    BeatReceived,
    ClockMeasured,
    CommandTimedOut,
    DeviceInfoReceived,
    FrameRejected,
    FramesDamaged,
    HandshakeFailed,
    HelloReceived,
    LinkEvent,
    LinkSessionEnded,
    LinkSessionStarted,
    ProtocolViolated,
    RecordMissing,
    ReplyReceived,
    RingHeld,
    RingResumed,
    SessionEnding,
)
from firmware_protocol.messages import (
    BadKey,
    Capabilities,
    Command,
    DeviceState,
    HandshakeNotAuthentic,
    Info,
    NoCommonVersion,
    Refusal,
    Refused,
    Resume,
    SchemaDiffers,
    Verdict,
    WeakKey,
    WrongDevice,
)

# --- rate limits -------------------------------------------------------------------------------

REPORT_INTERVAL_US: Final = 1_000_000
"""Minimum time between two reports."""
MAX_KEYS: Final = 32
"""Limit of kinds that are counted separately in one report."""
OTHERS: Final = "others"

Counts = tuple[tuple[str, int], ...]
T = TypeVar("T")


class ReportLimiter:
    """Counts events: the first is reported at once, the following at most once a second."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._next = 0

    def add(self, key: str, count: int = 1) -> None:
        known = key in self._counts or len(self._counts) < MAX_KEYS
        self._counts[key if known else OTHERS] += count

    def due(self) -> int | None:
        """Time of the next report; None: nothing to report."""
        return self._next if self._counts else None

    def due_counts(self, now: int) -> Counts:
        """The counts to report now, sorted by key; empty if nothing is due."""
        if not self._counts or now < self._next:
            return ()
        return self.all_counts(now)

    def all_counts(self, now: int) -> Counts:
        """All counts, due or not."""
        self._next = now + REPORT_INTERVAL_US
        counts = tuple(sorted(self._counts.items()))
        self._counts.clear()
        return counts


class LatestValue(Generic[T]):
    """A value whose first change is reported at once, and later ones at most once a second. The
    latest value wins."""

    def __init__(self, value: T) -> None:
        self._value = self._reported = value
        self._next = 0

    def set(self, value: T) -> None:
        self._value = value

    def set_reported(self, value: T) -> None:
        """The value is this, and was reported in another way."""
        self._value = self._reported = value

    def due(self) -> int | None:
        """Time of the next report; None: nothing to report."""
        return None if self._value == self._reported else self._next

    def due_value(self, now: int) -> T | None:
        """The value to report now; None if nothing is due."""
        return self.unreported(now) if now >= self._next else None

    def unreported(self, now: int) -> T | None:
        """The value if it was not reported yet, due or not."""
        if self._value == self._reported:
            return None
        self._next = now + REPORT_INTERVAL_US
        self._reported = self._value
        return self._value


# --- happenings --------------------------------------------------------------------------------

MAX_KNOWN: Final = 64
"""Limit of reported happenings that are cached: an unauthenticated peer can make more."""
_ONCE: Final = frozenset(
    {
        happenings.AttemptFailed,
        happenings.Doubled,
        happenings.Introduced,
        happenings.PortDenied,
        happenings.PortGone,
        happenings.PortOpened,
        happenings.Swapped,
    }
)

_COUNTED: Final = (
    happenings.Damage,
    happenings.Suspicion,
    happenings.Defect,
    happenings.Alert,
)
SAME_FIELDS: Final[dict[type, type[AnyHappening]]] = {
    RingResumed: happenings.Resumed,
    RingHeld: happenings.Held,
    RecordMissing: happenings.StuckBehind,
    LinkSessionEnded: happenings.SessionEnded,
}
"""Happenings with the fields of their event, by name."""

_log = structlog.get_logger("drivers")


class Reports:
    """The happenings of one device."""

    def __init__(self, wanted: WantedDevice, on_happening: Callable[[AnyHappening], None]) -> None:
        self._wanted = wanted
        self._on_happening = on_happening
        self._firmware = wanted.firmware
        self._boot = wanted.boot
        self._known: dict[tuple[object, ...], None] = {}
        """Happenings that were reported since the device was last ready."""
        self._reported_state: LinkState | None = None
        """The state that was last reported."""
        self._quiet = ""
        """Reason of the last change that was not reported."""
        self._opening_reported: set[str] = set()
        self._offset: int | None = None
        self._flags = LatestValue[DeviceState | None](None)
        self._counts = LatestValue((0, 0))
        self._limiters = {kind: ReportLimiter() for kind in _COUNTED}

    def tell(self, kind: Callable[..., AnyHappening], at: int, *fields: Any) -> None:
        """Report one happening to the listener and to the log. What a device, a cable or an unknown
        peer can cause repeatedly is reported once until the device is ready."""
        if kind in _ONCE and not self._is_news(kind, *fields):
            return
        happening = kind(self._wanted.serial, at, *fields)
        # No happening contains a card, so all of them may be logged.
        _log.info("device", happening=happening)
        self._on_happening(happening)

    # --- states and ports -----------------------------------------------------------------

    def changed(self, at: int, former: LinkState, state: LinkState, why: str) -> None:
        """Report a new change of state. Changes before it that were not reported become one."""
        if state is LinkState.READY:
            self._known.clear()
        elif not self._is_news(happenings.StateChanged, former, state, why):
            self._quiet = why
            return
        if self._reported_state not in (None, former):
            self.tell(happenings.StateChanged, at, self._reported_state, former, self._quiet)
        self._reported_state = state
        self.tell(happenings.StateChanged, at, former, state, why)

    def _is_news(self, *what: object) -> bool:
        if what in self._known:
            return False
        self._known[what] = None
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return True

    # --- events of the link ---------------------------------------------------------------

    def report(self, event: LinkEvent, at: int) -> None:
        """Report an event of the link, except records."""
        same_fields = SAME_FIELDS.get(type(event))
        if same_fields is not None:
            _serial, _at, *names = same_fields.__struct_fields__
            self.tell(same_fields, at, *(getattr(event, name) for name in names))
        elif type(event) in REPORTERS:
            REPORTERS[type(event)](self, event, at)

    def due(self) -> int | None:
        """When wake() is due next; None: nothing to report."""
        times = [limiter.due() for limiter in self._limiters.values()]
        times += self._flags.due(), self._counts.due()
        return min((time for time in times if time is not None), default=None)

    def wake(self, now: int) -> None:
        """Report the counts that are due."""
        for kind, limiter in self._limiters.items():
            if counts := limiter.due_counts(now):
                self.tell(kind, now, counts)
        self._report_latest(now, self._flags.due_value(now), self._counts.due_value(now))

    def rest(self, now: int) -> None:
        """Report all counts: the last call."""
        for kind, limiter in self._limiters.items():
            if counts := limiter.all_counts(now):
                self.tell(kind, now, counts)
        self._report_latest(now, self._flags.unreported(now), self._counts.unreported(now))

    def _report_latest(
        self, now: int, flags: DeviceState | None, counts: tuple[int, int] | None
    ) -> None:
        if flags is not None:
            self.tell(happenings.DeviceStands, now, flags)
        if counts is not None:
            self.tell(happenings.DeviceCounts, now, *counts)

    # --- one for each event ---------------------------------------------------------------

    def _greeted(self, event: HelloReceived, at: int) -> None:
        answer = event.answer
        identity = identity_of(answer)
        gateway = Capabilities.GATEWAY in answer.capabilities
        named = answer.maker, answer.model, answer.state, gateway
        self.tell(happenings.Introduced, at, identity, *named)
        if identity != self._wanted.identity:
            self.tell(happenings.Swapped, at, self._wanted.identity, identity)

    def _handshake_failed(self, event: HandshakeFailed, at: int) -> None:
        # A device that is off is asked twice a second: each failure after the first is no news.
        error = event.error
        self.tell(happenings.AttemptFailed, at, error.name, error.number, str(error))

    def _session_began(self, event: LinkSessionStarted, at: int) -> None:
        for what in [what for what in self._known if what[0] is happenings.AttemptFailed]:
            del self._known[what]
        self._opening_reported.clear()
        self._offset = None
        self.tell(happenings.SessionBegan, at, event.session, event.version, event.rekeyed)

    def _informed(self, event: DeviceInfoReceived, at: int) -> None:
        info = event.info
        self._flags.set_reported(info.state)
        self.tell(
            happenings.Informed, at, info.firmware, info.boot, info.cause, info.capacity, info.state
        )
        if self._firmware not in (b"", info.firmware):
            self.tell(happenings.FirmwareChanged, at, self._firmware, info.firmware)
        if self._boot not in (0, info.boot):
            self.tell(happenings.Restarted, at, self._boot, info.boot, info.cause)
            # A device counts from 0 after each start.
            self._counts.set_reported((0, 0))
        self._firmware, self._boot = info.firmware, info.boot

    def _beat(self, event: BeatReceived, at: int) -> None:
        self._flags.set(event.beat.state)
        self._counts.set((event.beat.damaged, event.beat.refused))

    def _clock(self, event: ClockMeasured, at: int) -> None:
        # It is read every ten seconds; only a change of the offset is reported.
        if self._offset is not None and abs(event.offset_us - self._offset) < _CLOCK_STEP:
            return
        self._offset = event.offset_us
        self.tell(happenings.ClockRead, at, event.offset_us, event.uncertainty_us)

    def _replied(self, event: ReplyReceived, at: int) -> None:
        if isinstance(event.reply, Refused) and self._is_first(event.command, "refused"):
            why = Refusal(event.reply.why).name.lower()
            command = event.command.NAME
            self.tell(
                happenings.CommandRefused, at, command, event.command_id, why, event.reply.arg
            )

    def _unanswered(self, event: CommandTimedOut, at: int) -> None:
        command = event.command
        if not self._is_first(command, "unanswered"):
            return
        result = command.RESULT.NAME if command.RESULT is not None else None
        self.tell(happenings.CommandOverdue, at, command.NAME, event.command_id, event.sent, result)

    def _is_first(self, command: Command, what: str) -> bool:
        """INFO and RESUME are retried without end: a failure is reported once a session."""
        if not isinstance(command, (Info, Resume)):
            return True
        key = f"{command.NAME} {what}"
        known = key in self._opening_reported
        self._opening_reported.add(key)
        return not known

    def _alerted(self, event: AlertReceived, _: int) -> None:
        # Without its arg: what a device sends in clear is not repeated here.
        self._limiters[happenings.Alert].add(event.alert.code.name.lower())

    def _damaged(self, event: FramesDamaged, _: int) -> None:
        self._limiters[happenings.Damage].add(event.cause.value, event.count)

    def _suspicious(self, event: FrameRejected, _: int) -> None:
        self._limiters[happenings.Suspicion].add(event.error.name)

    def _defective(self, event: ProtocolViolated, _: int) -> None:
        self._limiters[happenings.Defect].add(event.error.name)


_CLOCK_STEP: Final = 1_000

REPORTERS: Final[dict[type, Callable[[Reports, Any, int], None]]] = {
    HelloReceived: Reports._greeted,
    HandshakeFailed: Reports._handshake_failed,
    LinkSessionStarted: Reports._session_began,
    DeviceInfoReceived: Reports._informed,
    BeatReceived: Reports._beat,
    ClockMeasured: Reports._clock,
    ReplyReceived: Reports._replied,
    CommandTimedOut: Reports._unanswered,
    AlertReceived: Reports._alerted,
    FramesDamaged: Reports._damaged,
    FrameRejected: Reports._suspicious,
    ProtocolViolated: Reports._defective,
}
"""With SAME_FIELDS all but RecordReceived, which contains a record."""

# --- changes of the state ----------------------------------------------------------------------


DISPROVING: Final = (
    BadKey,
    HandshakeNotAuthentic,
    NoCommonVersion,
    SchemaDiffers,
    WeakKey,
    WrongDevice,
)
"""After these errors an immediate retry would fail in the same way."""


def trigger_of(event: LinkEvent, wanted: WantedDevice) -> tuple[Trigger, str] | None:
    """The trigger and its reason as text; None for an event that changes no state."""
    find = TRIGGERS.get(type(event))
    return None if find is None else find(event, wanted)


def _hello_trigger(event: HelloReceived, wanted: WantedDevice) -> tuple[Trigger, str]:
    found, expected = identity_of(event.answer), wanted.identity
    if found == expected:
        return Trigger.GREETED, "it has introduced itself"
    also = " with another key" if found.serial == expected.serial else ""
    name = f"{found.device_class.name.lower()} {found.serial}"
    return Trigger.SWAPPED, f"{name}{also} is there"


def held_text(held: RingHeld, device: str) -> str:
    """Why the log of a device is held, for people."""
    if held.is_behind:
        return (
            f"this record ends before events that the {device} was told are stored, up to "
            f"{held.acked_seq}: an older copy?"
        )
    if held.verdict is Verdict.NEW_EPOCH and held.acked_seq:
        return (
            f"this record has nothing of the log of the {device}, which was told that its events "
            f"up to {held.acked_seq} are stored: a new record, or an older copy?"
        )
    return _HELD[held.verdict].format(device=device)


_HELD: Final = {
    Verdict.GAP: "the log of the {device} has lost events that are not in this record",
    Verdict.FORK: "the log of the {device} and this record disagree",
    Verdict.NEW_EPOCH: "this record has nothing of the log of the {device}",
}


def _failure_trigger(event: HandshakeFailed, _: WantedDevice) -> tuple[Trigger, str]:
    disproved = isinstance(event.error, DISPROVING)
    return Trigger.DISPROVED if disproved else Trigger.HANDSHAKE_FAILED, str(event.error)


STALLED: Final = LinkSessionEnded(SessionEnding.STALLED)


def _ending_trigger(event: LinkSessionEnded, _: WantedDevice) -> tuple[Trigger, str]:
    if event == STALLED:
        return Trigger.STALLED, "this host stood still, so the session is started again"
    return Trigger.SESSION_ENDED, f"the session is over: {event.why.value}"


TRIGGERS: Final[dict[type, Callable[[Any, WantedDevice], tuple[Trigger, str]]]] = {
    HelloReceived: _hello_trigger,
    HandshakeFailed: _failure_trigger,
    LinkSessionStarted: lambda event, _: (
        Trigger.REKEYED if event.rekeyed else Trigger.SESSION_BEGAN,
        "it has proven itself",
    ),
    RingResumed: lambda event, _: (Trigger.RESUMED, f"its ring goes up to {event.head}"),
    RingHeld: lambda event, wanted: (
        Trigger.HELD,
        f"{held_text(event, wanted.device_class.name.lower())}: two people decide",
    ),
    RecordMissing: lambda event, _: (
        Trigger.BEHIND,
        f"its ring goes up to {event.head}, and record {event.next} does not come",
    ),
    LinkSessionEnded: _ending_trigger,
}
