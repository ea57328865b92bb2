"""The dealer's screen at a served table: the views and acts of the control API.

    async with open_console(socket) as screen:   # the dealer is signed in, every device is ready
        screen.shown, screen.view
        await screen.act("Paid", {}, "dealer")

It has no other source than the API's views, which every screen gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec.structs import asdict

from controller.api.contract.view import View
from controller.procedure.model.row import Refused
from controller.procedure.model.state import State
from controller.table.memory import TableDisplay
from hil.table.robots.api_client import (
    Api,
    ApiProblem,
    NoScreen,
    NotNow,
    Pin,
    Screen,
    Unreachable,
)
from hil.table.robots.robot import ROBOT_TIMEOUT, RobotStuck, Who
from hil.table.setup import DEALER, FLOOR, SECOND, DidNotServe, until

TABLE_FAULTS: Final = (ApiProblem, DidNotServe, RobotStuck, TimeoutError, Unreachable)
"""The exceptions with which a table that is played by robots fails."""
READY: Final = "ready"
"""The state of a device that can be used."""
_FIRST: Final = Pin(FLOOR.badge, FLOOR.pin)
_SECOND: Final = Pin(SECOND.badge, SECOND.pin)


class Console:
    """An open screen and its latest view."""

    def __init__(self, screen: Screen, view: View) -> None:
        self.watched: list[Callable[[View], None]] = []
        """Callbacks for each new view."""
        self._view = view
        self._shown = shown_of(view)
        self._screen = screen
        self._ended: BaseException | None = None
        """Why the stream has ended; None while it is open."""

    @property
    def view(self) -> View:
        """The latest view. Raises Unreachable if the stream has ended."""
        if self._ended is not None:
            raise Unreachable("the daemon has gone") from self._ended
        return self._view

    @property
    def shown(self) -> TableDisplay:
        """The latest view as a TableDisplay; a new object only if it has changed."""
        if self._ended is not None:
            raise Unreachable("the daemon has gone") from self._ended
        return self._shown

    @property
    def is_dealing(self) -> bool:
        """Whether the current dealer is signed in at this screen."""
        dealer = self.view.dealer
        return dealer is not None and dealer.screen == self._screen.name

    async def deal(self) -> None:
        """Sign in the robot dealer; relieves the current one. Raises ApiProblem, Unreachable."""
        await self._screen.sign_in(DEALER.badge, DEALER.pin, relieve=True)
        self.see(await self._screen.table())

    async def act(self, name: str, fields: Mapping[str, Any], who: Who) -> Refused | None:
        """Send an act. Returns the refusal, if any. Raises ApiProblem and Unreachable."""
        if who == "dealer":
            done = await self._screen.act(name, **fields)
        else:
            done = await self._screen.floor(name, _FIRST, _SECOND, **fields)
        self.see(done.table)
        first = done.answers[0]
        return None if first.taken else Refused(first.code, first.why)

    async def shuffle_again(self) -> None:
        self.see((await self._screen.shuffle_again()).table)

    async def adopt(self, serial: str) -> None:
        await self._screen.adopt(serial, _FIRST, _SECOND)

    def see(self, view: View) -> None:
        """Adopt a view and call the callbacks, unless it is older than the latest one."""
        if view.record.seq < self._view.record.seq:
            return
        self._view = view
        shown = shown_of(view)
        if shown != self._shown:
            self._shown = shown
        for on_view in self.watched:
            on_view(view)

    async def watch(self) -> None:
        """Read the stream until it is cancelled or the daemon has ended."""
        try:
            async with aclosing(self._screen.stream(timeout=0)) as views:
                async for view in views:
                    self.see(view)
        except (Unreachable, NoScreen) as problem:
            self._ended = problem
        except BaseException as problem:
            self._ended = problem
            raise

    async def wait_for_devices(self) -> None:
        """Wait until every device is ready; unknown device logs are adopted."""
        while any(one.state != READY for one in self.view.devices):
            view = self.view
            for one in view.devices:
                if one.held:
                    with suppress(NotNow):  # unplugged in between; the next view has its new state
                        await self.adopt(one.serial)
            await self._newer_than(view)

    async def _newer_than(self, view: View) -> None:
        await until(lambda: self.view is not view, ROBOT_TIMEOUT)


_C = TypeVar("_C", bound=Console)


@asynccontextmanager
async def open_console(socket: Path) -> AsyncIterator[Console]:
    """Sign the dealer in at a new screen. Raises ApiProblem and Unreachable."""
    async with Api(socket) as api:
        screen = await api.open("dealer")
        signed = await screen.sign_in(DEALER.badge, DEALER.pin)
        assert signed.name == DEALER.name
        async with watched(Console(screen, await screen.table())) as made:
            yield made


@asynccontextmanager
async def watched(made: _C) -> AsyncIterator[_C]:
    """Read the stream in a task; yields the console when every device is ready."""
    watching = asyncio.create_task(made.watch(), name="views")
    try:
        await made.wait_for_devices()
        yield made
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


def fault_text(problem: Exception) -> str:
    """What is reported of one of TABLE_FAULTS."""
    text = str(problem) or "no answer in time"
    return f"the table has failed: {type(problem).__name__}: {text}"


def shown_of(view: View) -> TableDisplay:
    """Returns what a view shows of the table."""
    return TableDisplay(
        view.seq, state_of(view), view.effects, again=view.again, stopped=view.stopped
    )


def state_of(view: View) -> State:
    return State(**asdict(view.state))
