"""The operators of a device: none, a person at the terminal, or a simulated device itself."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from controller.errors import UsageProblem
from firmware_protocol.conformance import Need
from firmware_protocol.device import (
    Answer,
    CannotDo,
    ControlRequest,
    CutPower,
    Describe,
    Draw,
    LetGo,
    Load,
    MoveDoor,
    Press,
    Put,
    ServiceSwitch,
)
from hil.conform.tester.findings import ItemSkipped
from hil.control import ControlClient, ControlLost, RequestRefused

ALL_NEEDS: Final[frozenset[Need]] = frozenset(("activity", "power", "service", "ring", "eyes"))


class Operator:
    """Carries out requests; this one is the cable alone."""

    name = "nobody"
    """As the report names it."""
    can: frozenset[Need] = frozenset()
    exact = False
    """Carries out requests exactly, at once and repeatedly, which no person does."""

    async def do(self, request: ControlRequest) -> Answer:
        """Carry out the request; returns when it is done. Raises ItemSkipped if this operator
        cannot, CannotDo if the device does not allow it."""
        raise ItemSkipped("an operator: --control or --ask")

    async def label(self) -> str:
        """The code on the device's label."""
        raise ItemSkipped("the code of the label: --control or --ask")

    async def confirm(self, question: str) -> bool:
        """Ask an observer a yes-or-no question. Raises ItemSkipped without an observer."""
        raise ItemSkipped("an observer: --control or --ask")


class SimulatedOperator(Operator):
    """The control of a simulated device."""

    can = ALL_NEEDS
    exact = True

    async def label(self) -> str:
        label = (await self.do(Describe())).get("label")
        if not isinstance(label, str):
            raise ItemSkipped("the code of the label, which 'describe' does not return")
        return label

    async def confirm(self, question: str) -> bool:
        raise ItemSkipped("a person's eyes: --ask")


class RemoteOperator(SimulatedOperator):
    """A simulated device in another process, through its control socket."""

    name = "controlled"

    def __init__(self, control: ControlClient) -> None:
        self._control = control

    async def do(self, request: ControlRequest) -> Answer:
        # In a thread, so that the heartbeats continue.
        return await asyncio.to_thread(self._do, request)

    def _do(self, request: ControlRequest) -> Answer:
        try:
            return self._control.do(request)
        except RequestRefused as refused:
            unknown = f"'{request.__struct_config__.tag}'"
            if refused.where in request.__struct_fields__:
                unknown += f" with {refused.where}"
            elif refused.where != "do":
                raise CannotDo(refused.what) from None
            raise ItemSkipped(f"a device that supports {unknown}") from None
        except ControlLost as lost:
            raise UsageProblem(
                "--control", str(lost), "the control socket of a device that runs"
            ) from None


# --- a person -------------------------------------------------------------------------------


def _draw(request: Any) -> str:
    how = {
        "well": "",
        "unreadable": ", with its index half covered",
        "no_index": ", face covered or back up",
        "too_fast": ", as fast as you can",
    }
    if request.read not in how or request.confidence is not None or request.double:
        raise ItemSkipped("a reader that fails on request: --control")
    cards = "one card" if request.count == 1 else f"{request.count} cards, one after the other"
    force = ", even if the shoe is locked" if request.force else ""
    return f"Draw {cards}{how[request.read]}{force}"


_KINDS: Final = {"full_52": "", "spanish_48": " of 48 cards (without tens)"}


def _load(request: Any) -> str:
    if request.cards or request.remove or request.add:
        raise ItemSkipped("cards in a known order: --control")
    kind = _KINDS[request.kind]
    return f"Open the cover, put {request.decks} decks{kind} in, and close it"


def _press(request: Any) -> str:
    if request.bounces:
        raise ItemSkipped("a contact that bounces on request: --control")
    button = f"{request.button.upper()} at seat {request.seat}"
    if request.held_ms is None:
        return f"Press {button} and keep it down (first Enter, then go on holding)"
    return f"Press {button} and let it go"


def _put(request: Any) -> str:
    if request.remove or request.add or request.left_inside or request.sorted:
        raise ItemSkipped("a batch with wrong cards: --control")
    if not request.decks:
        return "Take all cards out of the shuffler and close its door"
    kind = _KINDS[request.kind]
    return f"Put {request.decks} decks{kind} into the shuffler and close its door"


_INSTRUCTIONS: Final[dict[type[Any], Callable[[Any], str]]] = {
    Draw: _draw,
    Load: _load,
    Press: _press,
    Put: _put,
    CutPower: lambda _: "Cut the device's power, count to three, and give it back",
    LetGo: lambda request: f"Let {request.button.upper()} at seat {request.seat} go",
    ServiceSwitch: lambda request: f"Turn the service switch {'on' if request.on else 'off'}",
    MoveDoor: lambda request: f"{'Open' if request.open else 'Close'} the door",
}


def instruction(request: ControlRequest) -> str:
    """The instruction to a person. Raises ItemSkipped if no person can do it."""
    make = _INSTRUCTIONS.get(type(request))
    if make is None:
        raise ItemSkipped("a simulated device or its maker: --control")
    return make(request)


@contextmanager
def _no_echo(descriptor: int) -> Iterator[None]:
    """Turn the echo of a terminal off. getpass would block the event loop."""
    if not os.isatty(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    local = before[3] & ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSADRAIN, [*before[:3], local, *before[4:]])
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        print(file=sys.stderr)


class TerminalOperator(Operator):
    """A person at the terminal, who gets instructions and presses Enter when one is done."""

    name = "person"
    can: frozenset[Need] = frozenset(("activity", "power", "service", "eyes"))
    exact = False

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._label: str | None = None

    async def do(self, request: ControlRequest) -> Answer:
        await self._line(f"{instruction(request)}, then press Enter: ")
        return {}

    async def label(self) -> str:
        if self._label is None:
            with _no_echo(self._descriptor):
                self._label = await self._line("Code on the device's label (not shown): ")
        return self._label

    async def confirm(self, question: str) -> bool:
        while True:
            answer = (await self._line(f"{question} [y/n] ")).lower()
            if answer in ("y", "yes", "n", "no"):
                return answer.startswith("y")

    async def _line(self, prompt: str) -> str:
        """Read a line from the terminal without a thread, which could outlive the run."""
        print(prompt, end="", file=sys.stderr, flush=True)
        loop = asyncio.get_running_loop()
        line: asyncio.Future[bytes] = loop.create_future()

        def readable() -> None:
            if not line.done():
                line.set_result(os.read(self._descriptor, 4096))

        try:
            loop.add_reader(self._descriptor, readable)
        except PermissionError:
            raise UsageProblem("--ask", "stdin is a file", "a terminal or a pipe") from None
        try:
            data = await line
        finally:
            loop.remove_reader(self._descriptor)
        if not data:
            raise UsageProblem("--ask", "stdin has ended", "a terminal with a person at it")
        return data.decode(errors="replace").strip()
