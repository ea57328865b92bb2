"""All that can be asked of the API: one table, from which requests are answered and the document of
the API is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from controller.api.contract.messages import (
    Acted,
    AdoptDevice,
    Adopted,
    Authorise,
    Health,
    Opened,
    OpenScreen,
    SelfTest,
    Sent,
    ShuffleAgain,
    SignedFor,
    SignedIn,
    SignedOut,
    SignIn,
    SignOut,
    Tested,
)
from controller.api.contract.view import View
from controller.api.http.body import read_as
from controller.api.http.sse import TableStream, TableStreams
from controller.api.service import (
    ScreenRegistry,
    ScreenSession,
    ServedTable,
    ShieldedTasks,
    SurveillanceLog,
    ViewCache,
    acts,
    self_test,
    sign_in,
)

PREFIX: Final = "/api/v1"


class TableApi:
    """One table's: what is given, and what the API itself knows."""

    def __init__(self, served: ServedTable, clock: Callable[[], float]) -> None:
        self.served = served
        self.screens = ScreenRegistry(clock)
        self.views = ViewCache(served)
        self.streams = TableStreams(served, self.views, self.screens)
        self.tasks = ShieldedTasks()
        self.surveillance = SurveillanceLog(served, clock)


class RouteRequest(Struct, frozen=True):
    """A request, as far as it is understood."""

    api: TableApi
    screen: ScreenSession | None
    body: dict[str, Any]
    path: Mapping[str, str]

    @property
    def here(self) -> ScreenSession:
        """The screen that asks, where a token is wanted."""
        assert self.screen is not None
        return self.screen


RouteResult: TypeAlias = Struct | bytes | TableStream
"""A value; one that is written already; or an answer that goes on."""


class ApiRoute(Struct, frozen=True):
    """What can be asked."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    name: str
    what: str
    does: Callable[[RouteRequest], Awaitable[RouteResult]]
    gives: type[Struct] | None
    """None: the document of the API itself."""
    errors: tuple[int, ...]
    """Beside those of every call."""
    takes: type[Sent] | Literal["act"] | None = None
    status: int = 200
    token: bool = True
    streams: bool = False


# --- what is done -----------------------------------------------------------------------------


async def _open(asked: RouteRequest) -> RouteResult:
    sent = read_as(asked.body, OpenScreen)
    token, screen = asked.api.screens.open(sent.name)
    return Opened(token, screen.name)


async def _close(asked: RouteRequest) -> RouteResult:
    api, screen = asked.api, asked.here
    try:
        return await sign_in.close(api.served, screen)
    finally:
        api.screens.close(screen)
        api.views.notify()


async def _sign_in(asked: RouteRequest) -> RouteResult:
    sent = read_as(asked.body, SignIn)
    return await _of_people(asked, sign_in.sign_in(asked.api.served, asked.here, sent))


async def _sign_out(asked: RouteRequest) -> RouteResult:
    read_as(asked.body, SignOut)
    return await _of_people(asked, sign_in.sign_out(asked.api.served, asked.here))


async def _authorise(asked: RouteRequest) -> RouteResult:
    sent = read_as(asked.body, Authorise)
    return await _of_people(asked, sign_in.authorise(asked.api.served, asked.here, sent))


async def _of_people(asked: RouteRequest, work: Awaitable[Struct]) -> RouteResult:
    """What the desk has recorded counts for it a moment later than for the table."""
    try:
        return await work
    finally:
        asked.api.views.notify()


async def _act(asked: RouteRequest) -> RouteResult:
    return await acts.act(asked.api.served, asked.api.views, asked.here, asked.body)


async def _shuffle_again(asked: RouteRequest) -> RouteResult:
    read_as(asked.body, ShuffleAgain)
    return await acts.shuffle_again(asked.api.served, asked.api.views, asked.here)


async def _adopt(asked: RouteRequest) -> RouteResult:
    sent = read_as(asked.body, AdoptDevice)
    return await acts.adopt(asked.api.served, asked.here, asked.path["serial"], sent)


async def _test(asked: RouteRequest) -> RouteResult:
    read_as(asked.body, SelfTest)
    return await self_test.self_test(asked.api.served, asked.here, asked.path["serial"])


async def _table(asked: RouteRequest) -> RouteResult:
    await asked.api.surveillance.record_look(asked.here, "table")
    return asked.api.views.now().body


async def _stream(asked: RouteRequest) -> RouteResult:
    await asked.api.surveillance.record_look(asked.here, "stream")
    return asked.api.streams.begin(asked.here)


async def _health(asked: RouteRequest) -> RouteResult:
    return asked.api.views.health()


async def _document(asked: RouteRequest) -> RouteResult:
    from controller.api.http.openapi import document_bytes

    return document_bytes()


ROUTES: Final = (
    ApiRoute(
        "POST",
        "/screens",
        "openScreen",
        "Opens a screen. Until somebody signs in there it only watches. It is closed when it is "
        "told to, or ten minutes after its last request while it has no stream; no screen "
        "outlives the controller.",
        _open,
        Opened,
        (429,),
        OpenScreen,
        status=201,
        token=False,
    ),
    ApiRoute(
        "DELETE",
        "/screens",
        "closeScreen",
        "Closes the screen. Surveillance and technicians are signed out there; whoever deals goes "
        "on dealing, from another screen.",
        _close,
        SignedOut,
        (429, 503),
    ),
    ApiRoute(
        "POST",
        "/sign-in",
        "signIn",
        "Somebody says who they are, by badge and PIN. Acts of the dealer are taken from the "
        "screen at which the dealer has signed in last, and from no other one. A technician signs "
        "in while the table is closed. Wrong PINs make everybody wait: Retry-After says for how "
        "long.",
        _sign_in,
        SignedIn,
        (403, 409, 429, 503),
        SignIn,
    ),
    ApiRoute(
        "POST",
        "/sign-out",
        "signOut",
        "Whoever is signed in at this screen is signed out.",
        _sign_out,
        SignedOut,
        (429, 503),
        SignOut,
    ),
    ApiRoute(
        "POST",
        "/authorisations",
        "authorise",
        "Badge and PIN for one act of the floor, and for what it is about as things stand: within "
        "a minute, once, from this screen, and sent as it was signed for, field by field. Some "
        "take a second person, who signs after the first. An act that is answered as `stopped`, "
        "`full` or `moved_on` uses nothing up. Beside the floor's acts there are "
        '{"type": "DeviceAdopted", "serial": ..., "skip": false} and {"type": "ShuffleAgain"}.',
        _authorise,
        SignedFor,
        (403, 404, 409, 429, 503),
        Authorise,
    ),
    ApiRoute(
        "POST",
        "/acts",
        "act",
        "Somebody does something: the floor that has signed for it here, or else the dealer who is "
        "signed in here. What the procedure refuses is recorded too, and is no error: `taken` is "
        "false then. Once it is sent it stands or falls by itself, whoever waits for the answer.",
        _act,
        Acted,
        (403, 409, 429, 503),
        "act",
    ),
    ApiRoute(
        "POST",
        "/shuffle-again",
        "shuffleAgain",
        "Somebody has looked at the shuffler, which does not shuffle, and shall.",
        _shuffle_again,
        Acted,
        (403, 409, 429, 503),
        ShuffleAgain,
    ),
    ApiRoute(
        "POST",
        "/devices/{serial}/adopt",
        "adoptDevice",
        "The log of a device is taken up where it stands, which the floor and a second person have "
        "signed for.",
        _adopt,
        Adopted,
        (403, 404, 409, 429, 503),
        AdoptDevice,
    ),
    ApiRoute(
        "POST",
        "/devices/{serial}/self-test",
        "selfTest",
        "A device tests what it can without moving a card, for the technician who is signed in "
        "here, while the table is closed. What it finds is recorded with the technician's name.",
        _test,
        Tested,
        (403, 404, 409, 429, 503),
        SelfTest,
    ),
    ApiRoute(
        "GET",
        "/table",
        "table",
        "What is shown now. Where surveillance is signed in, that they look is recorded first, "
        "once a minute for each screen; where it cannot be, they are shown nothing.",
        _table,
        View,
        (409, 429, 503),
    ),
    ApiRoute(
        "GET",
        "/stream",
        "stream",
        "The table as it changes, as server-sent events. Each is called `table`, has the seq of "
        "the record's last entry as its id, and the view as its data. The first one is how all "
        "stands now. Who reads slowly is sent the newest only; a comment comes each 15 seconds "
        "without a change. That surveillance looks is recorded as for a single look.",
        _stream,
        View,
        (409, 429, 503),
        streams=True,
    ),
    ApiRoute(
        "GET",
        "/health",
        "health",
        "Whether the table can be played at.",
        _health,
        Health,
        (),
        token=False,
    ),
    ApiRoute(
        "GET",
        "/openapi.json",
        "document",
        "This document.",
        _document,
        None,
        (),
        token=False,
    ),
)
