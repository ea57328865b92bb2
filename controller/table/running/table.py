"""A running table: everything that it takes, begun in order and ended in order.

    async with RunningTable(parts) as table:
        await table.act({"type": "Paid"}, dealer)
        table.shown

Its record is opened and played again, what was open goes on at the same step, and the devices are
found and resumed from where their logs stand. Whatever of it fails ends all of it.
"""

from __future__ import annotations

import asyncio
from asyncio import FIRST_COMPLETED
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import structlog
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.records import RecordEntry, record_actor
from controller.people import SignIn, dealer
from controller.procedure.engine import LiveTable, Procedure
from controller.procedure.model.events import Actor, ShuffleStarted
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State, Step
from controller.table.devices import START_WAIT, Fittings, StoreRetry
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
    HoldNames,
    LoopStart,
    RequestResult,
    TableClosing,
    TableEnvironment,
    TableLoop,
    TableParts,
    TableStopped,
    dealer_after,
    is_relief,
    read_act,
    relief_input,
)
from controller.table.memory import NO_WITNESS, CardVault, DeviceFault, TableDisplay, WitnessStatus
from controller.table.restart import CardRereader, RestoredTable, open_record
from drivers.session import Supervisor

SAFE_WAIT: Final = 2.0
"""Seconds for locks and lamps to be made safe at the end."""
END_WAIT: Final = 10.0
"""Seconds for what waits at the table to be recorded at the end."""

_log: Final = structlog.get_logger("table")


class RunningTable:
    """See the module. To be used in an `async with`, once."""

    def __init__(self, parts: TableParts, world: TableEnvironment = REAL_ENVIRONMENT) -> None:
        self.parts = parts
        self._world = world
        self._watchers: list[Callable[[RequestResult], None]] = []
        self._lookers: list[Callable[[], None]] = []
        self.witness: WitnessStatus = NO_WITNESS
        self._dealt = ""
        """Who signed in as dealer last, since this start or since the table was closed."""
        self._group: asyncio.TaskGroup | None = None
        self._ending = False
        self._relearnt = asyncio.Event()
        """Set when every card that lies face down is known, or never will be."""

    # --- what others ask ------------------------------------------------------------------

    @property
    def shown(self) -> TableDisplay:
        """Where the table stands."""
        return self.table.shown

    @property
    def shut(self) -> bool:
        """Whether it is closed: nobody plays at it, and devices may be worked at."""
        return self.table.state.step is Step.CLOSED

    @property
    def seq(self) -> int:
        """Of the record's last entry."""
        return self.table.seq

    @property
    def boot(self) -> str:
        """The name of this start in the record."""
        return self.log.boot

    async def act(
        self,
        sent: Mapping[str, Any],
        actor: Actor,
        *,
        second: Actor | None = None,
        still: Callable[[State], None] = lambda state: None,
    ) -> RequestResult:
        """What somebody does, as it was sent: recorded, whether it is taken or refused. `still` is
        asked when its turn has come, with the state that it comes to, and raises where it is not
        theirs any more, or not what was signed for.
        BadAct, NotInVault, CannotTake: nothing has happened. Stopped, Full: nothing can."""
        make = read_act(sent, actor, self._ear, second=second)

        def made(now: TableSnapshot) -> TableInput:
            still(now.state)
            return make(now)

        return await self.table.act(made)

    async def record(self, entry: RecordEntry) -> RequestResult:
        """Something for the record alone; but a dealer who takes another one's place at an open
        table is told to the procedure in the same write."""
        said = entry.data
        if not isinstance(said, SignIn) or said.role != "dealer":
            return await self.table.record(entry)
        if is_relief(said, self._dealt):
            done = await self.table.act(relief_input(entry))
        else:
            done = await self.table.record(entry)
        self._dealt = said.name
        return done

    async def shuffle_again(
        self, actor: Actor, *, still: Callable[[State], None] = lambda state: None
    ) -> RequestResult:
        """Somebody has looked at the shuffler: it does not shuffle, and shall. `still` as for an
        act. BadAct."""
        starting = self.fittings.starting
        if starting is None or self.table.state.step is not Step.SHUFFLING:
            raise BadAct("no shuffle of the shuffler is waited for")
        if actor.role not in ("dealer", "floor"):
            raise BadAct("the dealer or the floor looks at the shuffler")
        looked = RecordEntry("person", record_actor(actor), {"what": "shuffler looked at"})

        def made(now: TableSnapshot) -> TableInput:
            still(now.state)
            return TableInput(notes=(replace(looked, round=now.state.round),))

        done = await self.table.act(made)
        if self.table.state.step is Step.SHUFFLING:  # what was recorded before it may have ended it
            starting.want_again(self.parts.game.decks)
        return done

    @property
    def case(self) -> str:
        """What the hold that is ruled on is called, so that no other one is taken for it; empty
        where nothing is held."""
        return self._cases.top

    @property
    def shuffle_problem(self) -> str:
        """Why the shuffle that is waited for may not have begun; empty without one."""
        starting = self.fittings.starting
        if starting is None or self.table.state.step is not Step.SHUFFLING:
            return ""
        return starting.stands(shuffling=self.table.now.memory.shuffling)

    @property
    def by_hand(self) -> bool:
        """People say when the cards are shuffled."""
        return by_hand(self._ear, self.table.now)

    def watch(self, told: Callable[[RequestResult], None]) -> None:
        """From now on `told` is told of each thing that was recorded, at once; it must not wait."""
        self._watchers.append(told)

    def watch_all(self, told: Callable[[], None]) -> None:
        """The same of whatever may be seen to stand otherwise, also while nothing is recorded."""
        self._lookers.append(told)

    def seen_by(self, witness: WitnessStatus) -> None:
        """Who looks at the table is told of it, where it is another than before."""
        if witness != self.witness:
            self.witness = witness
            for told in self._lookers:
                told()

    def supervisor(self, serial: str) -> Supervisor:
        """LookupError where the table has no such device."""
        return self.fittings.served[serial].supervisor

    # --- beginning and ending -------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """RecordProblem, ClockBehind where the record does not open; then nothing is left open."""
        if self._group is not None:
            raise ValueError("a table runs once")
        parts, world, loop = self.parts, self._world, asyncio.get_running_loop()
        self._group = asyncio.TaskGroup()
        procedure = Procedure(parts.game)
        self.log, found = open_record(parts, procedure, world.utc, world.believed)
        self.standing = found.standing
        self.deals = dealer(found.standing)
        """Who deals, as of the last thing that was recorded."""
        self._cases = HoldNames().after(found.now.state.holds, self.log.where.seq)
        try:
            self.book = world.write(
                self.log, lambda failed: _soon(loop, lambda: self.table.fail(failed))
            )
        except BaseException:
            self.log.close()
            raise
        try:
            self._build(procedure, found)
        except BaseException:
            await self.book.close()
            raise
        await self._group.__aenter__()
        self._tasks = self._begin(self._group, found)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Whatever ended it goes on as it is; where the table itself has failed, that is raised."""
        assert self._group is not None
        try:
            try:
                await self._end(self._tasks)
            finally:
                for task in self._tasks.every:
                    task.cancel()
                await self._group.__aexit__(None, None, None)
        finally:
            await self.book.close()

    def _build(self, procedure: Procedure, found: RestoredTable) -> None:
        parts = self.parts
        keys = parts.keys
        vault = CardVault(parts.name, keys.hole, keys.surveillance)
        has = any(one.device == "shuffler" for one in parts.devices)
        self._ear = IntakeContext(parts.game, parts.house, vault, has)
        seats = [seat for one in parts.devices for seat in one.seats]
        taking = Applier(LiveTable(parts.game), self._ear, procedure.takes, seats)
        waits = "the controller has been started" if found.restarted is not None else ""
        start = LoopStart(found.now, self.log.where.seq, found.repeated, waits)
        self.table = TableLoop(taking, self.book.append, start, show=self._show, told=self._told)
        self._store_retry = StoreRetry(self.table)
        self.fittings = Fittings(
            parts, self._world, self.table, found, unkept=self._store_retry.failed
        )
        self._store_retry.watch(self.fittings.supervisors)

    def _begin(self, group: asyncio.TaskGroup, found: RestoredTable) -> Tasks:
        def begin(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            return group.create_task(work, name=f"{self.parts.name}: {name}")

        fittings = self.fittings
        loop = begin(self.table.run(), "its loop")
        others = [
            begin(self._first(found), "its first word"),
            begin(self._store_retry.run(), "retries of the record store"),
            begin(self._relearn(found), "cards face down"),
        ]
        outlets = begin(fittings.outlets.run(), "outlets")
        if fittings.starting is not None:
            others.append(begin(fittings.starting.run(), "shuffles"))
        devices = [begin(work, name) for name, work in fittings.work()]
        return Tasks(loop, outlets, tuple(devices), tuple(others))

    async def _first(self, found: RestoredTable) -> None:
        """Before anybody does anything: that the controller was started while something was open.
        What happened before that is heard first, at the step at which it happened."""
        if found.restarted is None:
            return
        restarted = TableInput((found.restarted,))
        with suppress(TimeoutError):
            async with asyncio.timeout(START_WAIT):
                await self.fittings.caught_up()
                await self._relearnt.wait()
        while True:
            try:
                await self.table.first(restarted)
                return
            except TableClosing:
                return
            except TableStopped:
                await self.table.goes_on.wait()

    async def _relearn(self, found: RestoredTable) -> None:
        if not found.hidden:
            self._relearnt.set()
            return
        serial = self.fittings.shoe_serial
        relearning = CardRereader(
            self._ear.vault,
            self.fittings.shoe,
            serial,
            found.hidden,
            lies=lambda commitment: commitment in face_down(self.table.state),
        )
        faults = await relearning.run()
        self._relearnt.set()
        for fault in faults:
            why = "it does not know the card that lies face down"
            try:
                await self.table.record(fault)
                await self.table.changes((DeviceFault("shoe", serial, "hidden", "", why),))
            except TableStopped as problem:
                _log.warning("not told", what="hidden card", why=str(problem))

    # --- what the table tells -------------------------------------------------------------

    def _show(self, shown: TableDisplay) -> None:
        """Screens first: they are woken in this order, and lamps take longer."""
        for told in self._lookers:
            told()
        if not self._ending:
            self.fittings.outlets.want(shown)
        if shown.stopped:
            self._store_retry.failed()

    def _told(self, done: RequestResult) -> None:
        self.deals = dealer_after(self.deals, done.entries)
        if done.appended:
            self._cases = self._cases.after(done.state.holds, done.appended[-1].seq)
        starting = self.fittings.starting
        if starting is not None:
            for one in done.answered:
                if not isinstance(one.answer, Decision):
                    continue
                if isinstance(one.event, ShuffleStarted) and one.event.actor.role != "device":
                    if done.state.step is Step.SHUFFLING:
                        starting.want(self.parts.game.decks)
                elif starting.asked or starting.problem:
                    if one.answer.state.step is not Step.SHUFFLING:
                        starting.over()
        if done.state.step is Step.CLOSED:
            self._dealt = ""
        for told in self._watchers:
            told(done)
        for look in self._lookers:
            look()

    # --- the end --------------------------------------------------------------------------

    async def _end(self, tasks: Tasks) -> None:
        """All is made safe, what waits is recorded, and each task has ended."""
        self._ending = True
        outlets = self.fittings.outlets
        outlets.safe()
        safe = asyncio.create_task(outlets.settled(self.fittings.here))
        await asyncio.wait((safe, tasks.outlets), timeout=SAFE_WAIT, return_when=FIRST_COMPLETED)
        await _ended(safe, *tasks.devices)
        await self.table.close()
        await asyncio.wait((tasks.loop,), timeout=END_WAIT)
        await _ended(tasks.loop, tasks.outlets, *tasks.others)


class Tasks(Struct, frozen=True):
    """What runs while a table does."""

    loop: asyncio.Task[None]
    outlets: asyncio.Task[None]
    devices: tuple[asyncio.Task[None], ...]
    others: tuple[asyncio.Task[None], ...]

    @property
    def every(self) -> tuple[asyncio.Task[None], ...]:
        return (*self.devices, self.loop, self.outlets, *self.others)


async def _ended(*tasks: asyncio.Task[None]) -> None:
    """What each of them ends with, its group knows."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """From whichever thread."""
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(call)
