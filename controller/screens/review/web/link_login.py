"""Login by a link that is valid once, printed by `holecard review`."""

from __future__ import annotations

from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from controller.screens.common.access import (
    PAGE_ERRORS,
    PageRoute,
    TooManyAttempts,
    Visit,
    error_page,
    message_page,
)
from controller.screens.common.forms import fields_of, only
from controller.screens.common.headers import AccessDenied
from controller.screens.common.sessions import MAX_AGE, AttemptLimit, LinkSessions, LoginLinks
from controller.screens.review.source import ReviewContext
from controller.screens.review.web.app import READERS, ReviewApp

ATTEMPTS: Final = 5
"""Attempts at once; then one every ATTEMPT_INTERVAL seconds."""
ATTEMPT_INTERVAL: Final = 10.0


class _OldLink(AccessDenied):
    status = 401
    text = "turned.old_link"


class LinkLogin:
    """The login method of `holecard review`."""

    page: str | None = None

    def __init__(self, sessions: LinkSessions, links: LoginLinks) -> None:
        self.sessions = sessions
        self._links = links
        self._tries = AttemptLimit(ATTEMPTS, ATTEMPT_INTERVAL)

    def routes(self, review: ReviewApp) -> list[BaseRoute]:
        async def enter(request: Request) -> Response:
            return await self._enter(review, request)

        def leave(visit: Visit[ReviewContext]) -> Response:
            self.sessions.end(visit.session)
            answer = message_page(review.pages, 200, review.pages.texts("turned.left"), "")
            review.cookie.drop(answer)
            return answer

        return [
            Route("/enter", enter, methods=["GET"]),
            review.doors.route(PageRoute("/leave", leave, READERS, (), "POST")),
        ]

    async def _enter(self, review: ReviewApp, request: Request) -> Response:
        """Exchange the token of a link for a session."""
        try:
            fields = fields_of(request.url.query)
            only(fields, ("word",))
            if not self._tries.one():
                raise TooManyAttempts
            person = self._links.take(fields.get("word", ""))
            if person is None:
                raise _OldLink
            await run_in_threadpool(review.house.source.look, person.name, "review", "comes in")
        except PAGE_ERRORS as problem:
            return error_page(review.pages, problem, None)
        session = self.sessions.begin(person)
        answer = review.house.to("/rounds")
        review.cookie.put(answer, session, MAX_AGE)
        return answer
