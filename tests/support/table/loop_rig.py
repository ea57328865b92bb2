"""A table loop whose record is a list."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Concatenate, ParamSpec

from controller.audit.format.records import ChainPosition, RecordActor, RecordEntry, encode
from controller.procedure.model import events
from controller.procedure.model.state import State, Step
from controller.table.intake import TableInput, TableSnapshot
from controller.table.loop import (
    LoopStart,
    RequestResult,
    TableLoop,
)
from controller.table.memory import TableDisplay, payment_prompt
from tests.support.asynchronous import simulated_in
from tests.support.drivers.simulated import stopped
from tests.support.table.simulated.serving import FLOOR, SECOND
from tests.support.table.typed.listening import LIVE, ear, states, taking

P = ParamSpec("P")
OPENS = TableInput((events.TableOpened(FLOOR, 9, SECOND),))
NOTE = RecordEntry("note", RecordActor("device", "controller"), {"text": "words"})


class Rig:
    """A table whose record is a list, and everything that it tells, in order."""

    def __init__(self, s: State, waits: str = "", repeated: bool = False) -> None:
        self.log: list[object] = []
        self.entries: list[RecordEntry] = []
        self.problem: Exception | None = None
        self.slow = 0.001
        prompt = payment_prompt(s, LIVE.shows(s)) if repeated else None
        start = LoopStart(TableSnapshot(s), 100, prompt, waits)
        self.table = TableLoop(
            taking(ear()), self._append, start, show=self._show, on_result=self._told
        )

    async def _append(self, *entries: RecordEntry) -> tuple[ChainPosition, ...]:
        self.log.append(("append", len(entries)))
        await asyncio.sleep(self.slow)
        if self.problem is not None:
            raise self.problem
        for entry in entries:
            encode(entry.data)
        self.entries += entries
        seq = 100 + len(self.entries)
        self.log.append(("durable", seq))
        return tuple(ChainPosition(seq, b"") for _ in entries)

    def _show(self, shown: TableDisplay) -> None:
        self.log.append(("shown", shown.state.step, bool(shown.stopped)))

    def _told(self, done: RequestResult) -> None:
        self.log.append(("told", len(done.entries)))

    def again(self) -> bool:
        return self.table.shown.again

    def step(self) -> Step:
        return self.table.state.step

    @property
    def kinds(self) -> list[str]:
        return [one.kind for one in self.entries]


@asynccontextmanager
async def rig(step: Step = Step.CLOSED, **options: object) -> AsyncIterator[Rig]:
    made = Rig(at(step), **options)  # type: ignore[arg-type]
    task = asyncio.create_task(made.table.run())
    await asyncio.sleep(0)
    made.log.clear()
    try:
        yield made
    finally:
        await stopped(task)


def on_rig(
    step: Step = Step.CLOSED, **options: object
) -> Callable[[Callable[Concatenate[Rig, P], Coroutine[Any, Any, None]]], Callable[..., None]]:
    """Run the test in simulated time, with a table at this step as its first argument."""
    return simulated_in(lambda _: rig(step, **options))


def at(step: Step) -> State:
    return next(s for s in states() if s.step is step and not s.lost and len(s.holds) < 2)


def opens(now: TableSnapshot) -> TableInput:
    return OPENS
