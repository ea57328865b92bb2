"""Clients of a whole table: robots that play without pauses, and browsers that watch.

    async with played(stage) as table:
        await table.play(rounds=10)
        table.cards.times       # seconds from a card's last byte to the bytes that show it

Dealer, devices and the stream's reader are in this process, the daemon is another one. A card is
timed from writing the last byte of its record to the shoe's pty to reading the first byte of the
view that shows it, with the next prompt. Both times are CLOCK_MONOTONIC of one thread, so work of
this event loop in between, such as acknowledgements and lamps, is included.

The browsers are a child process, `python -m hil.bench.table_clients URL COUNT`.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
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
from hil.bench.measure import child_process, request
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
"""Minimum time between two cards."""
_OPTIONS: Final = RobotOptions(buttons=False, dwell_ms=0)
_MAIN: Final = 2500
_BANK: Final = 100_000
_MAX_STEPS: Final = 10_000_000
_CARDS: Final = (Tell.TAKE_WAGERS, Tell.DEAL)
"""The prompts whose card is laid on the felt."""
_TIMEOUT: Final = 60.0
_READ: Final = 1 << 18
_SMALL: Final = 4096
"""Receive buffer in bytes of the browser that does not read."""
_WATCHING: Final = "watching\n"
_COOKIE: Final = b"set-cookie: "
_view: Final = msgspec.json.Decoder(View).decode


class CardTimer:
    """Times each card from the shoe's pty to the view. The shoe calls `write` after its pty."""

    def __init__(self, shoe: LiveDevice) -> None:
        self.times: list[float] = []
        """Seconds of each card that was laid on the felt and shown."""
        self.drawn = 0
        """Number of cards that were drawn."""
        self._head = shoe.device.firmware.ring.head
        self._device = shoe.device
        self._prompt: PromptShown | None = None
        self._on_felt = 0
        self._written: int | None = None
        shoe.attach(self)

    def forget(self) -> None:
        """Discard the cards so far."""
        self.times.clear()
        self.drawn = 0

    def write(self, data: bytes) -> None:
        at = time.monotonic_ns()
        head = self._device.firmware.ring.head
        if head == self._head:
            return  # a heartbeat or reply
        self._head = head
        if self._prompt is not None and self._prompt.tell in _CARDS:
            self.drawn += 1
            self._written = at

    def follow(self, device: SimulatedDevice) -> None:
        """Nothing to do: the power is never cut."""

    def close(self) -> None:
        """Nothing to close."""

    def shown(self, view: View, at: int) -> None:
        """Record a view whose first byte came at `at`, in nanoseconds."""
        on_felt = _on_felt(view.state)
        if on_felt > self._on_felt and self._written is not None:
            self.times.append((at - self._written) / 1e9)
            self._written = None
        self._on_felt, self._prompt = on_felt, view.prompt


class ViewStream(asyncio.Protocol):
    """Reads the table's stream by HTTP/1.0, which has no chunks, and times the first bytes."""

    def __init__(
        self,
        token: str,
        on_view: Callable[[View, int], None],
        *,
        decode: Callable[[bytes], View] = _view,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.over: str = ""
        """Why the stream has ended."""
        self._token = token
        self._decode = decode
        self._clock = clock
        self._on_view = on_view
        self._buffer = b""
        self._since = 0
        """When the first byte of the buffer came, in nanoseconds."""
        self._open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        lines = (
            f"GET {PREFIX}/stream HTTP/1.0",
            "Host: localhost",
            f"Authorization: Bearer {self._token}",
        )
        transport.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())

    def data_received(self, data: bytes) -> None:
        at = self._clock()
        if not self._buffer:
            self._since = at
        self._buffer += data
        if not self._open and not self._headers(at):
            return
        *blocks, self._buffer = self._buffer.split(b"\n\n")
        for block in blocks:
            _, found, sent = block.partition(b"\ndata: ")
            if found:
                self._on_view(self._decode(sent), self._since)
            self._since = at

    def connection_lost(self, exc: Exception | None) -> None:
        self.over = str(exc or "the stream has ended")

    def _headers(self, at: int) -> bool:
        """Remove the headers from the buffer. Returns whether they are complete."""
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if found:
            if b" 200 " not in head.split(b"\r\n")[0]:
                raise Unreachable(f"no stream: {head.decode(errors='replace')}")
            self._buffer, self._open, self._since = rest, True, at
        return self._open


class StandingPlayers:
    """Players who stand and never insure."""

    def __init__(self, seats: int = SEATS) -> None:
        self.seats = seats

    def wagers(self) -> list[tuple[int, str, int]]:
        return [(seat, "main", _MAIN) for seat in range(1, self.seats + 1)]

    def says(self, prompt: Prompt) -> PlayerChoice:
        ways = ("take_pay", "decline", "stand")
        return PlayerChoice(next(way for way in ways if way in prompt.choices))


class PlayedTable:
    """A served table with its robots; made by `played`."""

    def __init__(self, stage: Stage, console: Console) -> None:
        self.players = StandingPlayers()
        self.cards = CardTimer(stage.shoe)
        self._console = console
        self._robot = Robot(stage, console, self.players, _OPTIONS)

    @property
    def round(self) -> int:
        """The number of the last round."""
        return self._console.shown.state.round

    async def play(self, *, rounds: int = 1) -> None:
        """Play whole rounds; a closed table is opened first."""
        last = self.round + rounds

        def done(shown: TableDisplay) -> bool:
            s = shown.state
            self._robot.prompts.clear()
            return s.round >= last and s.step is Step.WAGERING and not s.hands

        await self._robot.play(done, most=_MAX_STEPS)

    async def close(self) -> None:
        """Close the table; the next round has a new shoe."""
        await self._robot.act("TableClosed", "two", bank=_BANK)


@asynccontextmanager
async def played(stage: Stage) -> AsyncIterator[PlayedTable]:
    """Sign the dealer in and wait for all devices. Raises ApiProblem and Unreachable."""
    async with Api(stage.control) as api:
        opened = await api.post("/screens", {"name": "dealer"}, Opened)
        screen = Screen(api, opened)
        await screen.sign_in(DEALER.badge, DEALER.pin)
        console = Console(screen, await screen.table())
        table = PlayedTable(stage, console)

        def on_view(view: View, at: int) -> None:
            table.cards.shown(view, at)
            console.see(view)

        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_unix_connection(
            lambda: ViewStream(opened.token, on_view), str(stage.control)
        )
        try:
            await console.furnish()
            yield table
        finally:
            transport.close()


def _on_felt(state: StateShown) -> int:
    """Returns the number of cards on the felt."""
    return sum(len(hand.cards) for hand in state.hands) + len(state.dealer) + bool(state.hole)


# --- browsers ---------------------------------------------------------------------------------


@contextmanager
def watchers(url: str, count: int) -> Iterator[None]:
    """Run browsers that watch the console's page; all but one read their stream."""
    with child_process("hil.bench.table_clients", url, count) as process:
        if request(process) != _WATCHING:
            raise AssertionError(f"{count} browsers cannot watch {url}")
        yield


def _session(host: str, port: int) -> str:
    """Open a session of the page, and return its cookie."""
    with socket.create_connection((host, port), timeout=_TIMEOUT) as sock:
        sock.sendall(f"GET / HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            more = sock.recv(_READ)
            if not more:
                raise AssertionError("no page")
            head += more
    lines = [line for line in head.split(b"\r\n") if line.lower().startswith(_COOKIE)]
    return lines[0][len(_COOKIE) :].partition(b";")[0].decode()


def _stream(host: str, port: int, *, reads: bool) -> socket.socket:
    """Open a stream of the page, which is read or not."""
    cookie = _session(host, port)
    sock = socket.socket()
    if not reads:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
    sock.settimeout(_TIMEOUT)
    sock.connect((host, port))
    lines = ("GET /stream HTTP/1.1", f"Host: {host}:{port}", f"Cookie: {cookie}", "", "")
    sock.sendall("\r\n".join(lines).encode())
    if reads and not sock.recv(_READ).startswith(b"HTTP/1.1 200 "):
        raise AssertionError("no stream")
    sock.setblocking(False)
    return sock


def watch(url: str, count: int) -> None:
    """Watch the page until this process is killed."""
    found = urlsplit(url)
    host, port = found.hostname or "", found.port or 0
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for number in range(count):
            reads = number < count - 1
            sock = stack.enter_context(_stream(host, port, reads=reads))
            if reads:
                selector.register(sock, selectors.EVENT_READ)
        sys.stdout.write(_WATCHING)
        sys.stdout.flush()
        while True:
            for key, _ in selector.select():
                assert isinstance(key.fileobj, socket.socket)
                if not key.fileobj.recv(_READ):
                    selector.unregister(key.fileobj)


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
