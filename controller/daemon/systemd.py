"""What systemd is told of a service: sd_notify(3), a datagram each. Without NOTIFY_SOCKET nobody is
there, and nothing is sent.
"""

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
    """Who is told, if anybody."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        place = environ.get(SOCKET, "")
        # A name that begins with @ stands for one that begins with a zero byte, and lies nowhere.
        self._place = "\0" + place[1:] if place.startswith("@") else place
        self.watchdog = _watchdog(environ)
        """Seconds within which WATCHDOG=1 is wanted each time; None: it is not."""
        self._deaf = False

    def tell(self, *words: str) -> None:
        """Such as READY=1. Does not wait, and what cannot be told is dropped."""
        if not self._place:
            return
        data = "\n".join(words).encode()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.sendto(data, self._place)
        except OSError as problem:
            if not self._deaf:  # said once
                _log.warning("the service manager does not listen", why=str(problem))
            self._deaf = True
        else:
            self._deaf = False


def status(text: str) -> str:
    """For `systemctl status`: one line."""
    return f"STATUS={' '.join(text.split())}"


def _watchdog(environ: Mapping[str, str]) -> float | None:
    """What is meant for another process is not for us."""
    usec, pid = environ.get(WATCHDOG, ""), environ.get(WATCHDOG_PID, "")
    if pid not in ("", str(os.getpid())):
        return None
    if not (usec.isascii() and usec.isdigit()) or int(usec) == 0:
        return None
    return int(usec) / 1e6


NO_MANAGER: Final = Notify({})
