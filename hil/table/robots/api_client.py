"""Client of the control API for robots and tests: screens, sign-in, acts, the table's stream.

    async with Api(Path("run/mega-1/control.sock")) as api:      # or Api("http://127.0.0.1:8021")
        screen = await api.open("dealer")
        await screen.sign_in("D-17", "402931")
        done = await screen.act("WagerPlaced", seat=1, bet="main", amount=1000)
        done.answers[0].taken, done.table.prompt
        await screen.floor("RoundVoided", Pin("F-2", "775010"), Pin("D-18", "918264"), reason="...")
        async with aclosing(screen.stream()) as views:
            async for view in views:
                ...

An error response is raised as an ApiProblem, with one class per status; a failed connection as
Unreachable. An act that the procedure refuses raises neither: it is recorded and answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

import httpx
import msgspec
from msgspec import Struct

from controller.api.contract.messages import (
    Acted,
    Adopted,
    ErrorAnswer,
    ErrorBody,
    Health,
    Opened,
    SignedFor,
    SignedIn,
    SignedOut,
    SignsIn,
    Tested,
)
from controller.api.contract.view import View

PREFIX: Final = "/api/v1"
REQUEST_TIMEOUT: Final = 40.0
"""Timeout of a request in seconds, longer than the API's own timeout for the record."""
STREAM_TIMEOUT: Final = 45.0
"""Read timeout of a stream in seconds; a heartbeat is sent every 15."""
RECONNECT_TIMEOUT: Final = 30.0
"""Timeout in seconds for a stream to be reopened."""
INITIAL_DELAY: Final = 0.05
MAX_DELAY: Final = 2.0
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
"""Limit for one event."""

_S = TypeVar("_S", bound=Struct)


class Pin(NamedTuple):
    """A badge and its PIN, as typed at a sign-in."""

    badge: str
    pin: str


class Unreachable(Exception):
    """The API does not answer, or its stream has ended."""


class ApiProblem(Exception):
    """An error response of the API; the request had no effect."""

    def __init__(self, status: int, error: ErrorBody) -> None:
        super().__init__(status, error)
        self.status = status
        self.error = error

    @property
    def code(self) -> str:
        return self.error.code

    @property
    def wait(self) -> int:
        """Seconds until the request may be retried."""
        return self.error.wait

    def __str__(self) -> str:
        error = self.error
        allowed = f"; allowed: {error.allowed}" if error.allowed else ""
        return f"{self.status} {error.code}: {error.what}{allowed}"


class BadRequest(ApiProblem):
    """400: the request is not valid."""


class NoScreen(ApiProblem):
    """401: no open screen has this token. After a start of the controller none has."""


class NotAllowed(ApiProblem):
    """403: not allowed for this user or screen, or the act's authorisation is missing."""


class Unknown(ApiProblem):
    """404: the resource does not exist."""


class NotNow(ApiProblem):
    """409: not possible in the current state."""


class TooMuch(ApiProblem):
    """429: too many requests or wrong PINs; retry after `wait` seconds."""


class Stopped(ApiProblem):
    """503: the record cannot be written, so no act is possible."""


PROBLEMS: Final[Mapping[int, type[ApiProblem]]] = MappingProxyType(
    {
        400: BadRequest,
        401: NoScreen,
        403: NotAllowed,
        404: Unknown,
        409: NotNow,
        429: TooMuch,
        503: Stopped,
    }
)


class Api:
    """Client of a table's control API; an async context manager."""

    def __init__(
        self,
        where: str | Path,
        *,
        wait: float = REQUEST_TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`where`: a unix socket's path, or http://127.0.0.1:PORT."""
        if transport is None and isinstance(where, Path):
            transport = httpx.AsyncHTTPTransport(uds=str(where))
        self.where = where
        self.http = httpx.AsyncClient(
            base_url="http://localhost" if isinstance(where, Path) else where,
            timeout=wait,
            transport=transport,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        await self.http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.http.__aexit__(kind, problem, trace)

    async def health(self) -> Health:
        return await self.get("/health", Health)

    async def open(self, name: str) -> Screen:
        """Open a screen. It can only read until a user signs in."""
        opened = await self.post("/screens", {"name": name}, Opened)
        return Screen(self, opened)

    # --- one request ----------------------------------------------------------------------

    async def get(self, path: str, kind: type[_S], token: str = "") -> _S:
        return await self._ask("GET", path, None, kind, token)

    async def post(self, path: str, body: Mapping[str, Any], kind: type[_S], token: str = "") -> _S:
        return await self._ask("POST", path, body, kind, token)

    async def delete(self, path: str, kind: type[_S], token: str) -> _S:
        return await self._ask("DELETE", path, None, kind, token)

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, kind: type[_S], token: str
    ) -> _S:
        headers = bearer(token)
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
        try:
            response = await self.http.request(
                method, PREFIX + path, content=content, headers=headers
            )
        except httpx.TransportError as problem:
            raise _unreachable(self.where, problem) from None
        if response.is_error:
            raise problem_of(response.status_code, response.content)
        try:
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.DecodeError:
            raise problem_of(response.status_code, response.content) from None

    async def views(self, token: str) -> AsyncGenerator[View, None]:
        """Yields the views of one stream until it ends. Raises Unreachable and ApiProblem."""
        timeout = httpx.Timeout(REQUEST_TIMEOUT, read=STREAM_TIMEOUT)
        try:
            async with self.http.stream(
                "GET", f"{PREFIX}/stream", headers=bearer(token), timeout=timeout
            ) as response:
                if response.is_error:
                    raise problem_of(response.status_code, await response.aread())
                async with aclosing(server_sent(response.aiter_bytes())) as events:
                    async for event, data in events:
                        if event == b"table":
                            yield _view(data)
        except httpx.TransportError as problem:
            raise _unreachable(self.where, problem) from None


class Screen:
    """An open screen, with the acts of the user who is signed in there."""

    def __init__(self, api: Api, opened: Opened) -> None:
        self._api = api
        self.token = opened.token
        self.name = opened.screen

    async def close(self) -> None:
        await self._api.delete("/screens", SignedOut, self.token)

    # --- people ---------------------------------------------------------------------------

    async def sign_in(
        self, badge: str, pin: str, role: SignsIn = "dealer", *, relieve: bool = False
    ) -> SignedIn:
        body = {"badge": badge, "pin": pin, "role": role, "relieve": relieve}
        return await self._api.post("/sign-in", body, SignedIn, self.token)

    async def sign_out(self) -> SignedOut:
        return await self._api.post("/sign-out", {}, SignedOut, self.token)

    async def authorise(
        self, act: Mapping[str, Any], badge: str, pin: str, *, second: bool = False
    ) -> SignedFor:
        """Authorise an act; it must then be sent with the same fields."""
        body = {"act": act, "badge": badge, "pin": pin, "second": second}
        return await self._api.post("/authorisations", body, SignedFor, self.token)

    # --- acts -----------------------------------------------------------------------------

    async def act(self, name: str, /, **fields: Any) -> Acted:
        """Send an act of the dealer who is signed in, or one that the floor has authorised."""
        return await self._api.post("/acts", {"type": name, **fields}, Acted, self.token)

    async def floor(
        self, name: str, first: Pin, second: Pin | None = None, /, **fields: Any
    ) -> Acted:
        """Authorise and send an act of the floor. `second` authorises only acts that require two
        people."""
        await self._signed({"type": name, **fields}, first, second)
        return await self.act(name, **fields)

    async def shuffle_again(self) -> Acted:
        """Report that the dealer has checked the shuffler, which did not start."""
        return await self._api.post("/shuffle-again", {}, Acted, self.token)

    async def adopt(self, serial: str, first: Pin, second: Pin, *, skip: bool = False) -> Adopted:
        """Adopt a device's log at its current position, with two-person approval."""
        await self._signed({"type": "DeviceAdopted", "serial": serial, "skip": skip}, first, second)
        return await self._api.post(f"/devices/{serial}/adopt", {"skip": skip}, Adopted, self.token)

    async def self_test(self, serial: str) -> Tested:
        """Start a device's self-test; a technician must be signed in."""
        return await self._api.post(f"/devices/{serial}/self-test", {}, Tested, self.token)

    async def _signed(self, act: Mapping[str, Any], first: Pin, second: Pin | None) -> None:
        signed = await self.authorise(act, *first)
        if signed.two and second is not None:
            await self.authorise(act, *second, second=True)

    # --- what is shown --------------------------------------------------------------------

    async def table(self) -> View:
        return await self._api.get("/table", View, self.token)

    async def stream(self, timeout: float = RECONNECT_TIMEOUT) -> AsyncGenerator[View, None]:
        """Yields the current view and newer ones; views that come too fast are skipped. A stream
        that ends is reopened with backoff. Raises Unreachable if that takes longer than `timeout`
        seconds, and NoScreen after a restart of the controller."""
        loop = asyncio.get_running_loop()
        pause, deadline = INITIAL_DELAY, loop.time() + timeout
        while True:
            problem = Unreachable(f"{self._api.where}: the stream has ended")
            try:
                async with aclosing(self._api.views(self.token)) as views:
                    async for view in views:
                        yield view
                        pause, deadline = INITIAL_DELAY, loop.time() + timeout
            except (Unreachable, Stopped) as caught:
                # Stopped while the controller is shutting down.
                problem = Unreachable(str(caught))
            if loop.time() + pause > deadline:
                raise problem
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_DELAY)


# --- encoding ---------------------------------------------------------------------------------


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def problem_of(status: int, body: bytes) -> ApiProblem:
    """Decode an error response."""
    try:
        error = msgspec.json.decode(body, type=ErrorAnswer).error
    except msgspec.DecodeError:
        text = body[:200].decode("utf-8", "replace")
        error = ErrorBody("no_api", f"that is no answer of the control API: {text!r}")
    return PROBLEMS.get(status, ApiProblem)(status, error)


async def server_sent(
    chunks: AsyncIterator[bytes], max_bytes: int = MAX_EVENT_BYTES
) -> AsyncGenerator[tuple[bytes, bytes], None]:
    """Parse server-sent events: yields (event, data). Comments (heartbeats) are skipped."""
    rest = b""
    async for chunk in chunks:
        *blocks, rest = (rest + chunk).split(b"\n\n")
        if len(rest) > max_bytes:
            raise Unreachable(f"an event of more than {max_bytes} bytes")
        for block in blocks:
            lines = [line.partition(b":") for line in block.split(b"\n")]
            fields = {name: value.removeprefix(b" ") for name, _, value in lines if name}
            if b"data" in fields:
                yield fields.get(b"event", b"message"), fields[b"data"]


_view: Final = msgspec.json.Decoder(View).decode


def _unreachable(where: str | Path, problem: httpx.TransportError) -> Unreachable:
    return Unreachable(f"{where}: {str(problem) or type(problem).__name__}")
