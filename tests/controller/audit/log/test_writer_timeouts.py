"""One timer for all who wait on a loop: who is late is told, nobody else is, none stays behind."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from controller.audit.log.writer import TimeoutQueue

MINUTE = 60.0


class Hands(asyncio.SelectorEventLoop):
    """A loop whose clock is set by hand."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def timers(self) -> int:
        """Those that are to go off."""
        scheduled: list[asyncio.TimerHandle] = vars(self)["_scheduled"]
        return sum(not timer.cancelled() for timer in scheduled)


@pytest.fixture
def loop() -> Iterator[Hands]:
    loop = Hands()
    yield loop
    loop.close()


Waits = asyncio.Future[str]


def run(
    loop: Hands, story: Callable[[TimeoutQueue[str], list[Waits]], Awaitable[None]]
) -> list[Waits]:
    """Those that were too late, in their order."""
    late: list[Waits] = []

    async def told() -> None:
        await story(TimeoutQueue(loop, late.append), late)

    loop.run_until_complete(told())
    return late


async def turns() -> None:
    """Whatever is due has gone off afterwards."""
    for _ in range(4):
        await asyncio.sleep(0)


def test_each_is_late_by_its_own_time_and_those_that_were_answered_are_not(loop: Hands) -> None:
    first, second, answered, given_up, third = (loop.create_future() for _ in range(5))

    async def story(there: TimeoutQueue[str], late: list[Waits]) -> None:
        there.watch(first, MINUTE)
        loop.now += 1
        there.watch(answered, MINUTE)
        there.watch(given_up, MINUTE)
        there.watch(second, MINUTE)
        answered.set_result("on the disk")
        given_up.cancel()
        there.look()
        loop.now += 20
        there.watch(third, MINUTE)
        loop.now += MINUTE - 22
        await turns()
        assert late == []
        loop.now += 1
        await turns()
        assert late == [first]
        loop.now += 1
        await turns()
        assert late == [first, second]
        third.set_result("in time")
        loop.now += MINUTE
        await turns()

    assert run(loop, story) == [first, second]
    assert loop.timers() == 0


def test_there_is_one_timer_while_somebody_waits_and_none_else(loop: Hands) -> None:
    async def story(there: TimeoutQueue[str], late: list[Waits]) -> None:
        for _ in range(3):
            waits = [loop.create_future() for _ in range(64)]
            for one in waits:
                there.watch(one, MINUTE)
            assert loop.timers() == 1
            for one in waits:
                assert loop.timers() == 1
                one.set_result("")
                there.look()
            assert loop.timers() == 0
            loop.now += 7

    assert run(loop, story) == []
