"""Floods of connections against a served table, while a dealer's browser makes requests:

    python -m tests.long.flood [--requests 10000]

Idle connections, slow senders and half-open TLS, from another address and from the dealer's own,
against pages with and without TLS. Of the dealer's requests 99.9 % are served, and the 99th
percentile of their times is within three times that of the quiet minutes before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from tests.support.daemon.dealer_browser import DealerBrowser, percentile
from tests.support.daemon.flooder import Flood, each_kind, flooding
from tests.support.daemon.table_process import TableProcess, table_process

SOURCES: Final = ("127.0.0.2", "127.0.0.1")
"""Another address, and the dealer's own."""
SERVED: Final = 0.999
MAX_TIMES: Final = 3.0
MIN_RATE: Final = 150.0
"""Connections a second, of the 200 that are intended."""
MIN_TLS_RATE: Final = 50.0
"""The same with TLS: handshakes are made sequentially, so the server limits their rate."""
MAX_CPU: Final = 0.27
"""Part of a core that the flood takes: a quarter is intended."""


class Samples:
    """Requests of the browser, and the seconds that they took."""

    def __init__(self) -> None:
        self.asked = 0
        self.seconds: list[float] = []
        self.problems: Counter[str] = Counter()

    def take(self, browser: DealerBrowser, requests: int) -> None:
        browser.forget()
        for number in range(requests):
            browser.request(number)
        self.asked += requests
        self.seconds += browser.seconds
        self.problems += browser.problems

    @property
    def served(self) -> float:
        return len(self.seconds) / self.asked

    @property
    def p99(self) -> float:
        return percentile(self.seconds, 0.99)

    def __str__(self) -> str:
        median = percentile(self.seconds, 0.5)
        return f"median {1e3 * median:.2f} ms, p99 {1e3 * self.p99:.2f} ms"


def flooded(at: TableProcess, source: str, requests: int) -> list[str]:
    """Flood a table from this address. Returns what does not hold."""
    secure = bool(at.certificate)
    name = f"{'https' if secure else 'http'} from {source}"
    kinds = each_kind(secure=secure)
    quiet, busy = Samples(), Samples()
    with DealerBrowser(at.pages, at.certificate) as browser:
        quiet.take(browser, requests // 4)
        before = at.closed("pages")
        with flooding(Flood(at.pages_port, (source,), kinds, secure)) as flood:
            busy.take(browser, requests)
            streams = browser.has_stream
        after = at.closed("pages")
        quiet.take(browser, requests // 4)  # half of them after it: other programs come and go
    limited = {reason: count - before[reason] for reason, count in after.items()}
    rate = sum(flood.counts[kind] for kind in kinds) / flood.seconds
    print(
        f"{name}: {busy.served:.2%} of {busy.asked:,} served, {busy} (quiet: {quiet});"
        f" flood: {flood.seconds:.0f} s, {rate:.0f} connections/s, {flood.cpu:.0%} of a core,"
        f" {dict(flood.counts)}; closed: {limited}",
        flush=True,
    )
    checks = {
        f"{busy.served:.3%} were served: {dict(busy.problems)}": busy.served >= SERVED,
        f"p99 is {busy.p99 / quiet.p99:.1f} times the quiet one": busy.p99 <= MAX_TIMES * quiet.p99,
        "the dealer's stream was closed": streams,
        f"the flood came to no limit: {limited}": limited["shed"] > 0,
        f"the flood made {rate:.0f} connections a second": (
            rate >= (MIN_TLS_RATE if secure else MIN_RATE)
        ),
        f"the flood took {flood.cpu:.0%} of a core": flood.cpu <= MAX_CPU,
    }
    return [f"{name}: {what}" for what, holds in checks.items() if not holds]


def main() -> int:
    parser = argparse.ArgumentParser(prog="flood", description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000, help="for each of four floods")
    args = parser.parse_args()
    failed: list[str] = []
    for secure in (False, True):
        with (
            tempfile.TemporaryDirectory() as folder,
            table_process(Path(folder), secure=secure) as at,
        ):
            for source in SOURCES:
                failed += flooded(at, source, args.requests)
    for line in failed:
        print(f"flood: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
