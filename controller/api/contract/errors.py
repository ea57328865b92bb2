"""The errors of a request as responses: a code for programs, a text for people, what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from controller.api.contract.messages import ErrorAnswer, ErrorBody
from controller.people import DENIAL_TEXTS, DenialReason, Denied

_T = TypeVar("_T")
JSON: Final = "application/json"
HEADERS: Final = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""Headers of every response."""


class Problem(Exception):
    """A request is rejected. Raised anywhere, and answered as an error response."""

    def __init__(
        self,
        status: int,
        code: str,
        what: str,
        allowed: str = "",
        *,
        wait: int = 0,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`wait`: seconds until a retry is allowed."""
        super().__init__(status, code, what)
        self.status = status
        self.body = ErrorBody(code, what, allowed, wait)
        self.headers = dict(headers)
        if wait:
            self.headers["Retry-After"] = str(wait)


class DenialStatus(NamedTuple):
    """The status of a denial, and the shortest wait before a retry."""

    status: int
    wait: int = 0


DENIED: Final[Mapping[DenialReason, DenialStatus]] = MappingProxyType(
    {
        "not right": DenialStatus(403),
        "wait": DenialStatus(429, 1),
        "busy": DenialStatus(429, 1),
        "unreadable": DenialStatus(503),
        "not theirs": DenialStatus(403),
        "table open": DenialStatus(409),
        "another dealer": DenialStatus(409),
        "deals here": DenialStatus(403),
        "no first person": DenialStatus(403),
        "same person": DenialStatus(403),
        "not authorised": DenialStatus(403),
        "no second": DenialStatus(403),
        "closing": DenialStatus(503),
    }
)


def denied(answer: Denied) -> Problem:
    """Returns the problem for a denial by the desk."""
    means = DENIED[answer.why]
    code, wait = answer.why.replace(" ", "_"), max(answer.wait, means.wait)
    return Problem(means.status, code, DENIAL_TEXTS[answer.why], wait=wait)


def granted(answer: _T | Denied) -> _T:
    """Returns the answer of the desk. Raises Problem if it is a denial."""
    if isinstance(answer, Denied):
        raise denied(answer)
    return answer


def problem_answer(problem: Problem) -> Response:
    return Response(
        msgspec.json.encode(ErrorAnswer(problem.body)), problem.status, problem.headers, JSON
    )


# --- as Starlette asks for them ---------------------------------------------------------------


async def problem_handler(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return problem_answer(problem)


async def http_error_handler(request: Request, problem: Exception) -> Response:
    """The response to an unknown path, or to a method that the path does not have."""
    assert isinstance(problem, HTTPException)
    headers = dict(problem.headers or {})
    if problem.status_code == 405:
        allowed = ", ".join(sorted(one.strip() for one in headers.get("Allow", "").split(",")))
        made = Problem(
            405,
            "no_method",
            f"{request.url.path} takes no {request.method}",
            allowed,
            headers={"Allow": allowed},
        )
    else:
        made = Problem(404, "no_path", "there is nothing here", "the paths of /api/v1/openapi.json")
    return problem_answer(made)


async def fault_handler(request: Request, problem: Exception) -> Response:
    """The response to an unexpected exception, whose text is only logged."""
    what = "a fault of the controller: call a technician"
    return problem_answer(Problem(500, "fault", what, headers=dict(HEADERS)))
