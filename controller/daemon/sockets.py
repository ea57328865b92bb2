"""The listening sockets of a served table: Unix socket, loopback ports, port of the pages."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from controller.api.http import BACKLOG
from controller.config import ControlPlace, ScreensPlace
from controller.errors import UsageProblem
from controller.screens.common.server import ListenAddress, listen_address

HOST: Final = "127.0.0.1"
MAX_SOCKET_PATH: Final = 107
"""Maximum length of a Unix socket's path in bytes."""
MODE: Final = 0o660
_ANYONE: Final = stat.S_IWOTH


class ListeningSockets(Struct, frozen=True):
    """The listening sockets."""

    place: Path
    unix: socket.socket
    tcp: socket.socket | None
    """The control API over loopback."""
    metrics: socket.socket | None
    inode: int
    screens: socket.socket | None = None
    pages: ListenAddress | None = None
    """The address of `screens`."""

    @property
    def control(self) -> list[socket.socket]:
        return [self.unix] if self.tcp is None else [self.unix, self.tcp]

    def check(self) -> None:
        """Raises UsageProblem if the Unix socket was replaced by a different one."""
        try:
            found = self.place.lstat().st_ino
        except FileNotFoundError:
            found = 0
        if found != self.inode:
            what = "was replaced by another process"
            raise UsageProblem(str(self.place), what, "one controller for a table")


def pages_place(screens: ScreensPlace, file: str) -> ListenAddress:
    """The address of the pages. Raises UsageProblem, such as for other machines without a
    certificate."""
    return listen_address(
        screens.listen,
        screens.port,
        None if screens.certificate is None else str(screens.certificate),
        None if screens.key is None else str(screens.key),
        lambda name: f"{file}: screens.{name}",
    )


@contextmanager
def listening(
    control: ControlPlace, file: str, screens: ScreensPlace | None = None
) -> Iterator[ListeningSockets]:
    """Bind all sockets of the file, and close them at the end. Raises UsageProblem with the place
    in the file; nothing is bound then."""
    pages = None if screens is None else pages_place(screens, file)
    with ExitStack() as last:
        # The Unix socket first: it is in use if another controller serves this table.
        unix, inode = last.enter_context(_unix(control.socket, f"{file}: control.socket"))
        tcp = metrics = shown = None
        if control.port is not None:
            tcp = last.enter_context(_tcp(control.port, f"{file}: control.port"))
        if control.metrics_port is not None:
            metrics = last.enter_context(
                _tcp(control.metrics_port, f"{file}: control.metrics_port")
            )
        if pages is not None:
            shown = last.enter_context(_tcp(pages.port, f"{file}: screens.port", pages.host))
        yield ListeningSockets(control.socket.absolute(), unix, tcp, metrics, inode, shown, pages)


# --- a port -----------------------------------------------------------------------------------


@contextmanager
def _tcp(port: int, where: str, host: str = HOST) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        # A port that a controller has just closed can be bound at once.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            sock.listen(BACKLOG)
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                why = f"port {port} of {host} cannot be bound: {problem.strerror}"
                raise UsageProblem(where, why, "a different port, or address") from None
            what = f"port {port} is in use by another program on this machine"
            allowed = f"a port that is free; `ss -ltnp 'sport = :{port}'` shows who uses this one"
            raise UsageProblem(where, what, allowed) from None
        sock.setblocking(False)
        yield sock


# --- Unix socket ------------------------------------------------------------------------------


@contextmanager
def _unix(place: Path, where: str) -> Iterator[tuple[socket.socket, int]]:
    place = place.absolute()
    # Bound beside its path and then renamed, so that it appears atomically.
    fresh = place.with_name(f".{os.getpid()}")
    _check_path(place, fresh, where)
    _check_directory(place.parent, where)
    _check_left(place, where)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        try:
            fresh.unlink(missing_ok=True)
            sock.bind(str(fresh))
            fresh.chmod(MODE)
            sock.listen(BACKLOG)
            inode = fresh.lstat().st_ino
            fresh.replace(place)
        except OSError as problem:
            with suppress(OSError):
                fresh.unlink()
            what = f"{place} cannot be created: {problem.strerror}"
            raise UsageProblem(where, what, "a directory that this user may write in") from None
        try:
            yield sock, inode
        finally:
            _remove(place, inode)


def _remove(place: Path, inode: int) -> None:
    """Delete the socket unless it was replaced by a different one."""
    with suppress(OSError):
        if place.lstat().st_ino == inode:
            place.unlink()


def _check_path(place: Path, fresh: Path, where: str) -> None:
    size = max(len(os.fsencode(one)) for one in (place, fresh))
    if size > MAX_SOCKET_PATH:
        what = f"{place} has {size} bytes"
        raise UsageProblem(
            where, what, f"a path of up to {MAX_SOCKET_PATH} bytes, the kernel's limit"
        )


def _check_directory(place: Path, where: str) -> None:
    """Raises UsageProblem if other users could replace the socket."""
    try:
        found = place.stat()
    except FileNotFoundError:
        what = f"there is no directory {place}"
        raise UsageProblem(where, what, f"create it first: mkdir -m 750 {place}") from None
    except OSError as problem:
        what = f"{place} cannot be read: {problem.strerror}"
        raise UsageProblem(where, what, "a directory of this user") from None
    if not stat.S_ISDIR(found.st_mode):
        raise UsageProblem(where, f"{place} is not a directory", "a socket in a directory")
    if found.st_uid not in (0, os.geteuid()):
        what = f"{place} belongs to the user with number {found.st_uid}"
        raise UsageProblem(where, what, "a directory of this user, or of root")
    if found.st_mode & _ANYONE:
        what = f"every user may write in {place} (mode {stat.S_IMODE(found.st_mode):o})"
        raise UsageProblem(where, what, f"close it to others: chmod o-w {place}")


def _check_left(place: Path, where: str) -> None:
    """Raises UsageProblem unless the path is free, or has the socket of a process that has
    ended."""
    try:
        found = place.lstat()
    except FileNotFoundError:
        return
    except OSError as problem:
        what = f"{place} cannot be read: {problem.strerror}"
        raise UsageProblem(where, what, "a path that this user may use") from None
    if not stat.S_ISSOCK(found.st_mode):
        raise UsageProblem(where, f"{place} exists and is not a socket", "a path of its own")
    if is_listening(place):
        what = f"another process listens at {place} already"
        raise UsageProblem(where, what, "one controller for a table: stop the other one first")


def is_listening(place: Path) -> bool:
    """Whether a process listens there, also a busy one or one of a different user."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(place))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True
