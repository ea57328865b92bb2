"""Records to be looked at, and a browser that looks at them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Final, Self

import httpx
from starlette.types import ASGIApp

from controller.audit.format.records import RecordActor, RecordEntry
from controller.audit.log import Log, RecordOpening
from controller.audit.replay import identity_of
from controller.config.loader import load_table
from controller.games import game_of_table
from controller.procedure.engine import Procedure
from controller.procedure.model.events import CardDrawn
from controller.procedure.model.game import Game
from controller.screens.common.access import HeaderGuard
from controller.screens.common.sessions import Clock, LinkSessions, LoginLinks, PageUser
from controller.screens.common.texts import load
from controller.screens.review.source import FileSource
from controller.screens.review.web import LinkLogin, application, pages_of
from controller.screens.review.web.app import ReviewApp
from tests.support.audit.record.dealing import TABLE, Dealing
from tests.support.audit.record.table import TABLE_KEY, FakeClock

HOST: Final = "127.0.0.1:8731"
HERE: Final = f"http://{HOST}"
SEGMENT: Final = 256 * 1024
EVE: Final = PageUser("Eve")


class Paced(FakeClock):
    """Some time passes between two looks at it."""

    def go(self, seconds: float) -> None:
        super().go(seconds + 0.35)


def mega() -> Game:
    """As a table deals it, with its own money."""
    return game_of_table(load_table("mega-1"))


def dealt(seed: str, rounds: int) -> Dealing:
    """Rounds with all that goes wrong."""
    table = Dealing(Procedure(mega()), seed)
    table.play(rounds)
    return table


def seen(entries: Sequence[RecordEntry]) -> list[RecordEntry]:
    """With what a shoe says of how it read each card that came face up."""
    found: list[RecordEntry] = []
    random = Random(7)
    for number, one in enumerate(entries, 1):
        event = getattr(one.data, "event", None)
        if isinstance(event, CardDrawn) and one.kind == "decision":
            data = {
                "what": "CardSeen",
                "shoe": 1,
                "pos": number,
                "card": event.card,
                "confidence": random.randrange(84, 101),
                "alternative": 254 if random.random() < 0.9 else (event.card + 13) % 52,
                "flags": 0,
                "dwell": 110,
                "back": 1,
            }
            found.append(RecordEntry("device", RecordActor("device", "shoe"), data, one.round))
        found.append(one)
    return found


def written(
    place: Path,
    table: Dealing,
    entries: Sequence[RecordEntry] | None = None,
    *,
    size: int = SEGMENT,
) -> None:
    """Their record, with a checkpoint now and then."""
    opening = RecordOpening.at(place, table=TABLE)
    last = opening.last
    clock = Paced() if last is None else Paced(last.utc + 10**9)
    identity = identity_of(TABLE, table.game)
    log = Log.begin(opening, identity, TABLE_KEY, state=None, clock=clock, size=size)
    for at, one in enumerate(table.entries if entries is None else entries):
        log.write([one])
        if one.sign or at % 20 == 0:
            log.sign()
    log.close()


# --- a browser ---------------------------------------------------------------------------------


class Answer:
    """What came back."""

    def __init__(self, found: httpx.Response) -> None:
        self.status = found.status_code
        self.headers = found.headers
        self.bytes = found.content
        self.text = found.text

    @property
    def secret(self) -> str:
        """That of the session, as a form of the page has it."""
        found = re.search(r'name="secret" value="([^"]+)"', self.text)
        assert found is not None, "the page has no form"
        return found[1]

    @property
    def words(self) -> str:
        """Of a page, without what is in angle brackets."""
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", self.text))


class Browser:
    """Asks an application, and keeps its cookies."""

    def __init__(self, app: ASGIApp, host: str = HOST) -> None:
        self.app = app
        self.cookies: dict[str, str] = {}
        self.secret = ""
        self._here = f"http://{host}"

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self._ask("GET", path, None, headers or {})

    def post(
        self,
        path: str,
        fields: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """A form of the session's own pages."""
        form = {"secret": self.secret, **(fields or {})}
        return self._ask("POST", path, form, {"origin": self._here, **(headers or {})})

    def send(self, method: str, path: str, **options: Any) -> Answer:
        """Anything at all."""
        return asyncio.run(self._send(method, path, **options))

    def _ask(
        self,
        method: str,
        path: str,
        form: Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> Answer:
        return self.send(method, path, data=form, headers=dict(headers))

    async def _send(self, method: str, path: str, **options: Any) -> Answer:
        transport = httpx.ASGITransport(app=self.app)
        headers = {**options.pop("headers", {})}
        if self.cookies:
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        async with httpx.AsyncClient(transport=transport, base_url=self._here) as client:
            found = await client.request(method, path, headers=headers, **options)
        for text in found.headers.get_list("set-cookie"):
            for name, said in SimpleCookie(text).items():
                self.cookies[name] = said.value
                if said["max-age"] == "0":
                    del self.cookies[name]
        return Answer(found)


class Looking:
    """A review of a record, and a browser in it."""

    def __init__(self, place: Path, scratch: Path, clock: Clock | None = None) -> None:
        scratch.mkdir(exist_ok=True)
        self.source = FileSource(place)
        self.source.begin(lambda words: None)
        self.ended: list[PageUser] = []
        clocks = {} if clock is None else {"clock": clock}
        self.sessions = LinkSessions(ended=self.ended.append, **clocks)
        self.links = LoginLinks(**clocks)
        self.review: ReviewApp = application(
            self.source, pages_of(load()), LinkLogin(self.sessions, self.links), scratch
        )
        self.app = HeaderGuard(self.review.app, (HOST,))
        self.browser = Browser(self.app)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.review.close()

    def enter(self, person: PageUser = EVE) -> Browser:
        """Somebody comes in."""
        found = self.browser.get(f"/enter?word={self.links.make(person)}")
        assert found.status == 303, found.text
        self.browser.secret = self.browser.get("/about").secret
        return self.browser


@contextmanager
def looking(place: Path, scratch: Path, person: PageUser = EVE) -> Iterator[Browser]:
    with Looking(place, scratch) as found:
        yield found.enter(person)
