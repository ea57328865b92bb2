"""A table that is served in simulated time, with everybody at it; and a round that is dealt
though its controller is killed at a record: everybody goes on from what the next one shows."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import DEFAULT, patch

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Raw
from msgspec.structs import replace

from controller.audit.errors import DiskFull, LogFailed
from controller.audit.files import Disk
from controller.audit.format.hole_cards import HOLE_KEY_SIZE, HoleKey
from controller.audit.format.records import ChainPosition, Moment, Record, RecordEntry, encode
from controller.audit.log import Log
from controller.audit.read.reader import records
from controller.audit.replay import decode_decision
from controller.audit.simulate import RecorderKeys
from controller.audit.verify import verify
from controller.procedure.model.effects import Prompt, Settled
from controller.procedure.model.events import Actor, Event, Paid
from controller.procedure.model.game import Game
from controller.procedure.model.row import Refused
from controller.procedure.model.state import State, Step
from controller.table.intake import DeviceSettings
from controller.table.loop import DeviceConfig, TableEnvironment, TableParts
from controller.table.memory import TableDisplay
from controller.table.running import RunningTable
from drivers.devices import LinkState
from drivers.session import Supervisor
from firmware_protocol.device import ControlRequest, Plug, ShufflePace
from firmware_protocol.messages import DeviceClass
from hil.devices import SimulatedStation as SimStation
from hil.table.robots import PlayerChoice, Players, Robot
from hil.table.robots.robot import Who, card_of
from hil.table.scripts.shoe import whole_shoe
from tests.support.drivers.simulated import OWN, Desk, Plugged, now_us, simulate, stopped, until
from tests.support.procedure.random_games import game_with

TABLE: Final = "bj-1"
DEALER: Final = Actor("dealer", "Ann")
FLOOR: Final = Actor("floor", "Flo")
SECOND: Final = Actor("dealer", "Bob")
SURVEILLANCE: Final = X25519PrivateKey.generate()
KEYS: Final = RecorderKeys(
    Ed25519PrivateKey.generate(), HoleKey(os.urandom(HOLE_KEY_SIZE)), SURVEILLANCE.public_key()
)
SEGMENT: Final = 256 * 1024
NOON: Final = 1_800_000_000_000_000
SHOE, SHUFFLER, STATION = "SH-1", "SF-1", "ST-1"
SEATS: Final = tuple(range(1, 8))


class SimulatedBook:
    """Writes in whoever's turn it is, which is the loop's."""

    def __init__(self, log: Log, failed: Callable[[LogFailed], None]) -> None:
        self._log = log
        self.failed: LogFailed | None = None
        self.appended = 0
        self.slow = 0.001
        """Seconds that the disk takes."""
        self.refusing: Exception | None = None
        """Why nothing is taken."""
        self.killed_at = -1
        """The group at which the machine dies; nobody hears of it any more."""
        self.killed_before = False
        """It dies before it is written, not after."""
        self.dead = asyncio.Event()
        self.paid: list[int] = []
        """The groups in which a payment was confirmed."""

    async def append(self, *entries: RecordEntry) -> tuple[ChainPosition, ...]:
        await asyncio.sleep(self.slow)
        if self.refusing is not None:
            raise self.refusing
        dies = self.appended == self.killed_at or self.dead.is_set()
        if any(isinstance(getattr(one.data, "event", None), Paid) for one in entries):
            self.paid.append(self.appended)
        self.appended += 1
        if dies and (self.killed_before or self.dead.is_set()):
            await self._die()
        made = self._log.write([replace(one, data=Raw(encode(one.data))) for one in entries])
        if dies:
            await self._die()
        if any(one.sign for one in entries) or self._log.checkpoint_due_in() == 0:
            self._log.sign()
        return tuple(made)

    async def _die(self) -> None:
        self.dead.set()
        await asyncio.Future()

    async def close(self) -> None:
        if not self.dead.is_set():
            self._log.close()
        else:
            self._log.release()  # what a killed process does with what it holds


def clock() -> Moment:
    """Of the loop's time."""
    return Moment(NOON + now_us(), now_us() * 1000, "synced")


class Room:
    """A table's devices, and the place of its record. It stays while controllers come and go."""

    def __init__(
        self,
        folder: Path,
        game: Game,
        *,
        house: DeviceSettings | None = None,
        stations: bool = True,
        shuffler: bool = True,
        keys: RecorderKeys = KEYS,
    ) -> None:
        self.folder = folder
        self.game = game
        self.house = house or DeviceSettings()
        self.desk = Desk()
        self.shoe = self._plug(DeviceClass.SHOE, SHOE)
        self.shuffler = self._plug(DeviceClass.SHUFFLER, SHUFFLER) if shuffler else None
        self.station = (
            self._plug(DeviceClass.STATION, STATION, make=lambda: SimStation(seats=SEATS))
            if stations
            else None
        )
        self.keys = keys
        self.segment = SEGMENT
        self.refusing: Exception | None = None
        """What the next record says from its beginning."""
        self.record = folder / "record"
        self.books: list[SimulatedBook] = []
        self.last = State()
        """The state that was seen last."""
        self._kill = (-1, False)

    def _plug(self, kind: DeviceClass, serial: str, **options: Any) -> Plugged:
        made = self.desk.plug(Plugged(self.folder / serial, kind, serial, **options))
        made.stand.port_number = len(self.desk.devices)
        return made

    def parts(self) -> TableParts:
        devices = [DeviceConfig(self.shoe.wanted)]
        if self.shuffler is not None:
            devices.append(DeviceConfig(self.shuffler.wanted))
        if self.station is not None:
            devices.append(DeviceConfig(self.station.wanted, SEATS))
        return TableParts(
            TABLE,
            self.game,
            self.game,
            self.house,
            tuple(devices),
            self.keys,
            lambda: OWN,
            self.record,
            size=self.segment,
        )

    def world(self) -> TableEnvironment:
        return TableEnvironment(lambda: self.desk.find, self.desk.open, now_us, clock, self._book)

    def _book(self, log: Log, failed: Callable[[LogFailed], None]) -> SimulatedBook:
        book = SimulatedBook(log, failed)
        book.refusing, self.refusing = self.refusing, None
        book.killed_at, book.killed_before = self._kill
        self.books.append(book)
        return book

    @property
    def decks(self) -> int:
        return self.game.decks

    def station_of(self, seat: int) -> Plugged | None:
        return self.station

    @property
    def book(self) -> SimulatedBook:
        return self.books[-1]

    def serve(self) -> RunningTable:
        return RunningTable(self.parts(), self.world())

    def other_shoe(self, serial: str) -> None:
        """Another one is in its place, paired and plugged in."""
        self.shoe.request(Plug(connected=False))
        self.shoe = self._plug(DeviceClass.SHOE, serial)

    # --- death ----------------------------------------------------------------------------

    def kill(self, group: int, *, before: bool) -> None:
        """The next controller dies there."""
        self._kill = (group, before)

    def spare(self) -> None:
        self._kill = (-1, False)

    async def died(self) -> None:
        """Returns when it has."""
        await until(lambda: bool(self.books), 60)
        await self.book.dead.wait()

    def cut_cables(self) -> None:
        """Nothing that is said from here on comes to a device: whoever would say it is dead."""
        for device in self.desk.devices:
            device.listener = None

    def switch_off(self) -> None:
        for device in self.desk.devices:
            device.switch_off()

    # --- what stands in the record --------------------------------------------------------

    def records(self, kind: str = "") -> list[Record]:
        every = [record for _, record in records(self.record)]
        return [record for record in every if not kind or record.kind == kind]


class AtTable:
    """The dealer's screen of a table that runs beside whoever stands before it."""

    def __init__(self, table: RunningTable) -> None:
        self._table = table

    @property
    def shown(self) -> TableDisplay:
        return self._table.shown

    async def act(self, name: str, fields: Mapping[str, Any], who: Who) -> Refused | None:
        actor = DEALER if who == "dealer" else FLOOR
        second = SECOND if who == "two" else None
        done = await self._table.act({"type": name, **fields}, actor, second=second)
        answer = done.answered[0].answer
        return answer if isinstance(answer, Refused) else None

    async def shuffle_again(self) -> None:
        await self._table.shuffle_again(DEALER)


async def ready(table: RunningTable, within: float = 30.0) -> None:
    """Every device is; a log that the record does not know is adopted by two people."""
    for one in table.devices.supervised.values():
        await _ready(one.supervisor, within)


async def _ready(supervisor: Supervisor, within: float) -> None:
    await until(lambda: supervisor.state is LinkState.READY or supervisor.held is not None, within)
    if supervisor.held is not None:
        await supervisor.adopt(("Flo", "Bob"))
        await until(lambda: supervisor.state is LinkState.READY, within)


@asynccontextmanager
async def room(
    folder: Path, /, game: Game | str = "classic", **options: Any
) -> AsyncIterator[Room]:
    """A room whose devices are switched off afterwards. No power is lost in it, so nobody waits for
    the disk."""
    made = Room(folder, game if isinstance(game, Game) else game_with(game, {}), **options)
    with patch.multiple(Disk, sync=DEFAULT, sync_directory=DEFAULT, drop_cached=DEFAULT):
        try:
            yield made
        finally:
            made.switch_off()


@asynccontextmanager
async def kept(
    folder: Path, /, game: Game | str = "classic", **options: Any
) -> AsyncIterator[Room]:
    """The same; afterwards its record is verified."""
    async with room(folder, game, **options) as made:
        yield made
    right(made)


class Served(NamedTuple):
    """A room, the table that is served there, and who is at it."""

    room: Room
    table: RunningTable
    robot: Robot

    @property
    def state(self) -> State:
        return self.table.shown.state

    @property
    def shuffler(self) -> Plugged:
        """That of this room, which has one."""
        assert self.room.shuffler is not None
        return self.room.shuffler

    @property
    def station(self) -> Plugged:
        """That of this room, which has one."""
        assert self.room.station is not None
        return self.room.station

    def at(self, *steps: Step) -> bool:
        return self.table.shown.state.step in steps

    async def to(self, done: Callable[[State], bool]) -> None:
        await self.robot.play(lambda shown: done(shown.state))

    async def to_step(self, step: Step) -> None:
        await self.to(lambda s: s.step is step)

    async def comes_to(self, step: Step, within: float = 30.0) -> None:
        """By itself: nobody does anything meanwhile."""
        await until(lambda: self.at(step), within)

    async def stands(self, step: Step) -> None:
        assert self.state.step is step, self.state.step

    async def asked(self, device: Plugged, *requests: ControlRequest) -> None:
        """Something is done to the device."""
        for request in requests:
            device.request(request)

    async def to_end(self) -> None:
        """The round is over."""
        number = self.state.round
        await self.to(lambda s: s.step is Step.WAGERING and s.round >= number and not s.seats)

    def events(self) -> list[Event]:
        return [decode_decision(record).event for record in self.room.records("decision")]

    def data(self, kind: str, what: str = "") -> list[dict[str, Any]]:
        """The data of all records of this kind; `what`: of this only."""
        every = [msgspec.json.decode(record.data) for record in self.room.records(kind)]
        return [data for data in every if not what or data["what"] == what]

    def whats(self, kind: str) -> list[str]:
        return [str(data["what"]) for data in self.data(kind)]


@asynccontextmanager
async def served(made: Room, players: Players | None = None, *top: str) -> AsyncIterator[Served]:
    """`top`: the first cards of the shoe, the burned one first."""
    if made.shuffler is not None and made.shuffler.stand.powered:
        made.shuffler.request(ShufflePace(shuffle_ms=20))
    table = made.serve()
    async with table:
        await ready(table)
        robot = Robot(made, AtTable(table), players or Policy(), cards=lambda: whole(made, top))
        yield Served(made, table, robot)


@asynccontextmanager
async def serving(
    folder: Path,
    /,
    game: Game | str = "classic",
    *top: str,
    players: Players | None = None,
    **options: Any,
) -> AsyncIterator[Served]:
    async with room(folder, game, **options) as made, served(made, players, *top) as one:
        yield one


@asynccontextmanager
async def verified(
    folder: Path, /, game: Game | str = "classic", *top: str, **options: Any
) -> AsyncIterator[Served]:
    """The same; afterwards its record is verified."""
    async with serving(folder, game, *top, **options) as one:
        yield one
    right(one.room)


def whole(made: Room, top: tuple[str, ...]) -> tuple[str, ...]:
    """A whole shoe that begins so; empty: as the maker shuffles it."""
    return whole_shoe(made.game, tuple(map(card_of, top))) if top else ()


def run(main: Coroutine[Any, Any, None]) -> None:
    simulate(main)


def right(made: Room) -> None:
    """The record stands by itself: every decision is what the rules make, every card opens."""
    found = [finding.what for finding in verify(made.record).findings]
    assert found == [], found


class Policy:
    """Players who answer by what they are asked alone, so that they answer the same again."""

    def wagers(self) -> list[tuple[int, str, int]]:
        return [(1, "main", 1000), (2, "main", 2000)]

    def choose(self, prompt: Prompt) -> PlayerChoice:
        if "insure" in prompt.choices and prompt.seat == 1:
            return PlayerChoice("insure")
        for choice in ("take_pay", "decline"):
            if choice in prompt.choices:
                return PlayerChoice(choice)
        if "split" in prompt.choices and prompt.total == 16:
            return PlayerChoice("split")
        if "double" in prompt.choices and prompt.total == 11:
            return PlayerChoice("double")
        return PlayerChoice("hit" if prompt.total < 17 and "hit" in prompt.choices else "stand")


# --- a round that is dealt whatever dies ----------------------------------------------------------


SPLITTING: Final = ("2c", "6c", "8d", "Ah", "5d", "8h", "7s", "Tc", "3c", "9h", "Td")
"""One is burned. Seat 1 doubles eleven, seat 2 splits eights and doubles one of them, the dealer
has an ace up and eighteen."""


class Ended(NamedTuple):
    """What a round came to."""

    state: State
    settled: list[Settled]
    groups: int
    """How often something was recorded."""
    paid: list[int]
    """The groups in which a payment was confirmed."""
    kinds: list[str]
    findings: list[str]
    repeats: list[Prompt]


def dealt(folder: Path, game: str, kill: int = -1, *, before: bool = False) -> Ended:
    """A round of this game. `kill`: the group of records at which the controller dies; `before`
    it is written, or after."""
    return simulate(_dealt(folder, game, kill, before=before))


async def _dealt(folder: Path, game: str, kill: int, *, before: bool) -> Ended:
    async with room(folder, game) as made:
        assert made.shuffler is not None
        made.shuffler.request(ShufflePace(shuffle_ms=20))
        robots: list[Robot] = []
        made.kill(kill, before=before)
        first = asyncio.create_task(_session(made, robots))
        died = asyncio.create_task(made.died())
        await asyncio.wait((first, died), return_when=asyncio.FIRST_COMPLETED)
        if died.done():
            made.cut_cables()
            await stopped(first)
            made.spare()
            await _session(made, robots)
        else:
            await stopped(died)
            await first
        return ended(made, robots)


async def _session(made: Room, robots: list[Robot]) -> None:
    table = made.serve()
    async with table:
        await ready(table)
        robots.append(Robot(made, AtTable(table), Policy(), cards=lambda: _shoe(made)))
        await robots[-1].play(_over)
        made.last = table.shown.state


def _over(shown: TableDisplay) -> bool:
    state = shown.state
    return state.step is Step.WAGERING and state.round == 1 and not state.holds


def _shoe(made: Room) -> tuple[str, ...]:
    top = SPLITTING if made.game.options.burn.on_shuffle else SPLITTING[1:]
    return whole_shoe(made.game, tuple(map(card_of, top)))


def ended(made: Room, robots: list[Robot]) -> Ended:
    decisions = [decode_decision(record) for record in made.records("decision")]
    effects = [effect for one in decisions for effect in one.effects]
    report = verify(made.record)
    return Ended(
        made.last,
        [effect for effect in effects if isinstance(effect, Settled)],
        made.books[0].appended,
        made.books[0].paid,
        [record.kind for record in made.records()],
        [finding.what for finding in report.findings],
        [prompt for robot in robots for prompt in robot.repeats],
    )


ROOMLESS = DiskFull("here", "no room", "free some")
CARDS = ("2c", "6c", "8d", "9h", "5d", "Th", "7s", "Tc", "3c", "9s", "Td")


def is_ready(one: Served, serial: str) -> bool:
    return one.table.supervisor(serial).state is LinkState.READY
