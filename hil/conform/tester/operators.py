"""Who stands at the device: nobody, a person at the terminal, or the hands of a simulated one."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from controller.errors import UsageProblem
from firmware_protocol.conformance import Need
from firmware_protocol.device import control
from firmware_protocol.device.control import ControlRequest
from firmware_protocol.device.interfaces import Answer
from hil.conform.tester.findings import ItemSkipped

ALL_NEEDS: Final[frozenset[Need]] = frozenset(("activity", "power", "service", "ring", "eyes"))


class Operator(Protocol):
    name: str
    """As the report names it."""
    can: frozenset[Need]
    exact: bool
    """Does just what the hand says, at once, and as often as wanted: no person does."""

    async def do(self, hand: ControlRequest) -> Answer:
        """Do it, and come back when it is done. Lacking when this operator cannot; CannotDo when
        the device does not let it."""

    async def label(self) -> str:
        """The code on the device's label."""

    async def confirm(self, question: str) -> bool:
        """What someone who looks sees. Lacking where nobody does."""


class NoOperator:
    """The cable alone."""

    name = "nobody"
    can: frozenset[Need] = frozenset()
    exact = False

    async def do(self, hand: ControlRequest) -> Answer:
        raise ItemSkipped("a hand at the device: --control or --ask")

    async def label(self) -> str:
        raise ItemSkipped("the code of the label: --control or --ask")

    async def confirm(self, question: str) -> bool:
        raise ItemSkipped("someone who looks: --control or --ask")


class InProcessOperator:
    """The hands of a simulated device in this process."""

    name = "direct"
    can = ALL_NEEDS
    exact = True

    def __init__(self, hand: Callable[[ControlRequest], Answer]) -> None:
        self._hand = hand

    async def do(self, hand: ControlRequest) -> Answer:
        return self._hand(hand)

    async def label(self) -> str:
        return str(self._hand(control.Describe())["label"])

    async def confirm(self, question: str) -> bool:
        raise ItemSkipped("a person's eyes: --ask")


# --- a person -------------------------------------------------------------------------------


def _draw(hand: Any) -> str:
    how = {
        "well": "",
        "unreadable": ", with its index half covered",
        "no_index": ", face covered or back up",
        "too_fast": ", as fast as you can",
    }
    if hand.read not in how or hand.confidence is not None or hand.double:
        raise ItemSkipped("a reader that fares as told: --control")
    cards = "one card" if hand.count == 1 else f"{hand.count} cards, one after the other"
    force = ", even if the shoe is locked" if hand.force else ""
    return f"Draw {cards}{how[hand.read]}{force}"


def _load(hand: Any) -> str:
    if hand.cards or hand.remove or hand.add:
        raise ItemSkipped("cards in a known order: --control")
    return f"Open the cover, put {hand.decks} decks in, and close it"


def _press(hand: Any) -> str:
    if hand.bounces:
        raise ItemSkipped("a contact that bounces as told: --control")
    button = f"{hand.button.upper()} at seat {hand.seat}"
    if hand.held_ms is None:
        return f"Press {button} and keep it down (first Enter, then go on holding)"
    return f"Press {button} and let it go"


def _put(hand: Any) -> str:
    if hand.remove or hand.add or hand.left_inside or hand.sorted:
        raise ItemSkipped("a batch with wrong cards: --control")
    return f"Put {hand.decks} decks into the shuffler and close its door"


def _power(hand: Any) -> str:
    return "Cut the device's power, count to three, and give it back"


_INSTRUCTIONS: Final[dict[type[Any], Callable[[Any], str]]] = {
    control.Draw: _draw,
    control.Load: _load,
    control.Press: _press,
    control.Put: _put,
    control.CutPower: _power,
    control.LetGo: lambda hand: f"Let {hand.button.upper()} at seat {hand.seat} go",
    control.ServiceSwitch: lambda hand: f"Turn the service switch {'on' if hand.on else 'off'}",
    control.DoorHand: lambda hand: f"{'Open' if hand.open else 'Close'} the door",
}


def instruction(hand: ControlRequest) -> str:
    """What a person is told to do. Lacking where no person can do it just so."""
    words = _INSTRUCTIONS.get(type(hand))
    if words is None:
        raise ItemSkipped("what only a simulated device or its maker can do: --control")
    return words(hand)


@contextmanager
def _unseen(descriptor: int) -> Iterator[None]:
    """What is typed at a terminal is not shown meanwhile. getpass would stop the heartbeats."""
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


class TerminalOperator:
    """Someone at the terminal, who is told what to do and presses Enter when it is done."""

    name = "person"
    can: frozenset[Need] = frozenset(("activity", "power", "service", "eyes"))
    exact = False

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._label: str | None = None

    async def do(self, hand: ControlRequest) -> Answer:
        await self._line(f"{instruction(hand)}, then press Enter: ")
        return {}

    async def label(self) -> str:
        if self._label is None:
            with _unseen(self._descriptor):
                self._label = await self._line("Code on the device's label (not shown): ")
        return self._label

    async def confirm(self, question: str) -> bool:
        while True:
            answer = (await self._line(f"{question} [y/n] ")).lower()
            if answer in ("y", "yes", "n", "no"):
                return answer.startswith("y")

    async def _line(self, prompt: str) -> str:
        """A line from the terminal, without a thread that could outlive the run."""
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
            raise UsageProblem("--ask", "stdin has ended", "a terminal with someone at it")
        return data.decode(errors="replace").strip()
