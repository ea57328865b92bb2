"""Happenings of a link: reported once if repeated, and rate-limited if noise could cause them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import structlog

from drivers import events as happenings
from drivers.devices import LinkState
from drivers.events import AnyHappening
from drivers.session.lookup import WantedDevice, identity_of
from drivers.session.rate_limit import LatestValue, ReportLimiter
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
)
from firmware_protocol.messages import Command, DeviceState, Info, Refusal, Refused, Resume

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
        self._damage = ReportLimiter()
        self._suspicion = ReportLimiter()
        self._defects = ReportLimiter()
        self._alerts = ReportLimiter()

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

    def denied(self, at: int, port: str, why: str) -> None:
        self.tell(happenings.PortDenied, at, port, why)

    def opened(self, at: int, port: str) -> None:
        self.tell(happenings.PortOpened, at, port)

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
        report = REPORTERS.get(type(event))
        if report is not None:
            report(self, event, at)

    def due(self) -> int | None:
        """When wake() is due next; None: nothing to report."""
        times = [limiter.due() for limiter, _ in self._limiters()]
        times += self._flags.due(), self._counts.due()
        return min((time for time in times if time is not None), default=None)

    def wake(self, now: int) -> None:
        """Report the counts that are due."""
        for limiter, kind in self._limiters():
            if counts := limiter.due_counts(now):
                self.tell(kind, now, counts)
        self._report_latest(now, self._flags.due_value(now), self._counts.due_value(now))

    def rest(self, now: int) -> None:
        """Report all counts: the last call."""
        for limiter, kind in self._limiters():
            if counts := limiter.all_counts(now):
                self.tell(kind, now, counts)
        self._report_latest(now, self._flags.unreported(now), self._counts.unreported(now))

    def _limiters(self) -> tuple[tuple[ReportLimiter, Callable[..., AnyHappening]], ...]:
        return (
            (self._damage, happenings.Damage),
            (self._suspicion, happenings.Suspicion),
            (self._defects, happenings.Defect),
            (self._alerts, happenings.Alert),
        )

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
        self.tell(happenings.Introduced, at, identity, answer.maker, answer.model, answer.state)
        if identity != self._wanted.identity:
            self.tell(happenings.Swapped, at, self._wanted.identity, identity)

    def _turned_away(self, event: HandshakeFailed, at: int) -> None:
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

    def _resumed(self, event: RingResumed, at: int) -> None:
        self.tell(happenings.Resumed, at, event.epoch, event.oldest, event.head)

    def _held(self, event: RingHeld, at: int) -> None:
        self.tell(
            happenings.Held, at, event.verdict, event.epoch, event.oldest, event.head, event.chain
        )

    def _behind(self, event: RecordMissing, at: int) -> None:
        self.tell(happenings.StuckBehind, at, event.next, event.head)

    def _session_ended(self, event: LinkSessionEnded, at: int) -> None:
        self.tell(happenings.SessionEnded, at, event.why)

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

    def _alerted(self, event: AlertReceived, at: int) -> None:
        # Without its arg: what a device sends in clear is not repeated here.
        self._alerts.add(event.alert.code.name.lower())

    def _damaged(self, event: FramesDamaged, at: int) -> None:
        self._damage.add(event.cause.value, event.count)

    def _suspicious(self, event: FrameRejected, at: int) -> None:
        self._suspicion.add(event.error.name)

    def _defective(self, event: ProtocolViolated, at: int) -> None:
        self._defects.add(event.error.name)


_CLOCK_STEP: Final = 1_000

REPORTERS: Final[dict[type, Callable[[Reports, Any, int], None]]] = {
    HelloReceived: Reports._greeted,
    HandshakeFailed: Reports._turned_away,
    LinkSessionStarted: Reports._session_began,
    DeviceInfoReceived: Reports._informed,
    RingResumed: Reports._resumed,
    RingHeld: Reports._held,
    RecordMissing: Reports._behind,
    LinkSessionEnded: Reports._session_ended,
    BeatReceived: Reports._beat,
    ClockMeasured: Reports._clock,
    ReplyReceived: Reports._replied,
    CommandTimedOut: Reports._unanswered,
    AlertReceived: Reports._alerted,
    FramesDamaged: Reports._damaged,
    FrameRejected: Reports._suspicious,
    ProtocolViolated: Reports._defective,
}
"""All but RecordReceived, which contains a record."""
