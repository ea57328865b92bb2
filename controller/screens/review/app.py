"""The review as an application: its pages, who may see each, and how people come in.

    app = application(source, pages_of(load()), sessions, links, scratch)

It can be mounted wherever a table is served: all that it needs of a record is a `Source`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from controller.audit.notes import VerifierKey
from controller.audit.records import KINDS
from controller.procedure.terms import card_words
from controller.rules.cards import NAMES
from controller.screens.common.doors import (
    TOLD,
    Cookie,
    Doors,
    Flow,
    Page,
    TooOften,
    Turned,
    Visit,
    message,
    static_route,
    told,
)
from controller.screens.common.forms import fields_of, only
from controller.screens.common.pages import Pages
from controller.screens.common.sessions import LIFE, Links, Looks, Role, Sessions, Tries
from controller.screens.common.static_files import StaticFiles
from controller.screens.common.texts import Texts
from controller.screens.review import live, views_export, views_record, views_rounds
from controller.screens.review.filters import BEFORE, FIELDS, one_of
from controller.screens.review.house import House
from controller.screens.review.problem_words import problem_words
from controller.screens.review.source import Source
from controller.sim.wording import EVENTS

READERS: Final[tuple[Role, ...]] = ("surveillance", "floor")
EXPORTERS: Final[tuple[Role, ...]] = ("surveillance",)
COOKIE: Final = "holecard-review"
TRIES: Final = 5
"""To come in, at once; then one every so many seconds."""
TRY_EVERY: Final = 10.0
_PACKAGES: Final = {
    "common": "controller.screens.common",
    "review": "controller.screens.review",
}


def pages_of(texts: Texts, base: str = "") -> tuple[Pages, StaticFiles]:
    """The templates and files of the review. `base`: the path that it is mounted at."""
    static = StaticFiles(*_PACKAGES.values())
    words = {
        "names": NAMES,
        "card_words": card_words,
        "problem_words": problem_words,
        "happening": lambda name: EVENTS.get(name, name),
        "kinds": [(kind, kind) for kind in KINDS],
    }
    return Pages(texts, static, words, base, **_PACKAGES), static


def _looks(visit: Visit[House]) -> Response:
    """How this person wants their pages, for as long as the session lasts."""
    theme = one_of("theme", visit.form.get("theme", "auto"), ("auto", "light", "dark"))
    suits = one_of("suits", visit.form.get("suits", "two"), ("two", "four"))
    visit.session.looks = Looks(
        "light" if theme == "light" else "dark" if theme == "dark" else "auto",
        "four" if suits == "four" else "two",
    )
    return visit.house.to("/about#looks")


PAGES: Final[tuple[Page[House], ...]] = (
    Page("/", views_rounds.start, READERS),
    Page("/rounds", views_rounds.rounds, READERS, (*FIELDS, BEFORE)),
    Page("/rounds/{round}", views_rounds.round_page, READERS, ("from", "all")),
    Page("/rounds/{round}/replay", views_rounds.replay_page, READERS, ("at",)),
    Page("/rounds/{round}/replay.json", views_rounds.replay_json, READERS),
    Page("/rounds/{round}/verify", views_rounds.verify_round, READERS, ("as",), "POST"),
    Page("/problems", views_record.problems, READERS, ("before", "what")),
    Page("/records", views_record.records, READERS, ("from",)),
    Page("/records/{seq}", views_record.record, READERS),
    Page("/report", views_record.pace, READERS, ("from", "to")),
    Page("/verify", views_record.verify_page, READERS),
    Page("/verify", views_record.verify_start, READERS, (), "POST"),
    Page("/export", views_export.form, EXPORTERS, ("round",)),
    Page(
        "/export",
        views_export.export,
        EXPORTERS,
        ("format", "round", "day", "all", "reason"),
        "POST",
    ),
    Page("/export/{id}", views_export.made, EXPORTERS),
    Page("/export/{id}/case.zip", views_export.fetch, EXPORTERS),
    Page("/live", live.page, READERS),
    Page("/about", views_record.about, READERS),
    Page("/looks", _looks, READERS, ("theme", "suits"), "POST"),
)
FLOWS: Final[tuple[Flow[House], ...]] = (Flow("/live/stream", live.stream, READERS, ("after",)),)


def application(
    source: Source,
    made: tuple[Pages, StaticFiles],
    sessions: Sessions,
    links: Links,
    scratch: Path,
    *,
    cookie: Cookie | None = None,
    table_key: VerifierKey | None = None,
) -> Review:
    """`made`: of pages_of(). `scratch`: a directory for cases until they are fetched."""
    pages, static = made
    house = House(source, pages, sessions, scratch, table_key)
    return Review(house, sessions, links, cookie or Cookie(COOKIE, path=pages.base or "/"), static)


class Review:
    """The application, and what is to be closed when it ends."""

    def __init__(
        self, house: House, sessions: Sessions, links: Links, cookie: Cookie, static: StaticFiles
    ) -> None:
        self.house = house
        self._pages = house.pages
        self._sessions = sessions
        self._links = links
        self._cookie = cookie
        self._tries = Tries(TRIES, TRY_EVERY)
        self._doors = Doors(house, sessions, house.pages, cookie)
        routes: list[BaseRoute] = [
            Route("/enter", self._enter, methods=["GET"]),
            self._doors.route(Page("/leave", self._leave, READERS, (), "POST")),
            static_route(static, house.pages),
            *(self._doors.route(page) for page in PAGES),
            *(self._doors.flow(flow) for flow in FLOWS),
        ]
        self.app = Starlette(
            routes=routes,
            exception_handlers={HTTPException: self._no_page},
        )

    def close(self) -> None:
        self.house.close()

    async def _enter(self, request: Request) -> Response:
        """A link is opened: once, and it is the session from then on."""
        try:
            fields = fields_of(request.url.query)
            only(fields, ("word",))
            if not self._tries.one():
                raise TooOften
            person = self._links.take(fields.get("word", ""))
            if person is None:
                raise _OldLink
            await run_in_threadpool(self.house.source.look, person.name, "review", "comes in")
        except TOLD as problem:
            return told(self._pages, problem, None)
        session = self._sessions.begin(person)
        answer = self.house.to("/rounds")
        self._cookie.put(answer, session, LIFE)
        return answer

    def _leave(self, visit: Visit[House]) -> Response:
        self._sessions.end(visit.session)
        answer = message(self._pages, 200, self._pages.texts("turned.left"), "")
        self._cookie.drop(answer)
        return answer

    async def _no_page(self, request: Request, problem: Exception) -> Response:
        code = problem.status_code if isinstance(problem, HTTPException) else 500
        text = {404: "problem.no_page", 405: "problem.no_method"}.get(code, "problem.other")
        session = self._doors.session(request)
        return message(self._pages, code, self._pages.texts(text), "", session)


class _OldLink(Turned):
    status = 401
    text = "turned.old_link"
