"""Supervisor of one device: finds it, opens its port, resumes its log, and retries when it is lost.

    supervisor = Supervisor(wanted, store, own=keys.existing_own, on_happening=record)
    task = asyncio.create_task(supervisor.run())
    await asyncio.wait_for(supervisor.ready(), 30)
    await cast(ShoeDriver, supervisor.driver).open_gate()

A device whose ring the record does not know is Held as NEW_EPOCH, also right after pairing, until
two people adopt() it. Event loop only. What events change: the table of states in drivers.devices.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import wraps
from typing import Concatenate, Final, NoReturn, ParamSpec, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from drivers import events as happenings
from drivers.devices import (
    DRIVERS,
    PORT_OPEN,
    Driver,
    LinkState,
    NotReady,
    PendingCommands,
    StateMachine,
    Trigger,
    accepts,
)
from drivers.keys import KeyProblem, two_people
from drivers.ports import Address, Port, PortRefused, monotonic_us, open_port
from drivers.session.acknowledge import (
    Acknowledger,
    AdoptedRing,
    NothingHeld,
    RecordStore,
    StoreFailed,
    text_of,
)
from drivers.session.lookup import Backoff, OpenPort, PortSearch, WantedDevice, close, open_found
from drivers.session.opening import ANSWER_TIMEOUT, PortOpening
from drivers.session.reports import STALLED, Reports, trigger_of
from drivers.session.timer import DueTimer
from firmware_protocol.host import (
    HelloReceived,
    HostLink,
    LinkEvent,
    LinkSessionEnded,
    LinkSessionStarted,
    RecordReceived,
    RingHeld,
    RingResumed,
)
from firmware_protocol.messages import Command, DeviceClass, Reply

TIMER_DELAY: Final = 0.005
"""Seconds until the timer is set: once for a batch of activity. Nothing is due earlier."""
RETRY_FIRST: Final = 0.1
RETRY_MAX: Final = 1.0
RETRY_REFUSED: Final = 5.0
"""Seconds between retries if a different device is there."""
STEADY_US: Final = 1_000_000
"""Microseconds of being ready after which the backoff starts again at RETRY_FIRST."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _first_cause(
    method: Callable[Concatenate[Supervisor, _P], _R],
) -> Callable[Concatenate[Supervisor, _P], _R]:
    """An exception in here ends run(), also in another task or in a callback of the loop."""

    @wraps(method)
    def noting(supervisor: Supervisor, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(supervisor, *args, **kwargs)
        except Exception as cause:
            supervisor.fail(cause)
            raise

    return noting


class Supervisor:
    """Supervises one device; the CommandChannel of its driver."""

    def __init__(
        self,
        wanted: WantedDevice,
        store: RecordStore,
        *,
        own: Callable[[], X25519PrivateKey],
        on_happening: Callable[[happenings.AnyHappening], None],
        find: Callable[[WantedDevice], Awaitable[Address]] | None = None,
        opener: OpenPort = open_port,
        clock: Callable[[], int] = monotonic_us,
    ) -> None:
        """`own` returns the host's key or raises KeyProblem. What `on_happening` raises ends run().
        Neither may block."""
        self.wanted = wanted
        self.why = "not started"
        """Why the state is what it is, for people."""
        self.held: RingHeld | None = None
        """The ring that waits for two people."""
        self.failure: Exception | None = None
        """Why nothing is stored any more, until recovered(): the first cause."""
        self.link: HostLink | None = None
        """Outlives its port: it is replaced only after its position has become unknown."""
        self.port: Port | None = None
        self._past = (0, 0)
        """Repeats and gaps of the links before this one."""
        self.last_active_us = 0
        """When something was last done for the device, by the host's monotonic clock."""
        self.driver: Driver = DRIVERS[wanted.device_class](self)
        self._own = own
        self._find = find or PortSearch()
        self._opener = opener
        self._clock = clock
        self._reports = Reports(wanted, on_happening)
        self._machine = StateMachine()
        self._commands = PendingCommands()
        self._acknowledger = Acknowledger(store, self.driver, wanted.serial)
        self._adopting: asyncio.Task[None] | None = None
        self._opening: PortOpening | None = None
        self._port_unused = asyncio.Event()
        """Set when the port is to be closed."""
        self._began = self._ended = False
        self._state_changed = asyncio.Event()
        """Set when the state has changed, and then replaced."""
        self._recovered, self._failed = asyncio.Event(), asyncio.Event()
        self._backoff = Backoff(RETRY_FIRST, RETRY_MAX)
        self._ready_at: int | None = None
        self._answer_by: int | None = None
        """When the device must have answered the next step of a session."""
        self._timer = DueTimer(clock, self._due, self._wake)
        self._timer_setter: asyncio.TimerHandle | None = None
        self._cause: Exception | None = None
        """Why the state of the device is not known any more."""

    # --- public face ----------------------------------------------------------------------

    @property
    def device_class(self) -> DeviceClass:
        return self.wanted.device_class

    @property
    def state(self) -> LinkState:
        return self._machine.state

    @property
    def repeats(self) -> int:
        """Records that arrived again although they were stored."""
        return self._past[0] + (0 if self.link is None else self.link.repeats)

    @property
    def gaps(self) -> int:
        """Records that arrived before one that was missing."""
        return self._past[1] + (0 if self.link is None else self.link.gaps)

    async def ready(self) -> None:
        """Returns when the device is ready. Waits also for run() to start, and while the device is
        absent, refused, held or unkept: the caller sets the timeout. Raises NotReady if run() has
        ended, or ends."""
        while self.state is not LinkState.READY:
            if self._ended:
                raise NotReady(self.state, self.why)
            await self._state_changed.wait()

    async def call(self, command: Command) -> Reply:
        """The device's reply.

        Raises NotReady, LinkBusy, or for an invalid command ValueError or ProtocolError: nothing
        was sent. Raises CommandRefusedError (nothing was done) or CommandUnansweredError (the
        result may be unknown)."""
        link = self.link
        if link is None or self._cause is not None or not accepts(self.state, command):
            raise NotReady(self.state, self.why)
        command_id = link.call(command, self._clock())
        with self._commands.waiting(command_id, command) as reply:
            self._flush()
            return await reply

    def recovered(self) -> None:
        """Records can be stored again: start again from the store's position.

        Raises StoreFailed, without side effects, if the store does not know its position."""
        if self.failure is None:
            raise ValueError("recovered(): nothing has failed")
        self._acknowledger.position()
        self.failure = None
        self._recovered.set()
        self._tell(happenings.KeepMended, self._clock())
        self._on(Trigger.RECOVERED, "records can be stored again")
        self._disconnect()
        self._reset_link()

    def fail(self, cause: Exception) -> None:
        """The state of the device is not known any more: run() ends with the first such cause."""
        if self._cause is None:
            self._cause = cause
            self.why = f"{type(cause).__name__}: {cause}"
            self._failed.set()

    # --- adoption -------------------------------------------------------------------------

    async def adopt(self, by: tuple[str, str], *, skip: bool = False) -> None:
        """Two people accept the device's ring as it is. Durable before it takes effect.

        Records are wanted from the oldest of the ring, or with `skip` from the next new one.
        Raises TwoPeopleNeeded, NothingHeld, and StoreFailed if this or an earlier record was not
        stored. A caller that is cancelled does not cancel the adoption."""
        people = two_people(by)
        self._check_store()
        held, link = self.held, self.link
        if held is None or link is None:
            raise NothingHeld(f"the device is {self.state.value}: {self.why}")
        if self._adopting is not None and not self._adopting.done():
            raise NothingHeld("two people have just adopted it")
        adopting = self._adopting = asyncio.create_task(
            self._adopt(held, link, people, skip=skip), name=f"{self.wanted.serial}: adopting"
        )
        try:
            await asyncio.shield(adopting)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling() or not adopting.cancelled():
                raise  # the caller is cancelled
            raise StoreFailed(OSError("the host has stopped meanwhile")) from None

    async def _adopt(
        self, held: RingHeld, link: HostLink, people: tuple[str, str], *, skip: bool
    ) -> None:
        await self._settle()
        self._check_store()
        if self._is_gone(held, link):
            raise NothingHeld(_GONE)
        try:
            await self._acknowledger.adopt(AdoptedRing(held, people, skip))
        except StoreFailed as problem:
            self._store_failed(problem.first)
            raise
        self._check_store()
        now = self._clock()
        if self._is_gone(held, link):
            # Stored and without effect. The store may be elsewhere than the link by now, so the
            # next link starts at the store's position.
            self._on(Trigger.ADOPTED_LATE, _GONE)
            self._disconnect()
            self._reset_link()
            raise NothingHeld(_GONE)
        link.adopt(now, skip=skip)
        self._tell(
            happenings.Adopted, now, held.verdict, held.epoch, held.oldest, held.head, people
        )
        self.held = None
        if self.state is LinkState.RESUMING:
            self.why = "adopted by two people; where does the record go on?"
        self._expect_answer()
        self._flush()

    def _is_gone(self, held: RingHeld, link: HostLink) -> bool:
        return self.held != held or self.link is not link

    # --- run ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Supervise until cancelled, or until the state of the device is not known any more: then
        it raises the first cause. It runs once: another supervisor reads the store's position."""
        if self._began:
            raise ValueError("run(): it has been run already")
        self._began = True
        why = "the host has stopped"
        try:
            async with asyncio.TaskGroup() as group:
                name = f"device {self.wanted.serial}"
                group.create_task(self._raise_cause(), name=f"{name}: failure")
                group.create_task(self._store_records(), name=f"{name}: records")
                group.create_task(self.driver.work(), name=f"{name}: driver")
                group.create_task(self._supervise(), name=name)
        except ExceptionGroup as ended:
            why = text_of(ended.exceptions[0])
            raise
        finally:
            self._ended = True
            try:
                if self._adopting is not None:
                    self._adopting.cancel()
                    await asyncio.wait((self._adopting,))
            finally:
                self._end(why)

    async def _raise_cause(self) -> NoReturn:
        await self._failed.wait()
        assert self._cause is not None
        raise self._cause

    async def _supervise(self) -> None:
        while True:
            self._on(Trigger.SEARCH, "looked for")
            await self._visit()
            if self.state is LinkState.UNKEPT:
                await self._recovered.wait()
            refused = self.state is LinkState.REFUSED
            await asyncio.sleep(RETRY_REFUSED if refused else self._backoff.next_delay())

    async def _visit(self) -> None:
        """From the search for the port to its end."""
        opening = self._opening = PortOpening(self.receive, self.port_lost)
        try:
            own = self._own()
            address, port = await open_found(self.wanted, self._find, self._opener, opening)
        except KeyProblem as problem:
            self._on(Trigger.KEYS_DENIED, str(problem))
            return
        except PortRefused as refused:
            if not refused.absent:
                where = str(self.wanted.address or self.wanted.serial)
                self._reports.tell(happenings.PortDenied, self._clock(), where, refused.reason)
            self._on(Trigger.NOWHERE if refused.absent else Trigger.PORT_DENIED, refused.reason)
            return
        try:
            if address.place is not None:
                self._reports.tell(happenings.Doubled, self._clock(), str(address))
            # Records that have arrived are stored before RESUME names the last one.
            await self._settle()
            link = self._link(own)
            if link is not None:
                self._use(link, port, opening)
                await self._port_unused.wait()
        finally:
            self._opening = None
            try:
                self._disconnect()
            finally:
                why = await close(port)
                if why:  # the next attempt may succeed, or reports why not
                    self._reports.tell(happenings.PortDenied, self._clock(), port.name, why)

    def _link(self, own: X25519PrivateKey) -> HostLink | None:
        """The link; a new one starts at the store's position. None if the position is not known:
        a device without a session is in its safe state."""
        if self.link is not None:
            return self.link
        try:
            self._check_store()
            cursor, recent = self._acknowledger.position()
        except StoreFailed as problem:
            self._store_failed(problem.first)
            why = f"how far its record goes is not known: {problem}"
            self._on(Trigger.RECORD_UNKNOWN, why)
            return None
        return HostLink(
            own,
            self.wanted.key,
            device_class=self.wanted.device_class,
            serial=self.wanted.serial,
            cursor=cursor,
            recent=recent,
            host_boot=secrets.randbits(64) or 1,
        )

    @_first_cause
    def _use(self, link: HostLink, port: Port, opening: PortOpening) -> None:
        """The port is open: from now on the link uses it."""
        now = self._clock()
        self._reports.tell(happenings.PortOpened, now, port.name)
        self._on(Trigger.PORT_OPENED, f"{port.name} is open")
        self._expect_answer()
        self._port_unused.clear()
        self.link, self.port = link, port
        self._dispatch(link.open(now))
        if self.failure is not None:
            self._on(Trigger.STORE_FAILED, text_of(self.failure))
        if opening.why is not None:
            self.port_lost(opening, opening.why)

    def _end(self, why: str) -> None:
        """Release everything. After a failure nothing is reported any more."""
        with ExitStack() as last:  # last in, first out; all of them, also after an exception
            last.callback(self._notify_state)
            last.callback(self._commands.abandon)
            last.callback(self._cancel_timers)
            last.callback(self._report_rest)
            last.callback(self._reset_link)
            last.callback(lambda: self._on(Trigger.STOP, self.why if self._cause else why))
            last.callback(self._disconnect)

    def _report_rest(self) -> None:
        if self._cause is None:
            self._reports.rest(self._clock())

    # --- bytes and time -------------------------------------------------------------------

    @_first_cause
    def receive(self, opening: PortOpening, data: bytes) -> None:
        """Bytes from the port. Without a port or a link they are ignored."""
        in_use = opening is self._opening and self.port is not None
        if in_use and self.link is not None and self._cause is None:
            self._dispatch(self.link.receive(data, self._clock()))

    @_first_cause
    def port_lost(self, opening: PortOpening, why: str) -> None:
        """The port has ended."""
        port = self.port
        if opening is self._opening and port is not None and self._cause is None:
            self._reports.tell(happenings.PortGone, self._clock(), port.name, why)
            self._on(Trigger.PORT_LOST, why)
            self._disconnect()

    @_first_cause
    def _disconnect(self) -> None:
        """Stop using the port, for any reason. Idempotent."""
        self._answer_by = None
        port, self.port = self.port, None
        self._port_unused.set()
        link = self.link if port is not None else None
        self._dispatch([] if link is None else link.lost(self._clock()))

    @_first_cause
    def _reset_link(self) -> None:
        """The end of this link: the next port gets a new one."""
        link, self.link = self.link, None
        if link is not None:
            self._past = (self._past[0] + link.repeats, self._past[1] + link.gaps)
        self._dispatch([] if link is None else link.close(self._clock()))
        self._acknowledger.reset()

    @_first_cause
    def _flush(self) -> None:
        """Send what the link has to send, and set the timer soon."""
        data = b"" if self.link is None else self.link.take()
        if data and self.port is not None:
            self.port.write(data)
        if self._timer_setter is None:
            later = asyncio.get_running_loop().call_later
            self._timer_setter = later(TIMER_DELAY, self._set_timer)

    def _set_timer(self) -> None:
        self._timer_setter = None
        self._timer.set()

    def _cancel_timers(self) -> None:
        self._timer.cancel()
        if self._timer_setter is not None:
            self._timer_setter.cancel()

    @_first_cause
    def _due(self) -> int | None:
        """When the connection, the reports or a missing answer are due next."""
        self.last_active_us = self._clock()
        link_due = None if self.link is None else self.link.due()
        times = (link_due, self._reports.due(), self._answer_by)
        return min((time for time in times if time is not None), default=None)

    @_first_cause
    def _wake(self, now: int, late: int) -> None:
        """Do what is due, after the host has stood still for `late`."""
        if self._cause is not None:
            return
        if self._answer_by is not None:
            self._answer_by += late
            if now >= self._answer_by:
                self._no_answer()
        self._reports.wake(now)
        self._dispatch([] if self.link is None else self.link.wake(now))

    def _expect_answer(self, timeout: float = ANSWER_TIMEOUT) -> None:
        """The next step of a session has its timeout from now."""
        self._answer_by = self._clock() + round(timeout * 1_000_000)

    def _no_answer(self) -> None:
        self._answer_by = None
        if self.state is not LinkState.UNKEPT:  # that is worse, and known
            running = self.link is not None and self.link.running
            missing = "RESUME was not answered" if running else "no session came about"
            opened = None if running else self._opening
            timeout = ANSWER_TIMEOUT if opened is None else opened.timeout
            self._on(Trigger.NO_ANSWER, f"{missing} within {timeout:.0f} s")
            self._disconnect()

    # --- what happened --------------------------------------------------------------------

    def _dispatch(self, events: list[LinkEvent]) -> None:
        """Each event in order: a record to the acknowledger, any other to reports and state."""
        for event in events:
            now = self._clock()
            if isinstance(event, RecordReceived):
                if self.failure is None and self._cause is None:  # else it is sent again later
                    self._acknowledger.enqueue(event.record, now)
                continue
            self._commands.answered(event)
            if self._cause is None:
                self._reports.report(event, now)
                self._follow(event)
        if self._cause is None:
            if self.port is not None and self.state not in PORT_OPEN:
                self._disconnect()
            self._flush()

    def _follow(self, event: LinkEvent) -> None:
        if isinstance(event, (LinkSessionStarted, RingResumed, RingHeld, LinkSessionEnded)):
            self.held = event if isinstance(event, RingHeld) else None
        if event == STALLED and self._opening is not None:
            self._opening.restarted()
        if isinstance(event, LinkSessionStarted) or event == STALLED:
            self._expect_answer()
        elif isinstance(event, HelloReceived) and self._opening and self._opening.greeted():
            self._expect_answer(self._opening.timeout)
        elif isinstance(event, (RingResumed, RingHeld)):
            self._answer_by = None
        found = trigger_of(event, self.wanted)
        if found is not None and self.state in PORT_OPEN:  # else the link only reports the rest
            self._on(*found)
            if isinstance(event, RingHeld) and self.state is LinkState.RESUMING:
                self.why = found[1]

    @_first_cause
    def _on(self, trigger: Trigger, why: str) -> None:
        """Handle a trigger by the table of states."""
        now = self.last_active_us = self._clock()
        former = self.state
        changed = self._machine.on(trigger)
        if changed or former not in PORT_OPEN:
            self.why = why
        if changed:
            if self._cause is None:
                self._reports.changed(now, former, self.state, why)
            if self._ready_at is not None and now - self._ready_at >= STEADY_US:
                self._backoff.reset()
            self._ready_at = now if self.state is LinkState.READY else None
            self._notify_state()
            self.driver.state_changed(self.state)

    def _notify_state(self) -> None:
        self._state_changed.set()
        self._state_changed = asyncio.Event()

    @_first_cause
    def _tell(self, kind: Callable[..., happenings.AnyHappening], at: int, *fields: object) -> None:
        self._reports.tell(kind, at, *fields)

    # --- storing records ------------------------------------------------------------------

    async def _store_records(self) -> None:
        """Store each record, then acknowledge it, then notify the driver."""
        while True:
            try:
                stored = await self._acknowledger.store_next()
            except StoreFailed as problem:
                self._store_failed(problem.first)
                continue
            if self.link is not None:
                self.link.stored(stored.seq, self._clock())
                self._flush()
            self.driver.notify(stored.event)

    async def _settle(self) -> None:
        """Returns when what has arrived is stored, or has failed."""
        try:
            await self._acknowledger.settled()
        except StoreFailed as problem:
            self._store_failed(problem.first)

    def _check_store(self) -> None:
        """Raise StoreFailed if nothing is stored any more."""
        if self.failure is not None:
            raise StoreFailed(self.failure) from self.failure

    def _store_failed(self, first: Exception) -> None:
        """Something could not be stored: nothing is from now on. The first cause is kept."""
        if self.failure is not None:
            return
        self.failure = first
        self._recovered.clear()
        self._acknowledger.reset()
        now = self._clock()
        self._tell(happenings.KeepFailed, now, text_of(first))
        if self.link is not None:
            self.link.pause(now)
        self._on(Trigger.STORE_FAILED, text_of(first))
        self._flush()


_GONE: Final = "the device went away meanwhile; it begins anew from what is kept"
