"""A table in simulated time with its API before it: real people's files, a desk whose thread is the
loop's own, and clients that ask the application without a port between them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import httpx
import msgspec
import pytest
from msgspec.structs import asdict
from starlette.applications import Starlette

from controller.api.contract.view import View
from controller.api.http import application
from controller.api.http.sse import TableStreams
from controller.api.service import ServedTable, TableApi
from controller.audit.replay import decode_decision
from controller.people import PeopleDesk
from controller.people.pins import CannotHash
from controller.people.service import CHECK_TIMEOUT, PeopleUnavailable
from controller.procedure.model.events import Event
from controller.procedure.model.game import DECISIONS
from controller.procedure.model.row import Refused
from controller.procedure.model.state import State, Step
from controller.table.memory import TableDisplay
from controller.table.running import RunningTable
from drivers.keys import KeyProblem
from firmware_protocol.device import ShufflePace
from hil.table.robots import Api, ApiProblem, Players, Robot, Screen
from hil.table.robots.api_client import Pin
from hil.table.robots.robot import Who
from tests.support.drivers.simulated import simulate
from tests.support.table.simulated.house import CHEAP, PINS, house
from tests.support.table.simulated.serving import Policy, Room, clock, ready, room, whole

_T = TypeVar("_T")
FIRST: Final = Pin("F-2", PINS["F-2"])
SECOND: Final = Pin("D-18", PINS["D-18"])
ANN: Final = Pin("D-17", PINS["D-17"])
URL: Final = "http://localhost"


class SimulatedDesk(PeopleDesk):
    """A desk that looks at PINs in whoever's turn it is: where time is simulated, nothing may wait
    for a thread."""

    late = False
    """The disk of the people's file stands still."""

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        await asyncio.sleep(CHECK_TIMEOUT if self.late else 0.01)
        if self.late:
            raise PeopleUnavailable("has not come back")
        try:
            return work()
        except (KeyProblem, CannotHash) as problem:
            raise PeopleUnavailable(str(problem)) from None


class ApiScreen:
    """The dealer's screen of a robot, who sees and does what the API lets them."""

    def __init__(self, at: AtApi, screen: Screen) -> None:
        self._at = at
        self._screen = screen
        self._former: TableDisplay | None = None
        self._shown: TableDisplay | None = None
        self.acted = 0

    @property
    def shown(self) -> TableDisplay:
        now = self._at.table.shown
        if self._shown is None or now is not self._former:
            self._former, self._shown = now, shown_of(self._at.api.views.now().view)
        return self._shown

    async def act(self, name: str, fields: Mapping[str, Any], who: Who) -> Refused | None:
        if who == "dealer":
            done = await self._screen.act(name, **fields)
        else:
            done = await self._screen.floor(name, FIRST, SECOND, **fields)
        self.acted += 1
        first = done.answers[0]
        return None if first.taken else Refused(first.code, first.why)

    async def shuffle_again(self) -> None:
        await self._screen.shuffle_again()


def shown_of(view: View) -> TableDisplay:
    """As whoever reads it has it."""
    return TableDisplay(
        view.seq, State(**asdict(view.state)), view.effects, again=view.again, stopped=view.stopped
    )


class AtApi(NamedTuple):
    """All that a test has before it."""

    room: Room
    table: RunningTable
    desk: SimulatedDesk
    served: ServedTable
    app: Starlette
    client: Api

    @property
    def api(self) -> TableApi:
        found: TableApi = self.app.state.api
        return found

    @property
    def streams(self) -> TableStreams:
        found: TableStreams = self.app.state.streams
        return found

    @property
    def state(self) -> State:
        return self.table.shown.state

    async def dealing(
        self, name: str = "dealer", who: Pin = ANN, step: Step | None = None
    ) -> Screen:
        """A screen at which a dealer has signed in, and has dealt up to a step."""
        screen = await self.client.open(name)
        await screen.sign_in(*who)
        if step is not None:
            await self.to_step(screen, step)
        return screen

    async def robot(self, screen: Screen, players: Players | None = None, *top: str) -> Robot:
        made = self.room
        if made.shuffler is not None:
            made.shuffler.request(ShufflePace(shuffle_ms=20))
        return Robot(
            made, ApiScreen(self, screen), players or Policy(), cards=lambda: whole(made, top)
        )

    async def to_step(self, screen: Screen, step: Step, *top: str) -> Robot:
        """Plays until the table stands there."""
        robot = await self.robot(screen, None, *top)
        await robot.play(lambda shown: shown.state.step is step)
        return robot

    def whats(self) -> list[str]:
        """Of all that was recorded of people."""
        return [what_of(record.data) for record in self.room.records("person")]


async def refused(asked: Awaitable[object]) -> tuple[int, str]:
    """The status and the code with which the API refuses it. Fails if it does not."""
    with pytest.raises(ApiProblem) as caught:
        await asked
    return caught.value.status, caught.value.code


def what_of(data: Any) -> str:
    return str(msgspec.json.decode(data)["what"])


@asynccontextmanager
async def at_room(made: Room, file_of: Path, **options: Any) -> AsyncIterator[AtApi]:
    table = made.serve()
    loop = asyncio.get_running_loop()
    async with table:
        desk = SimulatedDesk(
            house(file_of), table.record, table.boot, shut=lambda: table.shut, cost=CHEAP
        )
        served = ServedTable(table, desk, clock)
        app = application(served, clock=loop.time)
        async with Api(URL, transport=httpx.ASGITransport(app)) as client:
            at = AtApi(made, table, desk, served, app, client)
            try:
                if options.pop("adopted", True):
                    await ready(table)
                yield at
            finally:
                await desk.close()


@asynccontextmanager
async def at_api(folder: Path, game: str = "classic", **options: Any) -> AsyncIterator[AtApi]:
    adopted = options.pop("adopted", True)
    async with room(folder, game, **options) as made, at_room(made, folder, adopted=adopted) as at:
        yield at


def run(main: Coroutine[Any, Any, None]) -> None:
    simulate(main)


AsyncTest: TypeAlias = Callable[..., Coroutine[Any, Any, None]]


def with_context(
    make: Callable[[Path], AbstractAsyncContextManager[Any]], count: int = 1
) -> Callable[[AsyncTest], Callable[..., None]]:
    """Decorate an async test: it runs in simulated time, within this context, whose value it gets
    as its first parameter or, if there are several values, as its first `count` ones."""

    def decorate(test: AsyncTest) -> Callable[..., None]:
        signature = inspect.signature(test)
        names = list(signature.parameters)[count:]

        def in_context(tmp_path: Path, **given: Any) -> None:
            async def main() -> None:
                async with make(tmp_path) as made:
                    first = made if count > 1 else (made,)
                    more = {"tmp_path": tmp_path} if "tmp_path" in names else {}
                    await test(*first, **given, **more)

            run(main())

        parameters = [inspect.Parameter("tmp_path", inspect.Parameter.KEYWORD_ONLY)]
        parameters += [
            signature.parameters[name].replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name in names
            if name != "tmp_path"
        ]
        in_context.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        in_context.__name__, in_context.__doc__ = test.__name__, test.__doc__
        in_context.__module__ = test.__module__
        return in_context

    return decorate


def api_test(game: str = "classic", **options: Any) -> Callable[[AsyncTest], Callable[..., None]]:
    """A test with a table and its API: `async def test(at: AtApi, ...)`."""
    return with_context(lambda folder: at_api(folder, game, **options))


async def asked(
    at: AtApi, method: str, path: str, *, url: str = URL, **options: Any
) -> httpx.Response:
    """One request, as it is."""
    transport = httpx.ASGITransport(at.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=url) as plain:
        return await plain.request(method, path, **options)


VOID = {"type": "RoundVoided", "reason": "cards on the floor"}


def events(at: AtApi) -> list[Event]:
    return [decode_decision(record).event for record in at.room.records("decision")]


def last_event(at: AtApi) -> Event:
    return events(at)[-1]


@contextmanager
def nothing_recorded(at: AtApi, *kinds: str) -> Iterator[None]:
    before = [record.seq for kind in kinds for record in at.room.records(kind)]
    yield
    assert [record.seq for kind in kinds for record in at.room.records(kind)] == before


FIELDS: dict[str, dict[str, Any]] = {
    **{one.__name__: {"seat": 1, "hand": 0} for one in DECISIONS},
    **{one: {"seat": 1} for one in ("EvenMoney", "Decline", "PayTaken", "PayDeclined")},
    "Insure": {"seat": 1, "amount": 500},
    "ShoeLoaded": {"count": 312},
    "WagerPlaced": {"seat": 1, "bet": "main", "amount": 500},
    "WagerRemoved": {"seat": 1, "bet": "main"},
    "PaymentCorrected": {
        "round": 1,
        "seat": 1,
        "hand": 0,
        "bet": "main",
        "paid": 100,
        "due": 200,
    },
    "FaceUpCardFound": {"card": 1},
    "ErrorCardExposed": {"card": 1},
    "CardEntered": {"card": 1},
    "DealerCardMissed": {"which": 1},
    "SeatMissed": {"seat": 1},
    "SeatShorted": {"seat": 1},
    "PlayerAbsent": {"seat": 1},
    "DeckSuspect": {"why": "duplicate"},
    "FloorRuled": {"way": "void"},
    "RoundVoided": {"reason": "spilt"},
}
"""What each act has to say."""


async def send(screen: Screen, act: Mapping[str, Any]) -> Any:
    fields = dict(act)
    return await screen.act(fields.pop("type"), **fields)


async def both_sign(screen: Screen, act: Mapping[str, Any]) -> None:
    """The floor and a second person sign for an act."""
    await screen.authorise(act, *FIRST)
    await screen.authorise(act, *SECOND, second=True)
