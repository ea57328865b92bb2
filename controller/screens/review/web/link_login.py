"""Coming in by a link that opens once, which whoever has started the review was shown."""

from __future__ import annotations

from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from controller.screens.common.access import TOLD, Page, TooOften, Turned, Visit, message, told
from controller.screens.common.forms import fields_of, only
from controller.screens.common.sessions import LIFE, Links, Sessions, Tries
from controller.screens.review.source import House
from controller.screens.review.web.app import READERS, Review

TRIES: Final = 5
"""To come in, at once; then one every so many seconds."""
TRY_EVERY: Final = 10.0


class _OldLink(Turned):
    status = 401
    text = "turned.old_link"


class ByLink:
    """See the module."""

    page: str | None = None

    def __init__(self, sessions: Sessions, links: Links) -> None:
        self.sessions = sessions
        self._links = links
        self._tries = Tries(TRIES, TRY_EVERY)

    def routes(self, review: Review) -> list[BaseRoute]:
        async def enter(request: Request) -> Response:
            return await self._enter(review, request)

        def leave(visit: Visit[House]) -> Response:
            self.sessions.end(visit.session)
            answer = message(review.pages, 200, review.pages.texts("turned.left"), "")
            review.cookie.drop(answer)
            return answer

        return [
            Route("/enter", enter, methods=["GET"]),
            review.doors.route(Page("/leave", leave, READERS, (), "POST")),
        ]

    async def _enter(self, review: Review, request: Request) -> Response:
        """A link is opened: once, and it is the session from then on."""
        try:
            fields = fields_of(request.url.query)
            only(fields, ("word",))
            if not self._tries.one():
                raise TooOften
            person = self._links.take(fields.get("word", ""))
            if person is None:
                raise _OldLink
            await run_in_threadpool(review.house.source.look, person.name, "review", "comes in")
        except TOLD as problem:
            return told(review.pages, problem, None)
        session = self.sessions.begin(person)
        answer = review.house.to("/rounds")
        review.cookie.put(answer, session, LIFE)
        return answer
