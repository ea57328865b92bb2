"""Games built from sheet and jurisdiction, for tables and simulation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from controller.config import GameSheet, TableConfig, load_game, load_jurisdiction
from controller.procedure.model.events import Actor
from controller.procedure.model.game import Game
from controller.procedure.model.state import Shoe, State, Step
from controller.procedure.prompts import MoneyFormat
from controller.rules.irregularities import Jurisdiction
from controller.rules.options import Burn

DEALER = Actor("dealer", "dealer")
FLOOR = Actor("floor", "floor")
SECOND = Actor("floor", "floor-2")
SHOE = Actor("device", "shoe")


def player(seat: int) -> Actor:
    return Actor("player", f"seat-{seat}", seat)


def default_jurisdiction() -> Jurisdiction:
    return load_jurisdiction("default")


def game_of(sheet: GameSheet, jurisdiction: Jurisdiction) -> Game:
    clauses = tuple(sheet.clauses)
    return Game(sheet.name, sheet.options, jurisdiction, sheet.title, clauses=clauses)


def game_of_table(table: TableConfig) -> Game:
    money = table.currency
    said = MoneyFormat(money.symbol, money.minor_digits)
    sheet = table.sheet
    clauses = tuple(sheet.clauses)
    rulings, seats = table.jurisdiction, table.seats
    return Game(sheet.name, sheet.options, rulings, sheet.title, seats, clauses, said.amount)


def unburned_game(name: str | Path, overrides: Mapping[str, object], source: str) -> Game:
    """A game for scripts and figures: the shoe holds dealt cards only, nothing is burned."""
    sheet = load_game(name, overrides, overrides_from=source)
    options = replace(sheet.options, burn=Burn())
    return game_of(replace(sheet, options=options), default_jurisdiction())


def wagering(rounds_dealt: int = 0) -> State:
    """A loaded shoe, the burn behind it, and no wager yet."""
    return State(step=Step.WAGERING, shoe=Shoe(loaded=True, rounds=rounds_dealt))
