"""The control API as robots and tests use it: screens, people, acts, and the table as it changes.

    async with Api(Path("run/mega-1/control.sock")) as api:      # or Api("http://127.0.0.1:8021")
        screen = await api.open("dealer")
        await screen.sign_in("D-17", "402931")
        done = await screen.act("WagerPlaced", seat=1, bet="main", amount=1000)
        done.answers[0].taken, done.table.prompt
        await screen.floor("RoundVoided", Pin("F-2", "775010"), Pin("D-18", "918264"), reason="...")
        async with aclosing(screen.stream()) as views:
            async for view in views:
                ...

What the API refuses is raised as an ApiProblem, one class for each status; what it cannot be asked
is Unreachable. An act that the procedure refuses is neither: it is recorded, and an answer.
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
"""Seconds for an answer: longer than the API itself waits for the record."""
STREAM_TIMEOUT: Final = 45.0
"""Seconds without a word on a stream, on which a heartbeat comes each 15."""
RECONNECT_TIMEOUT: Final = 30.0
"""Seconds for a stream to come back."""
INITIAL_DELAY: Final = 0.05
MAX_DELAY: Final = 2.0
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
"""Of one event."""

_S = TypeVar("_S", bound=Struct)


class Pin(NamedTuple):
    """Who somebody is, as they type it."""

    badge: str
    pin: str


class Unreachable(Exception):
    """Nobody answers there."""


class ApiProblem(Exception):
    """The API refuses, and nothing has happened."""

    def __init__(self, status: int, error: ErrorBody) -> None:
        super().__init__(status, error)
        self.status = status
        self.error = error

    @property
    def code(self) -> str:
        return self.error.code

    @property
    def wait(self) -> int:
        """Seconds until it may be tried again."""
        return self.error.wait

    def __str__(self) -> str:
        error = self.error
        allowed = f"; allowed: {error.allowed}" if error.allowed else ""
        return f"{self.status} {error.code}: {error.what}{allowed}"


class BadRequest(ApiProblem):
    """400: what was sent is none of what may be sent."""


class NoScreen(ApiProblem):
    """401: no open screen has this token. After a start of the controller none has."""


class NotAllowed(ApiProblem):
    """403: not this person, not at this screen, or nobody has signed for it."""


class Unknown(ApiProblem):
    """404: there is no such thing."""


class NotNow(ApiProblem):
    """409: not as things stand."""


class TooMuch(ApiProblem):
    """429: too much at once, or too many wrong PINs: `wait` says for how long."""


class Stopped(ApiProblem):
    """503: nothing can be recorded, so nothing can be done."""


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
    """A table's control API. To be used in an `async with`."""

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
        """A new screen, which watches until somebody signs in there."""
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
        return msgspec.json.decode(response.content, type=kind)

    async def views(self, token: str) -> AsyncGenerator[View, None]:
        """One stream, to its end. Unreachable, ApiProblem."""
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
    """A screen that was opened, and whoever stands before it."""

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
        """Signs for this act, as it is sent afterwards: field by field the same."""
        body = {"act": act, "badge": badge, "pin": pin, "second": second}
        return await self._api.post("/authorisations", body, SignedFor, self.token)

    # --- acts -----------------------------------------------------------------------------

    async def act(self, name: str, /, **fields: Any) -> Acted:
        """An act of the dealer's who is signed in here, or of the floor that has signed for it."""
        return await self._api.post("/acts", {"type": name, **fields}, Acted, self.token)

    async def floor(
        self, name: str, first: Pin, second: Pin | None = None, /, **fields: Any
    ) -> Acted:
        """An act of the floor's: signed for, and done. A second person signs only where the act
        takes one."""
        await self._signed({"type": name, **fields}, first, second)
        return await self.act(name, **fields)

    async def shuffle_again(self) -> Acted:
        """The dealer has looked at the shuffler."""
        return await self._api.post("/shuffle-again", {}, Acted, self.token)

    async def adopt(self, serial: str, first: Pin, second: Pin, *, skip: bool = False) -> Adopted:
        """Two people take a device's log up where it stands."""
        await self._signed({"type": "DeviceAdopted", "serial": serial, "skip": skip}, first, second)
        return await self._api.post(f"/devices/{serial}/adopt", {"skip": skip}, Adopted, self.token)

    async def self_test(self, serial: str) -> Tested:
        """The technician who is signed in here has a device test itself."""
        return await self._api.post(f"/devices/{serial}/self-test", {}, Tested, self.token)

    async def _signed(self, act: Mapping[str, Any], first: Pin, second: Pin | None) -> None:
        signed = await self.authorise(act, *first)
        if signed.two and second is not None:
            await self.authorise(act, *second, second=True)

    # --- what is shown --------------------------------------------------------------------

    async def table(self) -> View:
        return await self._api.get("/table", View, self.token)

    async def stream(self, patience: float = RECONNECT_TIMEOUT) -> AsyncGenerator[View, None]:
        """The table as it changes, from how it stands now on; what comes too fast is left out. A
        stream that ends is begun again; Unreachable when that takes longer than `patience`
        seconds. NoScreen after a start of the controller."""
        loop = asyncio.get_running_loop()
        pause, deadline = INITIAL_DELAY, loop.time() + patience
        while True:
            problem = Unreachable(f"{self._api.where}: the stream has ended")
            try:
                async with aclosing(self._api.views(self.token)) as views:
                    async for view in views:
                        yield view
                        pause, deadline = INITIAL_DELAY, loop.time() + patience
            except (Unreachable, Stopped) as caught:  # a table that is closing takes no reader
                problem = Unreachable(str(caught))
            if loop.time() + pause > deadline:
                raise problem
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_DELAY)


# --- words on the wire ------------------------------------------------------------------------


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def problem_of(status: int, body: bytes) -> ApiProblem:
    """What an answer with an error says."""
    try:
        error = msgspec.json.decode(body, type=ErrorAnswer).error
    except msgspec.DecodeError:
        text = body[:200].decode("utf-8", "replace")
        error = ErrorBody("no_api", f"that is no answer of the control API: {text!r}")
    return PROBLEMS.get(status, ApiProblem)(status, error)


async def server_sent(
    chunks: AsyncIterator[bytes],
) -> AsyncGenerator[tuple[bytes, bytes], None]:
    """The events of a stream, each with its data. Comments, which keep it alive, are none."""
    rest = b""
    async for chunk in chunks:
        *blocks, rest = (rest + chunk).split(b"\n\n")
        if len(rest) > MAX_EVENT_BYTES:
            raise Unreachable(f"an event of more than {MAX_EVENT_BYTES} bytes")
        for block in blocks:
            lines = [line.partition(b":") for line in block.split(b"\n")]
            fields = {name: value.removeprefix(b" ") for name, _, value in lines if name}
            if b"data" in fields:
                yield fields.get(b"event", b"message"), fields[b"data"]


_view: Final = msgspec.json.Decoder(View).decode


def _unreachable(where: str | Path, problem: httpx.TransportError) -> Unreachable:
    return Unreachable(f"{where}: {str(problem) or type(problem).__name__}")
