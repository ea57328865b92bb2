"""The table of the API's routes, from which the application and its document are made."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
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
from controller.api.http.sse import EventStream, TableStreams
from controller.api.service import (
    ScreenSession,
    TableApi,
    adopt_device,
    authorise,
    close_screen,
    run_self_test,
    shuffle_again,
    sign_in,
    sign_out,
    submit_act,
)

PREFIX: Final = "/api/v1"


class RouteRequest(Struct, frozen=True):
    """A decoded request: its screen, its body, the parameters of its path."""

    api: TableApi
    streams: TableStreams
    screen: ScreenSession | None
    body: dict[str, Any]
    path: Mapping[str, str]
    document: Callable[[], bytes]
    """Returns the OpenAPI document."""

    @property
    def here(self) -> ScreenSession:
        """The screen of a request that needs a token."""
        assert self.screen is not None
        return self.screen


RouteResult: TypeAlias = Struct | bytes | EventStream
"""A value to encode, an encoded value, or a stream."""


class ApiRoute(Struct, frozen=True):
    """One method of one path."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    name: str
    what: str
    does: Callable[[RouteRequest], Coroutine[Any, Any, RouteResult]]
    gives: type[Struct] | None
    """None: the OpenAPI document."""
    errors: tuple[int, ...]
    """Status codes beside those of every route."""
    takes: type[Sent] | Literal["act"] | None = None
    status: int = 200
    token: bool = True
    streams: bool = False


# --- handlers ---------------------------------------------------------------------------------


async def _open(request: RouteRequest) -> RouteResult:
    sent = read_as(request.body, OpenScreen)
    token, screen = request.api.screens.open(sent.name)
    return Opened(token, screen.name)


async def _close(request: RouteRequest) -> RouteResult:
    return await close_screen(request.api, request.here)


async def _sign_in(request: RouteRequest) -> RouteResult:
    return await sign_in(request.api, request.here, read_as(request.body, SignIn))


async def _sign_out(request: RouteRequest) -> RouteResult:
    read_as(request.body, SignOut)
    return await sign_out(request.api, request.here)


async def _authorise(request: RouteRequest) -> RouteResult:
    return await authorise(request.api, request.here, read_as(request.body, Authorise))


async def _act(request: RouteRequest) -> RouteResult:
    done = await submit_act(request.api, request.here, request.body)
    return Acted(done.seq, done.answers, request.api.views.now().view)


async def _shuffle_again(request: RouteRequest) -> RouteResult:
    read_as(request.body, ShuffleAgain)
    done = await shuffle_again(request.api, request.here)
    return Acted(done.seq, done.answers, request.api.views.now().view)


async def _adopt(request: RouteRequest) -> RouteResult:
    sent = read_as(request.body, AdoptDevice)
    return await adopt_device(request.api, request.here, request.path["serial"], sent)


async def _test(request: RouteRequest) -> RouteResult:
    read_as(request.body, SelfTest)
    return await run_self_test(request.api.served, request.here, request.path["serial"])


async def _table(request: RouteRequest) -> RouteResult:
    await request.api.surveillance.record_look(request.here, "table")
    return request.api.views.now().body


async def _stream(request: RouteRequest) -> RouteResult:
    await request.api.surveillance.record_look(request.here, "stream")
    return request.streams.open(request.here)


async def _health(request: RouteRequest) -> RouteResult:
    return request.api.views.health()


async def _document(request: RouteRequest) -> RouteResult:
    return request.document()


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
