"""A running table: starts and stops its parts in order.

    async with RunningTable(parts) as table:
        await table.act({"type": "Paid"}, dealer)
        table.shown

The record is opened and replayed, an open round continues at the same step, and the devices are
searched and resumed at the stored positions of their logs. A failure of one part stops all parts.
"""

from __future__ import annotations

import asyncio
from asyncio import FIRST_COMPLETED
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import structlog
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.errors import LogFailed
from controller.audit.format.records import RecordEntry
from controller.audit.log import SystemClock
from controller.audit.replay import record_actor
from controller.people import SignInData, SignInSession, SignOutData, dealer
from controller.procedure.engine import LiveTable, Procedure
from controller.procedure.model.events import Actor, DealerRelieved, ShuffleStarted
from controller.procedure.model.row import Decision
from controller.procedure.model.state import Hold, State, Step
from controller.table.devices import CATCH_UP_TIMEOUT, LoopMonitor, StoreRetry, TableDevices
from controller.table.intake import (
    Applier,
    IntakeContext,
    TableInput,
    TableSnapshot,
    by_hand,
    face_down,
)
from controller.table.loop import (
    REAL_ENVIRONMENT,
    BadAct,
    InputFactory,
    LoopStart,
    RequestResult,
    TableClosing,
    TableEnvironment,
    TableLoop,
    TableParts,
    TableStopped,
    read_act,
)
from controller.table.memory import (
    NO_WITNESS,
    SPACE_LEFT,
    CardVault,
    DeviceFault,
    SpaceStatus,
    TableDisplay,
    WitnessStatus,
)
from controller.table.restart import CardRereader, RestoredTable, open_record
from drivers.keys import same_person
from drivers.session import Supervisor

SAFE_WAIT: Final = 2.0
"""Timeout in seconds for making locks and lamps safe at the end."""
END_WAIT: Final = 10.0
"""Timeout in seconds for recording the waiting requests at the end."""

_log: Final = structlog.get_logger("table")


class RunningTable:
    """A table as an async context manager, usable once."""

    def __init__(self, parts: TableParts, world: TableEnvironment = REAL_ENVIRONMENT) -> None:
        self.parts = parts
        self._world = world
        self._result_listeners: list[Callable[[RequestResult], None]] = []
        self._display_listeners: list[Callable[[], None]] = []
        self.witness: WitnessStatus = NO_WITNESS
        self.space: SpaceStatus = SPACE_LEFT
        self._dealt = ""
        """The last dealer who signed in since this start, or since the table was closed."""
        self._group: asyncio.TaskGroup | None = None
        self._ending = False
        self._reread = asyncio.Event()
        """Set when all face-down cards have been reread, or are unavailable."""

    # --- interface ------------------------------------------------------------------------

    @property
    def shown(self) -> TableDisplay:
        """The current display."""
        return self.table.shown

    @property
    def shut(self) -> bool:
        """Whether the table is closed, so that devices may be serviced."""
        return self.table.state.step is Step.CLOSED

    @property
    def seq(self) -> int:
        """Sequence number of the record's last entry."""
        return self.table.seq

    @property
    def boot(self) -> str:
        """The identifier of this boot in the record."""
        return self.log.boot

    async def act(
        self,
        sent: Mapping[str, Any],
        actor: Actor,
        *,
        second: Actor | None = None,
        check: Callable[[State], None] = lambda state: None,
    ) -> RequestResult:
        """Process an act of a person; it is recorded whether accepted or refused. `check` is called
        with the state when the act is processed, and raises if the person may not do it any more.
        Raises BadAct, NotInVault or InputRejected without side effects, TableStopped, QueueFull."""
        make = read_act(sent, actor, self.context, second=second)

        def made(now: TableSnapshot) -> TableInput:
            check(now.state)
            return make(now)

        return await self.table.act(made)

    async def record(self, entry: RecordEntry) -> RequestResult:
        """Append an entry. The sign-in of a dealer who relieves another one at an open table is
        reported to the procedure in the same append."""
        signed_in = entry.data
        if not isinstance(signed_in, SignInData) or signed_in.role != "dealer":
            return await self.table.record(entry)
        if is_relief(signed_in, self._dealt):
            done = await self.table.act(relief_input(entry))
        else:
            done = await self.table.record(entry)
        self._dealt = signed_in.name
        return done

    async def shuffle_again(
        self, actor: Actor, *, check: Callable[[State], None] = lambda state: None
    ) -> RequestResult:
        """Request the shuffle again, after a person checked that the shuffler is not shuffling.
        `check` as for act(). Raises BadAct."""
        starter = self.devices.shuffle_starter
        if starter is None or self.table.state.step is not Step.SHUFFLING:
            raise BadAct("no shuffle of the shuffler is waited for")
        if actor.role not in ("dealer", "floor"):
            raise BadAct("the dealer or the floor looks at the shuffler")
        looked = RecordEntry("person", record_actor(actor), {"what": "shuffler looked at"})

        def made(now: TableSnapshot) -> TableInput:
            check(now.state)
            return TableInput(notes=(replace(looked, round=now.state.round),))

        done = await self.table.act(made)
        if self.table.state.step is Step.SHUFFLING:  # a request before this one may have ended it
            starter.want_again(self.parts.game.decks)
        return done

    @property
    def case(self) -> str:
        """The name of the current hold, which identifies it for approvals; empty without holds."""
        return self._cases.top

    @property
    def shuffle_problem(self) -> str:
        """Why the requested shuffle may not have started; empty without a problem."""
        starter = self.devices.shuffle_starter
        if starter is None or self.table.state.step is not Step.SHUFFLING:
            return ""
        return starter.problem_now(shuffling=self.table.now.memory.shuffling)

    @property
    def by_hand(self) -> bool:
        """Whether people report the end of a shuffle."""
        return by_hand(self.context, self.table.now)

    def add_result_listener(self, on_result: Callable[[RequestResult], None]) -> None:
        """Register a callback for durable results. It must not block."""
        self._result_listeners.append(on_result)

    def add_display_listener(self, on_change: Callable[[], None]) -> None:
        """Register a callback for changes of the display. It must not block."""
        self._display_listeners.append(on_change)

    def set_witness(self, witness: WitnessStatus) -> None:
        """Set the status of the witness, and notify the displays if it changed."""
        if witness != self.witness:
            self.witness = witness
            self._notify_displays()

    def set_space(self, space: SpaceStatus) -> None:
        """Set the status of the record's disk, and notify the displays if it changed."""
        if space != self.space:
            self.space = space
            self._notify_displays()

    def _notify_displays(self) -> None:
        for on_change in self._display_listeners:
            on_change()

    def supervisor(self, serial: str) -> Supervisor:
        """The supervisor of a device. Raises LookupError."""
        return self.devices.supervised[serial].supervisor

    # --- start and stop -------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Raises RecordProblem or ClockBehind if the record does not open; nothing is left open."""
        if self._group is not None:
            raise ValueError("a table runs once")
        parts, world, loop = self.parts, self._world, asyncio.get_running_loop()
        self._group = asyncio.TaskGroup()
        procedure = Procedure(parts.game)
        self.log, found = open_record(
            parts, procedure, world.utc, world.believed, debuggable=world.debuggable
        )
        self.standing = found.standing
        self.dealer = dealer(found.standing)
        """The dealer's session after the last recorded entry."""
        self._cases = HoldNames().after(found.now.state.holds, self.log.where.seq)

        def writer_failed(problem: LogFailed) -> None:
            """Called in a thread of the writer."""
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(lambda: self.table.fail(problem))

        try:
            self.writer = world.write(self.log, writer_failed)
        except BaseException:
            self.log.close()
            raise
        try:
            self._build(procedure, found)
        except BaseException:
            await self.writer.close()
            raise
        await self._group.__aenter__()
        self._begin(self._group, found)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop all tasks. Raises the failure of a task; other exceptions pass through."""
        assert self._group is not None
        try:
            try:
                await self._end()
            finally:
                for task in (
                    self._loop_task,
                    self._output_task,
                    *self._device_tasks,
                    *self._others,
                ):
                    task.cancel()
                await self._group.__aexit__(None, None, None)
        finally:
            await self.writer.close()

    def _build(self, procedure: Procedure, found: RestoredTable) -> None:
        parts = self.parts
        keys = parts.keys
        vault = CardVault(parts.name, keys.hole, keys.surveillance)
        has = any(one.device == "shuffler" for one in parts.devices)
        self.context = IntakeContext(parts.game, parts.house, vault, has)
        seats = [seat for one in parts.devices for seat in one.seats]
        applier = Applier(LiveTable(parts.game), self.context, procedure.takes, seats)
        blocked = "the controller has been started" if found.restarted is not None else ""
        start = LoopStart(found.now, self.log.where.seq, found.repeated, blocked)
        moment = self._world.utc or SystemClock()
        self.table = TableLoop(
            applier,
            self.writer.append,
            start,
            show=self._show,
            on_result=self._on_result,
            utc=lambda: moment().utc,
        )
        self._store_retry = StoreRetry(self.table)
        self.monitor = LoopMonitor(self.table.later, lambda: moment().utc)
        self.devices = TableDevices(
            parts,
            self._world,
            self.table,
            found,
            on_store_failed=self._store_retry.failed,
            stalled_until=lambda: self.monitor.stalled_until,
        )
        self._store_retry.watch(self.devices.supervisors)

    def _begin(self, group: asyncio.TaskGroup, found: RestoredTable) -> None:
        def begin(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            return group.create_task(work, name=f"{self.parts.name}: {name}")

        devices = self.devices
        self._loop_task = begin(self.table.run(), "its loop")
        self._others = [
            begin(self._first(found), "its first word"),
            begin(self._store_retry.run(), "retries of the record store"),
            begin(self.monitor.run(), "its pulse"),
            begin(self._reread_cards(found), "cards face down"),
        ]
        self._output_task = begin(devices.outputs.run(), "outlets")
        if devices.shuffle_starter is not None:
            self._others.append(begin(devices.shuffle_starter.run(), "shuffles"))
        self._device_tasks = [begin(work, name) for name, work in devices.work()]

    async def _first(self, found: RestoredTable) -> None:
        """Record the restart before all acts, if a round or shoe was open. Events that the devices
        stored before it are processed first, at the step at which they happened."""
        if found.restarted is None:
            return
        restarted = TableInput((found.restarted,))
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_TIMEOUT):
                await self.devices.caught_up()
                await self._reread.wait()
        while True:
            try:
                await self.table.first(restarted)
                return
            except TableClosing:
                return
            except TableStopped:
                await self.table.working.wait()

    async def _reread_cards(self, found: RestoredTable) -> None:
        if not found.hidden:
            self._reread.set()
            return
        serial = self.devices.shoe_serial
        rereader = CardRereader(
            self.context.vault,
            self.devices.shoe,
            serial,
            found.hidden,
            lies=lambda commitment: commitment in face_down(self.table.state),
        )
        faults = await rereader.run()
        self._reread.set()
        for fault in faults:
            why = "it does not know the card that lies face down"
            try:
                await self.table.record(fault)
                await self.table.change_faults((DeviceFault("shoe", serial, "hidden", "", why),))
            except TableStopped as problem:
                _log.warning("not told", what="hidden card", why=str(problem))

    # --- callbacks of the loop ------------------------------------------------------------

    def _show(self, shown: TableDisplay) -> None:
        """Notify the screens first, since lamps take longer."""
        self._notify_displays()
        if not self._ending:
            self.devices.outputs.show(shown)
        if shown.stopped:
            self._store_retry.failed()

    def _on_result(self, done: RequestResult) -> None:
        if any(entry.kind == "person" for entry in done.entries):
            self.dealer = dealer_after(self.dealer, done.entries)
        if done.appended and done.state.holds is not self._cases.holds:
            self._cases = self._cases.after(done.state.holds, done.appended[-1].seq)
        starter = self.devices.shuffle_starter
        if starter is not None:
            for one in done.answered:
                if not isinstance(one.answer, Decision):
                    continue
                if isinstance(one.event, ShuffleStarted) and one.event.actor.role != "device":
                    if done.state.step is Step.SHUFFLING:
                        starter.want(self.parts.game.decks)
                elif (starter.asked or starter.problem) and (
                    one.answer.state.step is not Step.SHUFFLING
                ):
                    starter.over()
        if done.state.step is Step.CLOSED:
            self._dealt = ""
        for on_result in self._result_listeners:
            on_result(done)
        self._notify_displays()

    # --- shutdown -------------------------------------------------------------------------

    async def _end(self) -> None:
        """Make the devices safe, record the waiting requests, and end all tasks."""
        self._ending = True
        outputs, output_task = self.devices.outputs, self._output_task
        outputs.make_safe()
        safe = asyncio.create_task(outputs.settled(self.devices.reachable))
        await asyncio.wait((safe, output_task), timeout=SAFE_WAIT, return_when=FIRST_COMPLETED)
        await _ended(safe, *self._device_tasks)
        self.monitor.report()
        await self.table.close()
        await asyncio.wait((self._loop_task,), timeout=END_WAIT)
        await _ended(self._loop_task, output_task, *self._others)


async def _ended(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks and wait for them; their exceptions are raised by the group."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


class HoldNames(Struct, frozen=True):
    """The current holds, each with a name that identifies the case."""

    holds: tuple[Hold, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def top(self) -> str:
        """The name of the hold that is ruled on; empty without holds."""
        return self.names[-1] if self.names else ""

    def after(self, holds: tuple[Hold, ...], seq: int) -> HoldNames:
        """The names after the record's entry `seq`. A changed hold gets a new name, so that an
        approval for the former case does not apply to it."""
        same = 0
        for old, new in zip(self.holds, holds, strict=False):
            if old is not new:
                break
            same += 1
        names = (
            f"hold {seq}" if depth == 0 else f"hold {seq} on {depth}"
            for depth in range(same, len(holds))
        )
        return HoldNames(holds, (*self.names[:same], *names))


def is_relief(signed_in: SignInData, dealt: str) -> bool:
    """Whether the dealer changes. `dealt` is the dealer before, who may have signed out."""
    return bool(signed_in.relieved or (dealt and not same_person(dealt, signed_in.name)))


def relief_input(signed_in: RecordEntry) -> InputFactory:
    """The sign-in and, at an open table, the procedure's event: it may require a burn."""

    def make(now: TableSnapshot) -> TableInput:
        note = replace(signed_in, round=now.state.round)
        if now.state.step is Step.CLOSED:
            return TableInput(notes=(note,))
        return TableInput((DealerRelieved(Actor("dealer", signed_in.by.name)),), notes=(note,))

    return make


def dealer_after(
    dealer: SignInSession | None, entries: Iterable[RecordEntry]
) -> SignInSession | None:
    """The dealer's session after these recorded entries. The sign-in service is updated later, and
    other acts are processed in between."""
    for entry in entries:
        match entry.data:
            case SignInData(role="dealer", name=name, badge=badge, screen=screen):
                dealer = SignInSession("dealer", name, badge, screen, 0)
            case SignOutData(role="dealer"):
                dealer = None
    return dealer
