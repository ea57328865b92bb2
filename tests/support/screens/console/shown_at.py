"""Views of tables that play at random: what the console is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from controller.api.contract.view import (
    DealerShown,
    DeviceShown,
    TableIdentity,
    View,
    ViewInput,
    view_of,
)
from controller.audit.format.records import ClockQuality
from controller.procedure.engine import Procedure
from controller.procedure.model.game import Game
from controller.procedure.model.state import State, Step
from controller.procedure.prompts import MoneyFormat, Texts
from controller.rules.cards import Card
from controller.screens.common.sessions import Appearance
from controller.screens.common.templates import Pages, StaticFiles
from controller.screens.common.texts import as_toml, load
from controller.screens.console.view import Viewer, console_of
from controller.screens.console.view.page import ConsolePage
from controller.table.memory import (
    NO_WITNESS,
    SPACE_LEFT,
    SpaceStatus,
    TableDisplay,
    WitnessStatus,
)
from tests.support.procedure.random_games import game_as_it_is, game_with
from tests.support.procedure.random_table import RandomTable

GAMES: Final = ("classic", "maxtime", "mega", "sf21x")
HOUSES: Final = ("default", "strict")
ASKED: Final[tuple[tuple[str, dict[str, object]], ...]] = (
    (
        "classic",
        {
            "double.natural": True,
            "double.max_total": 21,
            "blackjack.tie": "push",
            "decisions.by": "signals",
        },
    ),
    (
        "mega",
        {
            "even_money.offered": True,
            "blackjack.tie": "push",
            "blackjack.pays": "3:2",
            "payout.floor_from": 10,
            "decisions.by": "both",
        },
    ),
)
"""Games that ask what the sheets as they are do not: of a blackjack, of the floor."""
BARE: Final[Mapping[str, object]] = {}
CHIPS: Final = (("half", 50), ("white", 100), ("red", 500), ("green", 2500), ("black", 10000))
HOUSE: Final[Mapping[str, object]] = {
    "money.unit": 50,
    "limits.main": {"min": 1000, "max": 50000, "step": 500},
    "chips": [{"name": name, "value": value} for name, value in CHIPS],
}
"""Limits and chips as tables have them: every amount can be laid down in chips."""
LONG: Final = 900
"""Events of such a game until it has asked all of it."""
TEXTS: Final = load()
HERE: Final = Viewer(controls=True)
WATCHES: Final = Viewer(controls=False)
DANA: Final = DealerShown("D1", "Dana", "console")
DEVICES: Final = (
    DeviceShown("shoe", "SH-0001", "ready", ""),
    DeviceShown("shuffler", "SF-0001", "ready", ""),
    *(DeviceShown("station", f"ST-000{seat}", "ready", "") for seat in range(1, 8)),
)
"""Of a usual table."""
STATIC: Final = StaticFiles("controller.screens.common", "controller.screens.console")


class At(NamedTuple):
    """A table at some time, and what nobody may know of it."""

    game: Game
    procedure: Procedure
    state: State
    hidden: dict[str, Card]


class Told(RandomTable):
    """One that says which cards lie face down."""

    @property
    def vault(self) -> dict[str, Card]:
        return self._vault


def played(name: str, house: str, seed: str, events: int, wrong: float = 0.12) -> Iterator[At]:
    """Every state of a table that plays at random."""
    yield from played_in(game_as_it_is(name, house), f"{seed} {name} {house}", events, wrong)


def played_in(game: Game, seed: str, events: int, wrong: float = 0.12) -> Iterator[At]:
    procedure = Procedure(game)
    table = Told(procedure, seed, wrong=wrong)
    for _ in range(events):
        table.once()
        yield At(game, procedure, table.state, dict(table.vault))


def everywhere(
    seed: str, events: int = 250, asked: int = 40, money: Mapping[str, object] = BARE
) -> Iterator[At]:
    """In each game, in each house; `asked`: in those that ask more. `money`: the tables' own."""
    for name in GAMES:
        for house in HOUSES:
            yield from played_in(game_with(name, money, house), f"{seed} {name} {house}", events)
    for name, options in ASKED:
        yield from played_in(game_with(name, {**money, **options}), "x", asked)


class Around(NamedTuple):
    """What stands beside the round."""

    dealer: DealerShown | None = DANA
    devices: tuple[DeviceShown, ...] = DEVICES
    again: bool = False
    stopped: str = ""
    soon: bool = False
    problem: str = ""
    out: bool = False
    """Two people have taken the shuffler as it is."""
    quality: ClockQuality = "synced"
    witness: WitnessStatus = NO_WITNESS
    utc: int = 0
    space: SpaceStatus = SPACE_LEFT


USUAL: Final = Around()


def view_at(at: At, around: Around = USUAL) -> View:
    effects = at.procedure.shows(at.state)
    shown = TableDisplay(7, at.state, effects, again=around.again, stopped=around.stopped)
    shown = replace(shown, soon=around.soon)
    named = TableIdentity("bj-1", at.game.name, at.game.title, MoneyFormat())
    by_hand = around.out or at.state.step is Step.REFILL
    by_hand = by_hand or all(one.device != "shuffler" for one in around.devices)
    quality, problem = around.quality, around.problem
    stands = ViewInput(
        shown,
        around.dealer,
        around.devices,
        problem,
        by_hand,
        41,
        quality,
        around.witness,
        around.space,
    )
    return view_of(named, stands, around.utc)


def console_at(
    at: At, here: Viewer = HERE, texts: Texts = TEXTS, around: Around = USUAL
) -> ConsolePage:
    return console_of(view_at(at, around), at.game, here, texts)


def pages(texts: Texts = TEXTS) -> Pages:
    packages = {
        "common": "controller.screens.common",
        "console": "controller.screens.console",
    }
    return Pages(texts, STATIC, {}, "", **packages)


PAGES: Final = pages()


def fragment(console: ConsolePage) -> str:
    return PAGES.text("console/table.html", c=console)


def page(console: ConsolePage, signed: tuple[tuple[str, str], ...] = ()) -> str:
    return PAGES.text(
        "console/page.html",
        c=console,
        secret="a-secret",
        appearance=Appearance(),
        screen="console",
        signed=signed,
    )


def marked(file: Path) -> Texts:
    """Every text of the console as if translated: ours in angle brackets, read from `file`."""
    ours = {name: TEXTS(name) for name in TEXTS.names if name.startswith("console.")}
    theirs = {name: f"\u2039{text}\u203a" for name, text in ours.items()}
    file.write_text(as_toml(Texts(theirs)), "utf-8")
    return load(file)
