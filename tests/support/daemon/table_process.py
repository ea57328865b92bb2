"""A served table in a process of its own, with pages, a control port and metrics."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.daemon.rig import child, free_port, furnished
from tests.support.screens.certificates import certified

_CLOSED: Final = re.compile(
    r'holecard_connections_closed_total\{reason="(\w+)",server="(\w+)"\} (\S+)'
)
_PAGES: Final = re.compile(r"screens (https?://\S+)")
_TIMEOUT: Final = 20.0


class TableProcess:
    """Its addresses. `lines`: its log, once it has ended."""

    def __init__(self, pages: str, control: int, figures: int, certificate: str) -> None:
        self.pages = pages
        self.control = control
        self.certificate = certificate
        self.lines: list[dict[str, Any]] = []
        self._figures = f"http://127.0.0.1:{figures}/metrics"

    @property
    def pages_port(self) -> int:
        port = urlsplit(self.pages).port
        assert port is not None
        return port

    def closed(self, server: str) -> dict[str, int]:
        """Connections that a server closed because of a limit, by reason."""
        with urllib.request.urlopen(self._figures, timeout=_TIMEOUT) as answer:
            text = answer.read().decode()
        found = _CLOSED.findall(text)
        return {reason: round(float(count)) for reason, name, count in found if name == server}

    def is_ready(self) -> bool:
        """Ask the control API, over a new connection."""
        url = f"http://127.0.0.1:{self.control}/api/v1/health"
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            return bool(json.load(answer)["table"])


@contextmanager
def table_process(folder: Path, *, secure: bool = False) -> Iterator[TableProcess]:
    """It is ended in good order."""
    control, figures = free_port(), free_port()
    screens, certificate = ["[screens]", "port = 0"], ""
    if secure:
        certificate, key = certified(folder)
        screens += [f'certificate = "{certificate}"', f'key = "{key}"']
    file = furnished(folder, f"port = {control}", f"metrics_port = {figures}", *screens)
    with child(file, told="READY=1") as daemon:
        assert daemon.process.stdout is not None
        found = _PAGES.search(daemon.process.stdout.readline().decode())
        assert found is not None
        made = TableProcess(found[1], control, figures, certificate)
        yield made
        assert daemon.ends() == 0
        made.lines = [json.loads(line) for line in daemon.rest()[1].splitlines()]
