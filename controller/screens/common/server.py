"""Serves an application to browsers: on the loopback, or elsewhere with a TLS certificate."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp

from controller.api.http import ConnectionLimits, ConnectionTable, FindSession, Server
from controller.errors import UsageProblem, printable

LOOPBACK: Final = "127.0.0.1"
LIMITS: Final = ConnectionLimits(total=64, per_address=32)
_LAST_PORT: Final = 65_535


class ListenAddress(Struct, frozen=True):
    """The address and certificate of a server."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    @property
    def secure(self) -> bool:
        return self.certificate is not None

    def address(self, port: int) -> str:
        """Returns the URL without a path. For a wildcard address it contains the host name."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if ipaddress.ip_address(self.host).is_unspecified:
            host = socket.gethostname()
        return f"{'https' if self.secure else 'http'}://{host}:{port}"


def option(name: str) -> str:
    return f"--{name}"


def listen_address(
    listen: str | None,
    port: int,
    certificate: str | None,
    key: str | None,
    named: Callable[[str], str] = option,
) -> ListenAddress:
    """Validate the address and certificate. `named`: how error texts name a setting. Raises
    UsageProblem, also for an address other than the loopback without a certificate."""
    if not 0 <= port <= _LAST_PORT:
        what, allowed = f"{port} is no port", f"0 to {_LAST_PORT}; 0: any free one"
        raise UsageProblem(named("port"), what, allowed)
    if (certificate is None) != (key is None):
        there = named("key" if certificate is None else "certificate")
        what = f"{named('certificate')} and {named('key')} go together"
        raise UsageProblem(there, what, "both, or neither")
    host = LOOPBACK if listen is None else listen
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        what = f"'{printable(host)}' is no address"
        raise UsageProblem(named("listen"), what, "an IP address of this machine") from None
    if not address.is_loopback and certificate is None:
        what = f"{host} can be reached from elsewhere"
        both = f"{named('certificate')} and {named('key')}"
        raise UsageProblem(named("listen"), what, f"{LOOPBACK}, or {both} beside it")
    if certificate is None or key is None:
        return ListenAddress(str(address), port)
    _check_certificate(Path(certificate), Path(key), named("certificate"))
    return ListenAddress(str(address), port, Path(certificate), Path(key))


def _check_certificate(certificate: Path, key: Path, where: str) -> None:
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except ssl.SSLError as problem:
        why = problem.reason or "not readable"
        what = f"{printable(certificate)} and {printable(key)}: {why.lower().replace('_', ' ')}"
        raise UsageProblem(where, what, "PEM files that go together") from None
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        what = f"{printable(certificate)} or {printable(key)}: {reason}"
        raise UsageProblem(where, what, "PEM files that can be read") from None


def bound(place: ListenAddress) -> socket.socket:
    """Returns a listening socket. Raises UsageProblem."""
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        return socket.create_server((place.host, place.port), family=family)
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise UsageProblem(
            "--port", f"{place.host} port {place.port}: {reason}", "another one; 0: any free one"
        ) from None


def names_of(place: ListenAddress, port: int) -> tuple[str, ...]:
    """Returns the accepted host names; () for an address other than the loopback: any name."""
    if not ipaddress.ip_address(place.host).is_loopback:
        return ()
    host = f"[{place.host}]" if ":" in place.host else place.host
    return (f"{host}:{port}", f"localhost:{port}")


def serve(
    app: ASGIApp,
    place: ListenAddress,
    listening: socket.socket,
    find_session: FindSession,
    ready: Callable[[], None],
) -> None:
    """Serve until interrupted. `ready` is called as soon as requests are answered."""
    server = _InterruptedServer(
        app,
        [listening],
        connections=ConnectionTable("review", LIMITS),
        find_session=find_session,
        certificate=place.certificate,
        key=place.key,
    )
    server.ready = ready
    server.run([listening])


class _InterruptedServer(Server):
    """A server that SIGINT and SIGTERM stop."""

    ready: Callable[[], None]
    capture_signals = uvicorn.Server.capture_signals

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()
