"""The review as an application: its pages, their roles, the login.

    app = application(source, pages_of(load()), LinkLogin(LinkSessions(), LoginLinks()), scratch)

It can be mounted in another application; it depends on a `FileSource` only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from controller.audit.format.notes import VerifierKey
from controller.audit.format.records import KINDS
from controller.audit.text import format_clock, format_day, problem_words, stamp
from controller.errors import printable
from controller.procedure.prompts import Texts, card_words
from controller.publish import EVENTS
from controller.rules.cards import NAMES
from controller.screens.common.access import (
    Cookie,
    PageRoute,
    PageRouter,
    StreamRoute,
    Visit,
    message_page,
    static_route,
)
from controller.screens.common.sessions import Appearance, Role, SessionStore
from controller.screens.common.templates import Pages, StaticFiles
from controller.screens.review.source import FileSource, ReviewContext
from controller.screens.review.view.rounds import (
    BEFORE,
    FIELDS,
    bet_name,
    one_of,
    seconds_of,
    why_short,
)
from controller.screens.review.web import live, record, rounds

READERS: Final[tuple[Role, ...]] = ("surveillance", "floor")
EXPORTERS: Final[tuple[Role, ...]] = ("surveillance",)
COOKIE: Final = "holecard-review"
_PACKAGES: Final = {
    "common": "controller.screens.common",
    "review": "controller.screens.review",
}


def pages_of(texts: Texts, base: str = "") -> tuple[Pages, StaticFiles]:
    """Returns the templates and static files. `base`: the path of the mount."""
    static = StaticFiles(*_PACKAGES.values())
    words = {
        "names": NAMES,
        "card_words": card_words,
        "problem_words": problem_words,
        "happening": lambda name: EVENTS.get(name, name),
        "printable": printable,
        "stamp": stamp,
        "format_day": format_day,
        "format_clock": format_clock,
        "seconds_of": seconds_of,
        "bet_name": bet_name,
        "why_short": why_short,
        "kinds": [(kind, kind) for kind in KINDS],
    }
    return Pages(texts, static, words, base, **_PACKAGES), static


def _looks(visit: Visit[ReviewContext]) -> Response:
    """Set the appearance for this session."""
    theme = one_of("theme", visit.form.get("theme", "auto"), ("auto", "light", "dark"))
    suits = one_of("suits", visit.form.get("suits", "two"), ("two", "four"))
    visit.session.appearance = Appearance(
        "light" if theme == "light" else "dark" if theme == "dark" else "auto",
        "four" if suits == "four" else "two",
    )
    return visit.house.to("/about#looks")


PAGES: Final[tuple[PageRoute[ReviewContext], ...]] = (
    PageRoute("/", rounds.start, READERS),
    PageRoute("/rounds", rounds.rounds, READERS, (*FIELDS, BEFORE)),
    PageRoute("/rounds/{round}", rounds.round_page, READERS, ("from", "all")),
    PageRoute("/rounds/{round}/replay", rounds.replay_page, READERS, ("at",)),
    PageRoute("/rounds/{round}/replay.json", rounds.replay_json, READERS),
    PageRoute("/rounds/{round}/verify", rounds.verify_round, READERS, ("as",), "POST"),
    PageRoute("/problems", record.problems, READERS, ("before", "what")),
    PageRoute("/records", record.records, READERS, ("from",)),
    PageRoute("/records/{seq}", record.record, READERS),
    PageRoute("/report", record.pace, READERS, ("from", "to")),
    PageRoute("/verify", record.verify_page, READERS),
    PageRoute("/verify", record.verify_start, READERS, (), "POST"),
    PageRoute("/export", record.export_form, EXPORTERS, ("round",)),
    PageRoute(
        "/export",
        record.export_start,
        EXPORTERS,
        ("format", "round", "day", "all", "reason"),
        "POST",
    ),
    PageRoute("/export/{id}", record.export_made, EXPORTERS),
    PageRoute("/export/{id}/case.zip", record.export_fetch, EXPORTERS),
    PageRoute("/live", live.page, READERS, ("all",)),
    PageRoute("/about", record.about, READERS),
    PageRoute("/looks", _looks, READERS, ("theme", "suits"), "POST"),
)
FLOWS: Final[tuple[StreamRoute[ReviewContext], ...]] = (
    StreamRoute("/live/stream", live.stream, READERS, ("after",)),
)


class LoginMethod(Protocol):
    """How users start and end sessions."""

    @property
    def sessions(self) -> SessionStore: ...

    @property
    def page(self) -> str | None:
        """The login page; None: users have a link."""

    def routes(self, review: ReviewApp) -> list[BaseRoute]: ...


def application(
    source: FileSource,
    made: tuple[Pages, StaticFiles],
    entering: LoginMethod,
    scratch: Path,
    *,
    cookie: Cookie | None = None,
    table_key: VerifierKey | None = None,
) -> ReviewApp:
    """`made`: from pages_of(). `scratch`: the directory of exported cases."""
    pages, static = made
    house = ReviewContext(source, pages, entering.sessions, scratch, table_key)
    return ReviewApp(house, entering, cookie or Cookie(COOKIE, path=pages.base or "/"), static)


class ReviewApp:
    """The application and its background work."""

    def __init__(
        self, house: ReviewContext, entering: LoginMethod, cookie: Cookie, static: StaticFiles
    ) -> None:
        self.house = house
        self.pages = house.pages
        self.cookie = cookie
        self.doors = PageRouter(house, entering.sessions, house.pages, cookie, entering.page)
        routes: list[BaseRoute] = [
            *entering.routes(self),
            static_route(static, house.pages),
            *(self.doors.route(page) for page in PAGES),
            *(self.doors.flow(flow) for flow in FLOWS),
        ]
        self.app = Starlette(
            routes=routes,
            exception_handlers={HTTPException: self._no_page},
        )

    def end(self) -> None:
        self.house.end()

    def close(self) -> None:
        self.house.close()

    async def _no_page(self, request: Request, problem: Exception) -> Response:
        code = problem.status_code if isinstance(problem, HTTPException) else 500
        text = {404: "problem.no_page", 405: "problem.no_method"}.get(code, "problem.other")
        session = self.doors.session(request)
        return message_page(self.pages, code, self.pages.texts(text), "", session)
