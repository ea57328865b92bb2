"""A dealer's browser at the console of a daemon: signed in, with a stream, and measured."""

from __future__ import annotations

import http.client
import re
import select
import ssl
import time
from collections import Counter
from typing import Final, Self
from urllib.parse import urlencode, urlsplit

from tests.support.table.simulated.house import PINS

SECRET: Final = re.compile(r'name="secret" (?:content|value)="([\w-]{43})"')
DEALER: Final = "D-17"
TIMEOUT: Final = 10.0
NEW_EVERY: Final = 10
"""A browser opens a new connection for one in so many requests."""
FORM_EVERY: Final = 25
"""One in so many requests is a form."""


class DealerBrowser:
    """A client with a session in which the dealer is signed in. `problems`: what was not served."""

    def __init__(self, pages: str, certificate: str = "") -> None:
        """`pages`: the address that the daemon prints."""
        where = urlsplit(pages)
        assert where.hostname is not None
        assert where.port is not None
        self._host, self._port = where.hostname, where.port
        self._origin = pages.rstrip("/")
        self._context = ssl.create_default_context(cafile=certificate) if certificate else None
        self._cookie = ""
        self._secret = ""
        self._kept = self._connect()
        self._stream = self._connect()
        self.seconds: list[float] = []
        self.problems: Counter[str] = Counter()

    def __enter__(self) -> Self:
        """Sign in, and open the stream."""
        page = self._answer(self._kept, "GET", "/")
        found = SECRET.search(page)
        assert found is not None, page
        self._secret = found[1]
        said = self._answer(self._kept, "POST", "/sign-in", badge=DEALER, pin=PINS[DEALER])
        assert '"done"' in said, said
        self._stream.request("GET", "/stream", headers={"Cookie": self._cookie})
        # Not getresponse(): it would buffer what comes later.
        assert self._stream.sock.recv(4096).startswith(b"HTTP/1.1 200 ")
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()
        self._stream.close()

    def forget(self) -> None:
        self.seconds.clear()
        self.problems.clear()

    def request(self, number: int) -> None:
        """Make the request of this number, and measure it."""
        began = time.perf_counter()
        try:
            self._request(number)
        except (OSError, http.client.HTTPException) as problem:
            self.problems[type(problem).__name__] += 1
            self._kept.close()
        else:
            self.seconds.append(time.perf_counter() - began)

    @property
    def has_stream(self) -> bool:
        """Whether the stream is open. Reads what has come."""
        sock = self._stream.sock
        while select.select([sock], [], [], 0)[0]:
            if not sock.recv(65536):
                return False
        return True

    def _request(self, number: int) -> None:
        connection = self._kept if number % NEW_EVERY else self._connect()
        try:
            if number % FORM_EVERY:
                self._answer(connection, "GET", "/")
            else:
                self._answer(connection, "POST", "/looks", theme="dark", suits="four")
        finally:
            if connection is not self._kept:
                connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=TIMEOUT, context=self._context
        )

    def _answer(
        self, connection: http.client.HTTPConnection, method: str, path: str, **fields: str
    ) -> str:
        headers = {"Cookie": self._cookie} if self._cookie else {}
        body = None
        if method == "POST":
            body = urlencode({"secret": self._secret, **fields})
            headers |= {
                "Content-Type": "application/x-www-form-urlencoded",
                "Origin": self._origin,
            }
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != http.HTTPStatus.OK:
            raise http.client.HTTPException(f"{answer.status}: {text[:200]}")
        self._cookie = (answer.getheader("Set-Cookie") or self._cookie).partition(";")[0]
        return text


def percentile(seconds: list[float], part: float) -> float:
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
