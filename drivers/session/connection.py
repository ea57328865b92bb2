"""A device's link on the port that it has today: bytes and time in, bytes and states out.

What the link says is told (`reports`), changes the state (`states`), and ends waiting calls. Who
finds and opens the port, and who keeps the records, is the supervisor. What goes wrong in here, in
whichever callback, is the end of the supervisor: half of what happened is not gone on with.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, Concatenate, Final, NoReturn, ParamSpec

from msgspec import Struct

from drivers.devices import PORT_OPEN, Calls, NotReady, Standing, State, Trigger, takes
from drivers.ports import Port, PortLost
from drivers.session import events as told
from drivers.session.lookup import Wanted, identity_of
from drivers.session.progress import Progress
from drivers.session.reports import Reports
from firmware_protocol.host import (
    BeatReceived,
    ClockMeasured,
    CommandUnanswered,
    HandshakeFailed,
    HelloReceived,
    HostLink,
    LinkEvent,
    LinkSessionEnded,
    LinkSessionStarted,
    RecordMissing,
    RecordReceived,
    ReplyReceived,
    RingHeld,
    RingResumed,
)
from firmware_protocol.messages.codec import Command, Reply
from firmware_protocol.messages.control import DeviceBeat
from firmware_protocol.messages.errors import (
    BadKey,
    HandshakeNotAuthentic,
    NoCommonVersion,
    SchemaDiffers,
    WeakKey,
    WrongDevice,
)
from firmware_protocol.tablelink.plaintext import EventRecord

PATIENCE: Final = 10.0
"""Seconds in which a session has to come about, and then RESUME has to be answered; after them the
port is opened anew."""

NOTE_AFTER: Final = 0.001
"""Seconds until it is looked when something is due next: once for all that is done meanwhile, and
not between a record and what it leads to. Nothing that is due comes so soon."""

DISPROVING: Final = (
    BadKey,
    HandshakeNotAuthentic,
    NoCommonVersion,
    SchemaDiffers,
    WeakKey,
    WrongDevice,
)
"""After these another attempt at once would end as this one did."""


_P = ParamSpec("_P")


def _first_cause(
    method: Callable[Concatenate[Wire, _P], None],
) -> Callable[Concatenate[Wire, _P], None]:
    """Whatever is raised in here, in a callback of the loop or in anybody's task, is noted."""

    @wraps(method)
    def noting(wire: Wire, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            method(wire, *args, **kwargs)
        except Exception as cause:
            wire.fail(cause)
            raise

    return noting


class Owner(Struct, frozen=True):
    """Whom a wire tells what it does not see to itself."""

    arrived: Callable[[EventRecord, int], None]
    beat: Callable[[int], None]
    changed: Callable[[State], None]


class Wire:
    """One device's link, state and port."""

    def __init__(
        self, wanted: Wanted, reports: Reports, clock: Callable[[], int], owner: Owner
    ) -> None:
        self.wanted = wanted
        self.why = "not started"
        """Why the state is what it is, for people."""
        self.link: HostLink | None = None
        self.held: RingHeld | None = None
        """What waits for two people."""
        self.beat: DeviceBeat | None = None
        """The last sign of life in this session."""
        self.clock_read: ClockMeasured | None = None
        self.gone = asyncio.Event()
        """Set when the port is to be let go of."""
        self.progress = Progress()
        self._reports = reports
        self._clock = clock
        self._owner = owner
        self._standing = Standing()
        self._calls = Calls()
        self._port: Port | None = None
        self._cause: Exception | None = None
        """Why nobody knows any more how the device stands."""
        self._failed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        """Wakes the link."""
        self._noting: asyncio.TimerHandle | None = None
        """Looks when that is to be."""
        self._patience: asyncio.TimerHandle | None = None

    @property
    def state(self) -> State:
        return self._standing.state

    def fail(self, cause: Exception) -> None:
        """Something went wrong half-way: from here on only what waits is ended."""
        if self._cause is None:
            self._cause = cause
            self.why = f"{type(cause).__name__}: {cause}"
            self._failed.set()

    async def failed(self) -> NoReturn:
        """Raises the first cause, if there is to be one."""
        await self._failed.wait()
        assert self._cause is not None
        raise self._cause

    async def call(self, command: Command) -> Reply:
        """See Supervisor.call()."""
        if self.link is None or self._cause is not None or not takes(self.state, command):
            raise NotReady(self.state, self.why)
        command_id = self.link.call(command, self._clock())
        with self._calls.waiting(command_id, command) as reply:
            self.flush()
            return await reply

    # --- the port -------------------------------------------------------------------------

    @_first_cause
    def serve(self, link: HostLink, port: Port) -> None:
        """The port is open: from here on the link speaks through it."""
        now = self._clock()
        self.gone.clear()
        self.link, self._port = link, port
        self._reports.opened(now, port.name)
        self.on(Trigger.PORT_OPENED, f"{port.name} is open")
        self._wait_patiently()
        self._take_in(link.open(now))

    @_first_cause
    def heard(self, data: bytes) -> None:
        """Bytes from the port."""
        if self.link is not None and self._port is not None and self._cause is None:
            self._take_in(self.link.receive(data, self._clock()))

    @_first_cause
    def lost(self, why: str) -> None:
        """The port has ended by itself."""
        if self._port is not None and self._cause is None:
            self._reports.tell(told.PortGone, self._clock(), self._port.name, why)
            self.on(Trigger.PORT_LOST, why)
            self.part()

    @_first_cause
    def part(self) -> None:
        """The port is left, whatever the reason. Does nothing when it was."""
        self._wait_no_more()
        if self._port is None:
            return
        self._port = None
        self.gone.set()
        if self.link is not None:
            self._take_in(self.link.lost(self._clock()))

    @_first_cause
    def drop_link(self) -> None:
        """The end of this link; the next port gets a new one."""
        link, self.link = self.link, None
        if link is not None:
            self._take_in(link.close(self._clock()))

    @_first_cause
    def adopted(self) -> None:
        """Two people have decided; it is the device's turn to answer."""
        self.held = None
        if self.state is State.RESUMING:
            self.why = "adopted by two people; where does the record go on?"
        self._wait_patiently()
        self.flush()

    def end(self, why: str) -> None:
        """Nothing goes on. After a failure in here nothing is told any more."""
        with ExitStack() as last:  # last in, first out; and all of it, whatever one raises
            last.callback(self._cancel)
            last.callback(self._wait_no_more)
            last.callback(self._tell_rest)
            last.callback(self.drop_link)
            last.callback(self._stop, why)
            last.callback(self.part)

    def _stop(self, why: str) -> None:
        self.on(Trigger.STOP, self.why if self._cause else why)

    def _tell_rest(self) -> None:
        if self._cause is None:
            self._reports.rest(self._clock())

    def _wait_patiently(self) -> None:
        """For the next step of a session."""
        self._wait_no_more()
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(PATIENCE, self._no_answer)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    @_first_cause
    def _no_answer(self) -> None:
        self._patience = None
        if self.state is not State.UNKEPT:  # there is something worse, and people know of it
            running = self.link is not None and self.link.running
            missing = "RESUME was not answered" if running else "no session came about"
            self.on(Trigger.NO_ANSWER, f"{missing} within {PATIENCE:.0f} s")
            self.part()

    # --- bytes and time -------------------------------------------------------------------

    @_first_cause
    def flush(self) -> None:
        """What the link has to say goes out, and its next time will be noted."""
        if self.link is not None:
            data = self.link.take()
            if data and self._port is not None:
                self._port.write(data)
        if self._noting is None:
            loop = asyncio.get_running_loop()
            self._noting = loop.call_later(NOTE_AFTER, self._note_time)

    @_first_cause
    def _note_time(self) -> None:
        """When the link or the reports want to be woken next."""
        self._cancel()
        self.progress.turn(self._clock(), self.link)
        times = (self.link.due() if self.link is not None else None, self._reports.due())
        due = min((one for one in times if one is not None), default=None)
        if due is not None:
            wait = max(0, due - self._clock()) / 1_000_000
            self._timer = asyncio.get_running_loop().call_later(wait, self._wake)

    def _cancel(self) -> None:
        for timer in (self._timer, self._noting):
            if timer is not None:
                timer.cancel()
        self._timer = self._noting = None

    @_first_cause
    def _wake(self) -> None:
        self._timer = None
        if self._cause is not None:
            return
        now = self._clock()
        self._reports.wake(now)
        self._take_in(self.link.wake(now) if self.link is not None else [])

    # --- states ---------------------------------------------------------------------------

    @_first_cause
    def on(self, trigger: Trigger, why: str) -> None:
        """Something has happened that the table of states answers."""
        self.progress.turn(self._clock(), self.link)
        former = self.state
        changed = self._standing.on(trigger)
        if changed or former not in PORT_OPEN:
            self.why = why
        if changed:
            if self._cause is None:
                self._reports.changed(self._clock(), former, self.state, why)
            self._owner.changed(self.state)

    def _link_on(self, trigger: Trigger, why: str) -> None:
        """As long as the port counts: once it is given up, the link only tells the rest."""
        if self.state in PORT_OPEN:
            self.on(trigger, why)

    # --- what the link says ---------------------------------------------------------------

    def _take_in(self, events: list[LinkEvent]) -> None:
        rest = deque(events)
        try:
            while rest and self._cause is None:
                now = self._clock()
                self._reports.heard(rest[0], now)
                self._act(rest[0], now)
                rest.popleft()
        finally:
            # Whatever has failed: nobody is to wait for ever.
            for event in rest:
                if isinstance(event, (ReplyReceived, CommandUnanswered)):
                    self._act(event, 0)
        if self._cause is not None:
            return
        if self._port is not None and self.state not in PORT_OPEN:
            self.part()
        self.flush()

    def _act(self, event: LinkEvent, now: int) -> None:
        act = _ACTS.get(type(event))
        if act is not None:
            act(self, event, now)

    def _greeted(self, event: HelloReceived, now: int) -> None:
        found, expected = identity_of(event.answer), self.wanted.identity
        if found == expected:
            self._link_on(Trigger.GREETED, "it has introduced itself")
            return
        self._reports.tell(told.Swapped, now, expected, found)
        also = " with another key" if found.serial == expected.serial else ""
        name = f"{found.device_class.name.lower()} {found.serial}"
        self._link_on(Trigger.SWAPPED, f"{name}{also} is there")

    def _turned_away(self, event: HandshakeFailed, _: int) -> None:
        hopeless = isinstance(event.error, DISPROVING)
        trigger = Trigger.DISPROVED if hopeless else Trigger.TURNED_AWAY
        self._link_on(trigger, str(event.error))

    def _session_began(self, event: LinkSessionStarted, _: int) -> None:
        self.held = None
        self._wait_patiently()
        trigger = Trigger.REKEYED if event.rekeyed else Trigger.SESSION_BEGAN
        self._link_on(trigger, "it has proven itself")

    def _resumed(self, event: RingResumed, _: int) -> None:
        self.held = None
        self._wait_no_more()
        self._link_on(Trigger.RESUMED, f"its ring goes up to {event.head}")

    def _hold(self, event: RingHeld, _: int) -> None:
        self.held = event
        self._wait_no_more()
        self._link_on(Trigger.HELD, f"{event.verdict.name}: two people decide")
        if self.state is State.RESUMING:
            self.why = f"{event.verdict.name}: two people decide"

    def _behind(self, event: RecordMissing, _: int) -> None:
        why = f"its ring goes up to {event.head}, and record {event.next} does not come"
        self._link_on(Trigger.BEHIND, why)

    def _session_ended(self, event: LinkSessionEnded, _: int) -> None:
        self.held = self.beat = self.clock_read = None
        self._link_on(Trigger.SESSION_ENDED, f"the session is over: {event.why.value}")

    def _arrived(self, event: RecordReceived, now: int) -> None:
        self._owner.arrived(event.record, now)

    def _replied(self, event: ReplyReceived, _: int) -> None:
        self._calls.replied(event.command_id, event.reply)

    def _unanswered(self, event: CommandUnanswered, _: int) -> None:
        self._calls.unanswered(event.command_id, sent=event.sent)

    def _heartbeat(self, event: BeatReceived, now: int) -> None:
        self.beat = event.beat
        self._owner.beat(now)

    def _clock_said(self, event: ClockMeasured, _: int) -> None:
        self.clock_read = event


_ACTS: Final[dict[type, Callable[[Wire, Any, int], None]]] = {
    HelloReceived: Wire._greeted,
    HandshakeFailed: Wire._turned_away,
    LinkSessionStarted: Wire._session_began,
    RingResumed: Wire._resumed,
    RingHeld: Wire._hold,
    RecordMissing: Wire._behind,
    LinkSessionEnded: Wire._session_ended,
    RecordReceived: Wire._arrived,
    ReplyReceived: Wire._replied,
    CommandUnanswered: Wire._unanswered,
    BeatReceived: Wire._heartbeat,
    ClockMeasured: Wire._clock_said,
}
"""The link's events that are more than told."""


class WireEars:
    """Hears one opening of a port; deaf once it is left."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.deaf = False
        self.why: str | None = None
        """Why the port has ended."""

    def heard(self, data: bytes) -> None:
        if not self.deaf:
            self._wire.heard(data)

    def lost(self, why: PortLost) -> None:
        self.why = why.reason
        if not self.deaf:
            self._wire.lost(why.reason)
