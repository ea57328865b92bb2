"""Boots with other code on the same record."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from controller.audit.format.records import BootIdentity
from controller.audit.log import Log, RecordOpening
from controller.audit.replay import (
    identity_of,
)
from controller.procedure.model.game import Game
from controller.procedure.model.state import State, Step
from tests.support.audit.record.dealing import SMALL, TABLE
from tests.support.audit.record.table import TABLE_KEY, FakeClock

OTHER_CODE: Final = "ab" * 32


def other(game: Game, *, code: str = OTHER_CODE) -> BootIdentity:
    """The identity of a boot with other code."""
    return replace(identity_of(TABLE, game), code=code, software="holecard 0.0.1")


def boot_of(place: Path, identity: BootIdentity, state: State | None = None) -> Log:
    opening = RecordOpening.at(place, table=TABLE)
    last = opening.last
    clock = FakeClock() if last is None else FakeClock(last.utc + 10**9)
    return Log.begin(opening, identity, TABLE_KEY, state=state, clock=clock, size=SMALL)


IN_THE_MIDDLE: Final[dict[str, Callable[[State], bool]]] = {
    "a round": lambda s: bool(s.hole),
    "a wager on the felt": lambda s: s.step is Step.WAGERING and bool(s.seats),
    "a payment": lambda s: s.step is Step.PAYING,
}
AT_REST: Final[dict[str, Callable[[State], bool]]] = {
    "closed": lambda s: s.step is Step.CLOSED and s.round > 0,
    "no wager": lambda s: s.step is Step.WAGERING and s.round > 1 and not s.seats,
    "a shuffle after the round": lambda s: s.step is Step.SHUFFLE_NEEDED and s.round > 0,
}
