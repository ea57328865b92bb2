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
    token, screen = request.api.screens.open(read_as(request.body, OpenScreen).name)
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
    return await adopt_device(
        request.api, request.here, request.path["serial"], read_as(request.body, AdoptDevice)
    )


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
        "Opens a screen, which only watches until a person signs in. It is closed on request, or "
        "ten minutes after its last request if it has no stream; no screen survives a restart of "
        "the controller.",
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
        "Closes the screen. Surveillance and technicians are signed out; the dealer continues to "
        "deal, from another screen.",
        _close,
        SignedOut,
        (429, 503),
    ),
    ApiRoute(
        "POST",
        "/sign-in",
        "signIn",
        "Signs a person in by badge and PIN. Acts of the dealer are accepted only from the screen "
        "at which the dealer has signed in last. A technician signs in while the table is closed. "
        "After wrong PINs sign-ins are delayed; see Retry-After.",
        _sign_in,
        SignedIn,
        (403, 409, 429, 503),
        SignIn,
    ),
    ApiRoute(
        "POST",
        "/sign-out",
        "signOut",
        "Signs the person at this screen out.",
        _sign_out,
        SignedOut,
        (429, 503),
        SignOut,
    ),
    ApiRoute(
        "POST",
        "/authorisations",
        "authorise",
        "Badge and PIN for one act of the floor in the current state: valid for a minute, once, "
        "from this screen, for exactly the fields that were signed. Some acts need a second "
        "person, who signs after the first. An act that is answered with `stopped`, `full` or "
        "`moved_on` does not use the authorisation. Beside the floor's acts there are "
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
        "Submits an act of the floor person who has authorised it here, or else of the dealer who "
        "is signed in here. A refusal by the procedure is recorded too and is no error: `taken` "
        "is then false. An act runs to completion even if the client disconnects.",
        _act,
        Acted,
        (403, 409, 429, 503),
        "act",
    ),
    ApiRoute(
        "POST",
        "/shuffle-again",
        "shuffleAgain",
        "A person has checked the shuffler that does not start; it is started again.",
        _shuffle_again,
        Acted,
        (403, 409, 429, 503),
        ShuffleAgain,
    ),
    ApiRoute(
        "POST",
        "/devices/{serial}/adopt",
        "adoptDevice",
        "Adopts the log of a device at its current position, authorised by the floor and a second "
        "person.",
        _adopt,
        Adopted,
        (403, 404, 409, 429, 503),
        AdoptDevice,
    ),
    ApiRoute(
        "POST",
        "/devices/{serial}/self-test",
        "selfTest",
        "Runs the self-test of a device without moving a card, for the technician who is signed in "
        "here, while the table is closed. The result is recorded with the technician's name.",
        _test,
        Tested,
        (403, 404, 409, 429, 503),
        SelfTest,
    ),
    ApiRoute(
        "GET",
        "/table",
        "table",
        "The current view. If surveillance is signed in, the look is recorded first, once a minute "
        "for each screen; if that fails, nothing is shown.",
        _table,
        View,
        (409, 429, 503),
    ),
    ApiRoute(
        "GET",
        "/stream",
        "stream",
        "The views of the table as server-sent events. Each event is named `table`, its id is the "
        "seq of the record's last entry, its data the view. The first event has the current "
        "state. A slow client gets the newest view only; without a change a comment is sent every "
        "15 seconds. Looks of surveillance are recorded as for a single view.",
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
