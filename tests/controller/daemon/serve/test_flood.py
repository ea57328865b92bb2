"""A flood of connections shuts nobody out; measured at length by tests/long/flood."""

import socket
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import get_args

from controller.api.http import CloseReason
from tests.support.daemon.dealer_browser import DealerBrowser
from tests.support.daemon.flooder import BODY, HEAD, page_request
from tests.support.daemon.table_process import table_process

HELD = 150
"""Connections of each kind; together more than a server has room for."""
REQUESTS = 12


def test_a_flood_shuts_neither_dealer_nor_programs_out(tmp_path: Path) -> None:
    """From another address, and from the dealer's own."""
    with table_process(tmp_path) as at, DealerBrowser(at.pages) as browser:
        numbers = count()
        kinds = (b"", HEAD, BODY, page_request(at.pages_port))
        for source in ("127.0.0.2", "127.0.0.1"):
            with ExitStack() as stack:
                for said in kinds:
                    flood(stack, at.pages_port, source, said)
                    for _ in range(REQUESTS):
                        browser.request(next(numbers))
                flood(stack, at.control, source, b"")
                assert all(at.is_ready() for _ in range(REQUESTS))
        assert (len(browser.seconds), browser.problems) == (next(numbers), {})
        assert browser.has_stream
        assert min(at.closed("pages")["shed"], at.closed("control")["shed"]) > HELD // 4
        assert at.closed("metrics") == dict.fromkeys(get_args(CloseReason), 0)
    lines = [line for line in at.lines if line["event"] == "connections_limited"]
    assert {line["server"] for line in lines} == {"pages", "control"}
    assert len(lines) < REQUESTS


def flood(stack: ExitStack, port: int, source: str, said: bytes) -> None:
    for _ in range(HELD):
        line = stack.enter_context(socket.socket())
        line.bind((source, 0))
        line.connect(("127.0.0.1", port))
        line.sendall(said)
