"""Two engines, one after the other over the same random rounds: what was compared, in numbers."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final

from controller.procedure.engine import LiveTable, Procedure
from controller.procedure.engine.dispatch import ROWS
from controller.procedure.model.events import (
    DealerCardMissed,
    Event,
    FloorCalled,
    InsuranceDisputed,
    SeatMissed,
)
from controller.procedure.model.game import Game
from controller.procedure.model.row import Row
from controller.procedure.model.state import PASSING, Step
from tests.support.procedure.random_games import JURISDICTIONS, game_as_it_is, varied_game
from tests.support.procedure.random_table import Both, RandomTable, Wanted

_AT_A_TIME: Final = 100
"""Rounds played with one choice of options."""


class Compared:
    """What was played, and which rows took part."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rounds = self.events = self.refused = self.games = 0
        self.fired: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.rows: set[str] = set()

    def add(self, table: RandomTable) -> None:
        self.games += 1
        self.rounds += table.rounds
        self.events += table.events
        self.refused += table.refused
        self.fired += table.rows
        self.refusals += table.refusals

    def lacking(self, rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if row.id not in self.fired]

    def wanted(self, rows: Sequence[Row]) -> Wanted:
        """The events of the rows that have not fired yet, by the steps that they fire at."""
        wanted: dict[Step, list[type[Event]]] = {}
        for row in self.lacking(rows):
            if row.at == (Step.RESUMING,):
                # Whatever stops the table there makes it go on from there.
                wanted.setdefault(row.to, []).append(FloorCalled)
            elif row.to is Step.INSURANCE:
                wanted.setdefault(Step.INSURANCE_CLOSE, []).append(InsuranceDisputed)
            elif row.at == (Step.PAID_UP,) and row.to is Step.AFTER_DEAL:
                wanted.setdefault(Step.DEALING, []).extend((DealerCardMissed, SeatMissed))
            for step in row.at:
                if step not in PASSING:
                    wanted.setdefault(step, []).append(row.event)
        return wanted

    def never_fired(self) -> set[str]:
        return self.rows - set(self.fired)

    def missing(self) -> str:
        return f"{self.name}: never fired in {self.rounds} rounds: {sorted(self.never_fired())}"

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.rounds} rounds under {self.games} sets of options, "
            f"{self.events} events, {self.refused} refused for {len(self.refusals)} reasons, "
            f"{len(self.fired)} of {len(self.rows)} rows fired"
        )


def compare(name: str, rounds: int, seed: str) -> Compared:
    """Plays the rounds through both engines. The first half of them under the sheet as it is.

    While a row has not fired it goes on, to half as many again.
    """
    compared = Compared(name)
    rng = Random(seed)
    number = 0
    while compared.rounds < rounds or (
        compared.never_fired() and compared.rounds < rounds + rounds // 2
    ):
        if compared.rounds < rounds // 2:
            under = JURISDICTIONS[number % len(JURISDICTIONS)]
            game, what = game_as_it_is(name, under), f"{name} under {under}"
        else:
            asks = any(Step.NATURALS in row.at for row in compared.lacking(ROWS))
            game, what = varied_game(rng, name, {"double.natural": True} if asks else {})
        _compare_one(game, f"{seed} {number}: {what}", compared)
        number += 1
    return compared


def _compare_one(game: Game, seed: str, compared: Compared) -> None:
    procedure = Procedure(game)
    compared.rows |= {row.id for row in procedure.rows}
    wanted = compared.wanted(procedure.rows)
    table = RandomTable(Both(procedure, LiveTable(game)), seed, wanted=wanted)
    table.play(_AT_A_TIME)
    compared.add(table)
