"""A whole table that is played as fast as it goes, and what is seen of it from outside.

    async with played(stage) as table:
        await table.play(rounds=10)
        table.cards.times       # seconds from a card's last byte to the bytes that show it

Dealer, devices and the reader of the stream are in this process, the daemon is another one. A card
is timed from when the last byte of its record was written to the shoe's pty (a few microseconds
after that) until the first bytes of the event that shows it, and with it the next prompt, are here:
one clock, CLOCK_MONOTONIC, read in one thread. What this loop does meanwhile, for devices that are
acknowledged and lit up at the same time, is in it.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Final
from urllib.parse import urlsplit

import msgspec

from controller.api.contract.messages import Opened
from controller.api.contract.view import PromptShown, StateShown, View
from controller.procedure.model.effects import Prompt, Tell
from controller.procedure.model.state import Step
from controller.table.memory import TableDisplay
from hil.simulator import LiveDevice, SimulatedDevice
from hil.table.robots import (
    PREFIX,
    Api,
    Console,
    PlayerChoice,
    Robot,
    RobotOptions,
    Screen,
    Unreachable,
)
from hil.table.setup import DEALER, Stage

SEATS: Final = 7
GAP_MS: Final = 0
"""From one card to the next: nobody waits for a hand."""
_OPTIONS: Final = RobotOptions(buttons=False, dwell_ms=0)
_MAIN: Final = 2500
_BANK: Final = 100_000
_MAX_STEPS: Final = 10_000_000
_CARDS: Final = (Tell.TAKE_WAGERS, Tell.DEAL)
"""The prompts at which a card comes that is laid on the felt."""
_view: Final = msgspec.json.Decoder(View).decode


class CardTimer:
    """Each card's way, from the shoe's pty to whoever looks. An outlet of the shoe: it is told of
    what was written right after its pty has it."""

    def __init__(self, shoe: LiveDevice) -> None:
        self.times: list[float] = []
        """Seconds of each card that was laid on the felt."""
        self.drawn = 0
        """How many there were."""
        self._head = shoe.device.firmware.ring.head
        self._device = shoe.device
        self._prompt: PromptShown | None = None
        self._lying = 0
        self._written: int | None = None
        shoe.attach(self)

    def forget(self) -> None:
        """Those that came until now do not count."""
        self.times.clear()
        self.drawn = 0

    def write(self, data: bytes) -> None:
        at = time.monotonic_ns()
        head = self._device.firmware.ring.head
        if head == self._head:
            return  # a beat, a reply
        self._head = head
        if self._prompt is not None and self._prompt.tell in _CARDS:
            self.drawn += 1
            self._written = at

    def follow(self, stand: SimulatedDevice) -> None:
        """Its power is never cut."""

    def close(self) -> None:
        """It holds nothing."""

    def shown(self, view: View, at: int) -> None:
        """This is shown, of which the first byte came at that time."""
        lying = _lying(view.state)
        if lying > self._lying and self._written is not None:
            self.times.append((at - self._written) / 1e9)
            self._written = None
        self._lying, self._prompt = lying, view.prompt


class ViewStream(asyncio.Protocol):
    """The stream of the table, bare: HTTP/1.0, so that nothing stands between its bytes."""

    def __init__(self, token: str, told: Callable[[View, int], None]) -> None:
        self.over: str = ""
        """Why it has ended."""
        self._token = token
        self._told = told
        self._rest = b""
        self._since = 0
        """When the first byte of what is here came, in nanoseconds."""
        self._begun = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        lines = (
            f"GET {PREFIX}/stream HTTP/1.0",
            "Host: localhost",
            f"Authorization: Bearer {self._token}",
        )
        transport.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())

    def data_received(self, data: bytes) -> None:
        at = time.monotonic_ns()
        if not self._rest:
            self._since = at
        self._rest += data
        if not self._begun and not self._headers(at):
            return
        *blocks, self._rest = self._rest.split(b"\n\n")
        for block in blocks:
            _, found, sent = block.partition(b"\ndata: ")
            if found:
                self._told(_view(sent), self._since)
            self._since = at

    def connection_lost(self, exc: Exception | None) -> None:
        self.over = str(exc or "the stream has ended")

    def _headers(self, at: int) -> bool:
        """Whether they have come, and are gone."""
        head, found, rest = self._rest.partition(b"\r\n\r\n")
        if found:
            if b" 200 " not in head.split(b"\r\n")[0]:
                raise Unreachable(f"no stream: {head.decode(errors='replace')}")
            self._rest, self._begun, self._since = rest, True, at
        return self._begun


class StandingPlayers:
    """Players who stand, and insure nothing."""

    def __init__(self, seats: int = SEATS) -> None:
        self.seats = seats

    def wagers(self) -> list[tuple[int, str, int]]:
        return [(seat, "main", _MAIN) for seat in range(1, self.seats + 1)]

    def says(self, prompt: Prompt) -> PlayerChoice:
        ways = ("take_pay", "decline", "stand")
        return PlayerChoice(next(way for way in ways if way in prompt.choices))


class PlayedTable:
    """A table that is served. `played` makes one."""

    def __init__(self, stage: Stage, console: Console) -> None:
        self.players = StandingPlayers()
        self.cards = CardTimer(stage.shoe)
        self._console = console
        self._robot = Robot(stage, console, self.players, _OPTIONS)

    @property
    def round(self) -> int:
        """The number of the last one."""
        return self._console.shown.state.round

    async def play(self, *, rounds: int = 1) -> None:
        """Whole rounds, from wagers to wagers; the table is opened where it is closed."""
        last = self.round + rounds

        def done(shown: TableDisplay) -> bool:
            s = shown.state
            self._robot.prompts.clear()
            return s.round >= last and s.step is Step.WAGERING and not s.hands

        await self._robot.play(done, most=_MAX_STEPS)

    async def close(self) -> None:
        """Nobody plays here any more: the next round has another shoe."""
        await self._robot.act("TableClosed", "two", bank=_BANK)


@asynccontextmanager
async def played(stage: Stage) -> AsyncIterator[PlayedTable]:
    """The dealer is signed in, and every device is ready. ApiProblem, Unreachable."""
    async with Api(stage.control) as api:
        opened = await api.post("/screens", {"name": "dealer"}, Opened)
        screen = Screen(api, opened)
        await screen.sign_in(DEALER.badge, DEALER.pin)
        console = Console(screen, await screen.table())
        table = PlayedTable(stage, console)

        def told(view: View, at: int) -> None:
            table.cards.shown(view, at)
            console.see(view)

        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_unix_connection(
            lambda: ViewStream(opened.token, told), str(stage.control)
        )
        try:
            await console.furnish()
            yield table
        finally:
            transport.close()


def _lying(state: StateShown) -> int:
    """Cards on the felt."""
    return sum(len(hand.cards) for hand in state.hands) + len(state.dealer) + bool(state.hole)


_TIMEOUT: Final = 60.0
_ROOM: Final = 1 << 18
_SMALL: Final = 4096
"""Bytes that wait for who does not read, beside what the system adds."""
_LOOK: Final = b"looking\n"
_COOKIE: Final = b"set-cookie: "


@contextmanager
def watchers(at: str, count: int) -> Iterator[None]:
    """Until it is left; all of them have seen the table once."""
    command = [sys.executable, "-m", "hil.bench.table_clients", at, str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if process.stdout.readline() != _LOOK:
                raise AssertionError(f"{count} browsers cannot look at {at}")
            yield
        finally:
            process.stdin.close()
            process.wait(_TIMEOUT)


def _session(host: str, port: int) -> str:
    """The cookie of a new one."""
    with socket.create_connection((host, port), timeout=_TIMEOUT) as sock:
        sock.sendall(f"GET / HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            more = sock.recv(_ROOM)
            if not more:
                raise AssertionError("no page")
            head += more
    lines = [line for line in head.split(b"\r\n") if line.lower().startswith(_COOKIE)]
    return lines[0][len(_COOKIE) :].partition(b";")[0].decode()


def _stream(host: str, port: int, *, reads: bool) -> socket.socket:
    """A stream that has begun."""
    cookie = _session(host, port)
    sock = socket.socket()
    if not reads:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
    sock.settimeout(_TIMEOUT)
    sock.connect((host, port))
    lines = ("GET /stream HTTP/1.1", f"Host: {host}:{port}", f"Cookie: {cookie}", "", "")
    sock.sendall("\r\n".join(lines).encode())
    if reads and not sock.recv(_ROOM).startswith(b"HTTP/1.1 200 "):
        raise AssertionError("no stream")
    sock.setblocking(False)
    return sock


def _watch(at: str, count: int) -> None:
    found = urlsplit(at)
    host, port = found.hostname or "", found.port or 0
    with ExitStack() as stack, selectors.DefaultSelector() as wait:
        for number in range(count):
            reads = number < count - 1
            sock = stack.enter_context(_stream(host, port, reads=reads))
            if reads:
                wait.register(sock, selectors.EVENT_READ)
        sys.stdout.buffer.write(_LOOK)
        sys.stdout.flush()
        wait.register(sys.stdin.buffer, selectors.EVENT_READ)
        while True:
            for key, _ in wait.select():
                if key.fileobj is sys.stdin.buffer:
                    return
                assert isinstance(key.fileobj, socket.socket)
                if not key.fileobj.recv(_ROOM):
                    wait.unregister(key.fileobj)


if __name__ == "__main__":
    _watch(sys.argv[1], int(sys.argv[2]))
