"""The whole daemon killed, over ptys and USB, after each event of a shoe and at random moments."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from controller.table.memory.display import PAYMENTS
from tests.support.system.killed import (
    TABLES,
    Ended,
    Kill,
    at_decision,
    at_payment,
    by_chance,
    dealt,
)

CHANCE: Final = 25
"""Kills at random moments, in each game."""
_MOST: Final = 3


class Otherwise(AssertionError):
    """The result of the shoe differs from a run without kills."""


class Counts(NamedTuple):
    kills: int
    repeats: int
    """Payments that were reported as repeated."""


def killed(scratch: Path, share: int, seed: int) -> Iterator[Counts]:
    """Each game: killed after every `share`th event, at random, and while a payment is shown."""
    random = Random(seed)
    for game in TABLES:
        whole = asyncio.run(dealt(scratch / f"{game}-whole", game))
        ways: dict[str, Iterable[Kill]] = {
            "events": repeat(at_decision(share)),
            "chance": [by_chance(random, _MOST) for _ in range(max(1, CHANCE // share))],
            "payments": [at_payment(), at_payment()],
        }
        for name, kills in ways.items():
            found = asyncio.run(dealt(scratch / f"{game}-{name}", game, kills))
            check(found, whole, f"{game}, killed by {name}, seed {seed}")
            yield Counts(found.kills, len(found.repeats))


def check(found: Ended, whole: Ended, where: str) -> None:
    """Raises Otherwise."""
    wrong = {
        "the state": found.state != whole.state,
        "what was played": found.played != whole.played,
        "what was paid": found.settled != whole.settled,
        f"findings {found.findings}": bool(found.findings),
        f"payments as if for the first time {found.unsaid}": bool(found.unsaid),
        "repeats of what is no payment": any(one.tell not in PAYMENTS for one in found.repeats),
    }
    if any(wrong.values()):
        told = ", ".join(what for what, is_so in wrong.items() if is_so)
        raise Otherwise(f"{where}: {told}")
