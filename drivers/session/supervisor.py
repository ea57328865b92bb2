"""One wanted device: found, opened, proven, resumed, kept, and found again.

    supervisor = Supervisor(wanted, keeper, own=store.standing_own, events=queue, tell=record)
    shoe = Shoe(supervisor)
    task = asyncio.create_task(supervisor.run())
    async with asyncio.timeout(30):
        await supervisor.ready()
    await shoe.open_gate()

The first time, the record knows nothing of the device's ring: it is Held as NEW_EPOCH, also where
the device has just been paired, until two people adopt() it. Where the keeper has kept a record of
it, the device is ready without anybody.

All happens on one event loop. The link says what happened, the table of `states` what that
changes; here are the port, the clock and the keeper that both need.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from drivers.devices import (
    DeviceEvent,
    Driver,
    NotReady,
    Shoe,
    Shuffler,
    State,
    Station,
    Trigger,
    origin_of,
)
from drivers.handing import Handing
from drivers.keys import KeyProblem
from drivers.ports import Address, Ears, Port, PortRefused, open_port
from drivers.session import events as told
from drivers.session.acknowledge import Come, Keeping, NotKept, in_words
from drivers.session.adoption import Adopting
from drivers.session.backoff import Rests
from drivers.session.connection import Owner, Wire, WireEars
from drivers.session.lookup import Search, Wanted
from drivers.session.progress import Progress, monotonic_us
from drivers.session.record_store import Keeper
from drivers.session.reports import Reports, Tell
from firmware_protocol.host import ClockMeasured, HostLink, RingHeld
from firmware_protocol.messages.codec import Command, Reply
from firmware_protocol.messages.control import DeviceBeat
from firmware_protocol.messages.enums import DeviceClass
from firmware_protocol.tablelink.plaintext import EventRecord

OPEN_WAIT: Final = 10.0
CLOSE_WAIT: Final = 5.0

Open = Callable[[Address, Ears], Awaitable[Port]]


class Supervisor:
    """See the module. A driver stands on it as its Line."""

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        wanted: Wanted,
        keeper: Keeper,
        *,
        own: Callable[[], X25519PrivateKey],
        events: asyncio.Queue[DeviceEvent],
        tell: Tell,
        find: Callable[[Wanted], Awaitable[Address]] | None = None,
        opener: Open = open_port,
        clock: Callable[[], int] = monotonic_us,
    ) -> None:
        """`own` gives the host's key, or KeyProblem; it must not wait. `events` is the table's one
        bounded queue. `tell` takes the happenings; it must not wait, and what it raises ends
        run()."""
        if events.maxsize < 1:
            raise ValueError("the queue of events has no bound")
        self.wanted = wanted
        self._own = own
        self._events = events
        self._find = find or Search()
        self._opener = opener
        self._clock = clock
        self._reports = Reports(wanted, tell)
        self._wire = Wire(
            wanted, self._reports, clock, Owner(self._arrived, self._go_on, self._stands)
        )
        self._handing = Handing(events, typed=self._typed, full=self._pause, room=self._room)
        self._keeping = Keeping(
            keeper,
            room=self._handing.room,
            kept=self._kept,
            hand=self._handing.hand,
            failed=self._keep_failed,
        )
        self._adopting = Adopting(
            self._wire, self._keeping, settled=self._settled, tell=self._tell, clock=clock
        )
        self._driver: Driver | None = None
        self._began = self._ended = False
        self._stood = asyncio.Event()
        """Set when the device stands otherwise than before; then there is another in its place."""
        self._paused_at: int | None = None
        self._rests = Rests()

    # --- what others ask ------------------------------------------------------------------

    @property
    def device_class(self) -> DeviceClass:
        return self.wanted.device_class

    @property
    def state(self) -> State:
        return self._wire.state

    @property
    def why(self) -> str:
        """Why the state is what it is, for people."""
        return self._wire.why

    @property
    def held(self) -> RingHeld | None:
        """What waits for two people."""
        return self._wire.held

    @property
    def failure(self) -> Exception | None:
        """Why nothing is kept any more; it stays until mended(), wherever the device is."""
        return self._keeping.failure

    @property
    def beat(self) -> DeviceBeat | None:
        """The device's last sign of life in this session."""
        return self._wire.beat

    @property
    def clock_read(self) -> ClockMeasured | None:
        """The device's clock beside the host's, as last read in this session."""
        return self._wire.clock_read

    @property
    def progress(self) -> Progress:
        """When something was last done for it, and what its links have counted."""
        return self._wire.progress

    async def ready(self) -> None:
        """Returns when the device is ready, at once if it is.

        It waits for run() to begin, and through all that is in the way: a device that is absent,
        refused, held for two people or not kept can be ready later. How it stands `state`, `why`
        and `held` say meanwhile; how long that may take is the caller's to say, with a timeout.
        NotReady when run() has ended, or ends."""
        while self.state is not State.READY:
            if self._ended:
                raise NotReady(self.state, self.why)
            await self._stood.wait()

    def drive(self, driver: Driver) -> None:
        self._driver = driver

    async def call(self, command: Command) -> Reply:
        """The device's reply.

        NotReady, LinkBusy and a ValueError or ProtocolError for what is no command: nothing was
        sent. CommandRefused: nothing was done. CommandUnanswered: see there."""
        return await self._wire.call(command)

    async def adopt(self, by: tuple[str, str], *, skip: bool = False) -> None:
        """Two people accept the device's ring as it is. That is kept before it is done.

        Records come from the oldest that the ring holds, or with `skip` from the next new one.
        TwoPeopleNeeded, NothingHeld; NotKept where nothing is kept any more, or not that. Whoever
        gives up waiting does not call it off."""
        await self._adopting.adopt(by, skip=skip)

    async def _settled(self) -> None:
        """What has come is kept, or comes again."""
        await self._keeping.settled()
        if self._wire.link is not None:
            self._wire.link.discard(self._clock())

    def mended(self, keeper: Keeper) -> None:
        """Records can be kept again, by this keeper: all goes on from where it says. NotKept, and
        nothing has changed, where it does not say that."""
        if self._keeping.failure is None:
            raise ValueError("mended(): nothing has failed")
        self._keeping.mended(keeper)
        self._tell(told.KeepMended, self._clock())
        self._wire.on(Trigger.MENDED, "it can be kept again")
        self._wire.part()
        self._wire.drop_link()

    def _tell(self, kind: Callable[..., told.AnyHappening], at: int, *fields: object) -> None:
        """In whoever's task: what it raises ends run() all the same."""
        try:
            self._reports.tell(kind, at, *fields)
        except Exception as cause:
            self._wire.fail(cause)
            raise

    # --- the life of it -------------------------------------------------------------------

    async def run(self) -> None:
        """Supervises until it is cancelled, or until it cannot know any more how the device stands:
        then it ends with the first cause. What was kept and not yet taken from the queue is in the
        keeper's hands then. Once only: what the keeper was doing at the end it alone knows, so
        another supervisor asks it."""
        if self._began:
            raise ValueError("run(): it has been run already")
        self._began = True
        why = "the host has stopped"
        driver = self._driver or _UNDRIVEN[self.device_class](self)
        try:
            async with asyncio.TaskGroup() as group:
                name = f"device {self.wanted.serial}"
                group.create_task(self._wire.failed(), name=f"{name}: its wire")
                group.create_task(self._keeping.run(), name=f"{name}: keeping")
                group.create_task(self._handing.run(), name=f"{name}: handing out")
                group.create_task(driver.work(), name=f"{name}: driver")
                group.create_task(self._supervise(), name=name)
        except ExceptionGroup as ended:
            why = in_words(ended.exceptions[0])
            raise
        finally:
            self._ended = True
            with ExitStack() as last:
                last.callback(self._look_again)
                last.callback(self._wire.end, why)
                await self._adopting.end()

    async def _supervise(self) -> None:
        while True:
            self._wire.on(Trigger.LOOK, "looked for")
            await self._visit()
            if self.state is State.UNKEPT:
                await self._keeping.whole.wait()
            await asyncio.sleep(self._rests.next(self.state))

    async def _visit(self) -> None:
        """From the search for the port to its end."""
        ears = WireEars(self._wire)
        try:
            own = self._own()
            async with asyncio.timeout(OPEN_WAIT):
                address = await self._find(self.wanted)
                port = await self._opener(address, ears)
        except KeyProblem as problem:
            self._wire.on(Trigger.KEYS_DENIED, str(problem))
            return
        except PortRefused as refused:
            self._denied(refused.reason, absent=refused.absent)
            return
        except TimeoutError:
            self._denied(f"the port did not open within {OPEN_WAIT:.0f} s", absent=False)
            return
        try:
            if address.place is not None:
                self._reports.tell(told.Doubled, self._clock(), str(address))
            # What came before is kept before RESUME says how far the record goes.
            await self._settled()
            link = self._link(own)
            if link is not None:
                self._serve(link, port, ears)
                await self._wire.gone.wait()
        finally:
            ears.deaf = True
            try:
                self._wire.part()
            finally:
                await self._close(port)

    async def _close(self, port: Port) -> None:
        try:
            async with asyncio.timeout(CLOSE_WAIT):
                await port.close()
        except TimeoutError:
            # It may be opened again or not; whoever tries is told why not.
            why = f"did not close within {CLOSE_WAIT:.0f} s"
            self._reports.denied(self._clock(), port.name, why)

    def _denied(self, why: str, *, absent: bool) -> None:
        now = self._clock()
        if absent:
            self._wire.on(Trigger.NOWHERE, why)
        else:
            self._reports.denied(now, str(self.wanted.address or self.wanted.serial), why)
            self._wire.on(Trigger.PORT_DENIED, why)

    def _link(self, own: X25519PrivateKey) -> HostLink | None:
        """A new one begins where the keeper says that the record ends. Without that there is none:
        the device, which nobody talks to, is in its safe state."""
        if self._wire.link is not None:
            return self._wire.link
        try:
            cursor, recent = self._keeping.begins()
        except NotKept as problem:
            why = f"how far its record goes is not known: {problem}"
            self._wire.on(Trigger.RECORD_UNKNOWN, why)
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

    def _serve(self, link: HostLink, port: Port, ears: WireEars) -> None:
        if self._paused_at is not None:
            link.pause(self._clock())
        self._wire.serve(link, port)
        if self._keeping.failure is not None:
            self._wire.on(Trigger.KEEP_FAILED, in_words(self._keeping.failure))
        if ears.why is not None:
            self._wire.lost(ears.why)

    def _stands(self, state: State) -> None:
        """The device stands so from now on."""
        self._rests.stands(state, self._clock())
        self._look_again()
        if self._driver is not None:
            self._driver.stands(state)

    def _look_again(self) -> None:
        """Whoever waits for another state."""
        self._stood.set()
        self._stood = asyncio.Event()

    # --- keeping and handing out ----------------------------------------------------------

    def _arrived(self, record: EventRecord, at: int) -> None:
        self._keeping.come(record, at)

    def _kept(self, seq: int) -> None:
        if self._wire.link is not None:
            self._wire.link.stored(seq, self._clock())
            self._wire.flush()

    def _keep_failed(self, failure: Exception) -> None:
        now = self._clock()
        self._tell(told.KeepFailed, now, in_words(failure))
        if self._wire.link is not None:
            self._wire.link.pause(now)
        self._wire.on(Trigger.KEEP_FAILED, in_words(failure))
        self._wire.flush()

    def _typed(self, come: Come) -> DeviceEvent:
        assert self._driver is not None  # run() has seen to it
        origin = origin_of(come.record, self.wanted.serial, come.at)
        return self._driver.typed(origin, come.record.event)

    def _room(self) -> None:
        self._keeping.look()

    def _pause(self) -> None:
        """Nobody takes the events away: the device is asked to wait."""
        if self._paused_at is None:
            self._paused_at = now = self._clock()
            self._tell(told.Paused, now)
            if self._wire.link is not None:
                self._wire.link.pause(now)
                self._wire.flush()

    def _go_on(self, now: int) -> None:
        """Once half of the queue is free. Asked at each heartbeat, so not at each event."""
        if self._paused_at is None or self._handing.waiting:
            return
        if 2 * self._events.qsize() > self._events.maxsize:
            return
        paused, self._paused_at = now - self._paused_at, None
        self._tell(told.WentOn, now, paused)
        if self._wire.link is not None and self._keeping.failure is None:
            self._wire.link.unpause(now)


_UNDRIVEN: Final[dict[DeviceClass, Callable[[Supervisor], Driver]]] = {
    DeviceClass.SHOE: Shoe,
    DeviceClass.SHUFFLER: Shuffler,
    DeviceClass.STATION: Station,
}
