"""Notifications to systemd, see sd_notify(3). Without NOTIFY_SOCKET nothing is sent."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

import structlog

SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG: Final = "WATCHDOG_USEC"
WATCHDOG_PID: Final = "WATCHDOG_PID"

_log: Final = structlog.get_logger("daemon.notify")


class Notify:
    """The connection to the service manager, if there is one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        place = environ.get(SOCKET, "")
        # @ represents a zero byte: an abstract socket.
        self._place = "\0" + place[1:] if place.startswith("@") else place
        self.watchdog = _watchdog(environ)
        """The watchdog timeout in seconds; None without a watchdog."""
        self._deaf = False

    def tell(self, *messages: str) -> None:
        """Send messages such as READY=1. Does not block; dropped if the manager does not read."""
        if not self._place:
            return
        data = "\n".join(messages).encode()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.sendto(data, self._place)
        except OSError as problem:
            if not self._deaf:  # logged once
                _log.warning("the service manager does not listen", why=str(problem))
            self._deaf = True
        else:
            self._deaf = False


def status(text: str) -> str:
    """A message for `systemctl status`, as one line."""
    return f"STATUS={' '.join(text.split())}"


def _watchdog(environ: Mapping[str, str]) -> float | None:
    """The watchdog timeout, if it is meant for this process."""
    usec, pid = environ.get(WATCHDOG, ""), environ.get(WATCHDOG_PID, "")
    if pid not in ("", str(os.getpid())):
        return None
    if not (usec.isascii() and usec.isdigit()) or int(usec) == 0:
        return None
    return int(usec) / 1e6


NO_MANAGER: Final = Notify({})
