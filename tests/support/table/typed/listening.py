"""What the tests of the gateway and of the loop listen with: states of every step, all that devices
tell, and a table loop whose record is a list."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Concatenate, Final, ParamSpec

from msgspec.structs import replace

from controller.audit.format.records import (
    ChainPosition,
    DeviceCursor,
    RecordActor,
    RecordEntry,
    encode,
)
from controller.procedure.engine import LiveTable, Procedure
from controller.procedure.model import events
from controller.procedure.model.events import Device, Event
from controller.procedure.model.felt import hole_is_next, next_spare
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import WAITING, State, Step
from controller.rules.cards import Card
from controller.table.intake import (
    AppliedInput,
    Applier,
    DeviceSettings,
    DeviceSource,
    IntakeContext,
    TableInput,
    TableSnapshot,
    device_input,
)
from controller.table.loop import (
    LoopStart,
    RequestResult,
    TableLoop,
)
from controller.table.memory import CardVault, TableDisplay, payment_prompt
from drivers.devices import (
    DeviceEvent,
    Faulted,
    Sealed,
    SealedCard,
    Tampered,
    shoe,
    shuffler,
    station,
)
from drivers.devices.events import Origin
from firmware_protocol.messages import (
    CardFlags,
    CardRead,
    FaultCode,
    JamCode,
    ReadWhy,
    TamperSource,
    WhichButton,
)
from tests.support.asynchronous import simulated_in
from tests.support.drivers.simulated import now_us, stopped
from tests.support.procedure.random_games import game_with
from tests.support.procedure.random_table import RandomTable
from tests.support.table.simulated.serving import (
    FLOOR,
    KEYS,
    SECOND,
    SHOE,
    SHUFFLER,
    STATION,
    TABLE,
)

SALT: Final = b"saltysecret"
SERIALS: Final[dict[Device, str]] = {"shoe": SHOE, "shuffler": SHUFFLER, "station": STATION}
GAME: Final = game_with(
    "classic", {"decks": 2, "decisions.by": "both", "double.natural": True}, "default"
)
PROCEDURE: Final = Procedure(GAME)
LIVE: Final = LiveTable(GAME)
_EACH: Final = 3
"""States of each kind that are kept."""


def ear(**house: object) -> IntakeContext:
    """A new one, with nothing in its vault."""
    vault = CardVault(TABLE, KEYS.hole, KEYS.surveillance)
    return IntakeContext(GAME, DeviceSettings(**house), vault)  # type: ignore[arg-type]


def taking(listens: IntakeContext, seats: tuple[int, ...] = (1, 2, 3)) -> Applier:
    return Applier(LIVE, listens, PROCEDURE.takes, seats)


def hears(
    table: Applier, stands: TableSnapshot, told: DeviceEvent, device: Device = "shoe"
) -> AppliedInput:
    """What the table makes of something that a device tells it."""
    found = device_input(table.context, stands, told, source(device))
    return table.apply_input(stands, found, source(device).cursor)


def source(device: Device = "shoe", seq: int = 9) -> DeviceSource:
    return DeviceSource(device, DeviceCursor(SERIALS[device], 5, seq, f"{seq:016x}", 1, 1000))


def origin(device: Device = "shoe", seq: int = 9) -> Origin:
    return Origin(SERIALS[device], 5, seq, 1, 1000, 2000)


# --- what devices tell ------------------------------------------------------------------------


def read(card: Card, **fields: object) -> CardRead:
    return replace(CardRead(7, 21, card, 99, 0xFE, CardFlags(0), 40, 1, SALT), **fields)


def card(number: Card, **fields: object) -> shoe.ShoeCardRead:
    body = read(number, **fields)
    return shoe.ShoeCardRead(origin(), body.shoe, body.pos, SealedCard(number), Sealed(body))


def unread(why: ReadWhy = ReadWhy.UNREADABLE) -> shoe.ReadFailed:
    return shoe.ReadFailed(origin(), 21, why)


def press(seat: int, button: WhichButton, token: int, *, stale: bool = False) -> DeviceEvent:
    return station.ButtonPressed(origin("station"), seat, button, 1, token, stale)


def everything() -> Iterator[tuple[Device, DeviceEvent]]:
    """Something of every kind, with every value that could make a difference."""
    here = origin()
    for flags in CardFlags(0), CardFlags.DUPLICATE, CardFlags.DOUBLE_FEED, CardFlags.REVERSED:
        yield "shoe", card(17, flags=flags)
    yield "shoe", card(17, confidence=55, alternative=18)
    yield "shoe", card(17, back=99)
    for why in ReadWhy:
        yield "shoe", unread(why)
    yield "shoe", shoe.CutCardCame(here, 22)
    yield "shoe", shoe.CardRetracted(here, 21)
    for count in (0, 103, 104):
        yield "shoe", shoe.ShoeLoaded(here, 8, 2, count, 3)
    for is_so in (True, False):
        yield "shoe", shoe.CoverMoved(here, is_so)
        yield "shuffler", shuffler.DoorMoved(here, is_so)
        yield "shuffler", shuffler.ShuffleDone(here, 3, 104, 0, 0, is_so)
        for source_ in TamperSource:
            yield "shoe", Tampered(here, source_, is_so)
    for jam in JamCode:
        yield "shoe", shoe.ShoeJammed(here, jam)
        yield "shuffler", shuffler.ShufflerJammed(here, jam)
    yield "shuffler", shuffler.ShuffleStarted(here, 3, 2)
    yield "shuffler", shuffler.ShuffleProgressed(here, 45)
    yield "shuffler", shuffler.ShuffleDone(here, 3, 103, 1, 0, True)
    yield "shuffler", shuffler.CountWrong(here, 104, 103)
    for code in FaultCode:
        for device in SERIALS:
            yield device, Faulted(here, code, 1)
    for button in WhichButton:
        for token in (0, 1, 2):
            yield "station", press(1, button, token)
            yield "station", press(1, button, token, stale=True)
        yield "station", station.ButtonReleased(here, 1, button, 1, 1, False, 80)
        yield "station", station.ButtonStuck(here, 1, button)
    yield "station", station.LampBroken(here, 1, 0)


# --- states -----------------------------------------------------------------------------------


@cache
def states() -> tuple[State, ...]:
    """Of every step that waits, and of each kind that makes a difference to a card."""
    found: dict[tuple[object, ...], list[State]] = defaultdict(list)

    def see(s: State, event: Event, answer: Decision | Refused) -> None:
        kept = found[_kind(s)]
        if len(kept) < _EACH and s not in kept:
            kept.append(s)

    for seed in range(40):
        RandomTable(PROCEDURE, f"listening {seed}", wrong=0.08, watch=see).play(12)
    every = tuple(s for kept in found.values() for s in kept)
    assert {s.step for s in every} == set(WAITING)
    return every


def _kind(s: State) -> tuple[object, ...]:
    hole = s.step is Step.DEALING and hole_is_next(s)
    spare = "" if s.spare is None else "known" if s.spare.card >= 0 else "hidden"
    back = s.holds[-1].back if s.holds else None
    return (s.step, hole, spare, next_spare(s) is None, bool(s.seats), back, s.lost)


def now(s: State, listens: IntakeContext | None = None) -> TableSnapshot:
    """What a table knows that stands there, with its buttons armed."""
    return taking(listens or ear()).with_buttons(TableSnapshot(s))


# --- a table loop whose record is a list ----------------------------------------------------------


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
            taking(ear()),
            self._append,
            start,
            show=self._show,
            on_result=self._told,
            utc=now_us,
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
