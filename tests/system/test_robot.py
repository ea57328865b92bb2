"""The robot at a table: what it does where a shoe keeps a card in, and with discards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from controller.procedure.model.effects import Prompt, Tell
from controller.procedure.model.events import WagerPlaced
from controller.procedure.model.row import Refused
from controller.procedure.model.state import State
from controller.sim.play import basic
from controller.table.intake import DeviceSettings
from firmware_protocol.device import Answer, ControlRequest, Describe, Draw
from hil.table.robots import MimicPlayers, PlayerChoice, RandomPlayers, Robot, RobotOptions
from hil.table.robots.robot import button_of
from hil.table.robots.surroundings import STANDING, chips
from tests.support.drivers.simulated import Plugged, simulate
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.serving import right, run, serving

DEAL = Prompt(Tell.DEAL, seat=1)


class LateLock:
    """A shoe that was to be locked for what came before: the lock closes on the first pull, and
    opens again a little later."""

    def __init__(self) -> None:
        self.pulls = 0
        self.lock = "open"
        self.undrawn = 0
        self.out: list[str] = []

    def request(self, request: ControlRequest) -> Answer:
        if isinstance(request, Describe):
            told = {"lock": self.lock, "undrawn": self.undrawn, "queued": 0, "over_reader": []}
            return {"mechanism": {**told, "left": 52 - len(self.out), "out": self.out}}
        assert isinstance(request, Draw)
        assert self.lock == "open"
        self.pulls += 1
        if self.pulls == 1:
            self.undrawn, self.lock = 1, "locked"
            asyncio.get_running_loop().call_later(1, self._open)
        else:
            self.out.append("2c")
        return {"queued": 1}

    def _open(self) -> None:
        self.lock = "open"


class Before:
    """Surroundings with a shoe only."""

    decks = 1
    shuffler = None

    def __init__(self) -> None:
        self.shoe = LateLock()

    def station_of(self, seat: int) -> Plugged | None:
        return None


class Asking:
    """A screen that asks for a card."""

    shown: Any = type("Shows", (), {"prompt": DEAL})()

    async def act(self, name: str, fields: object, who: str) -> Refused | None:
        raise AssertionError("nobody acts here")

    async def shuffle_again(self) -> None:
        raise AssertionError("nobody shuffles here")


def test_a_card_that_a_late_lock_keeps_in_is_pulled_again() -> None:
    before = Before()

    async def main() -> None:
        await Robot(before, Asking(), MimicPlayers()).draw(DEAL)

    simulate(main())
    assert (before.shoe.pulls, before.shoe.out) == (2, ["2c"])


TURN = Prompt(Tell.DECIDE, seat=2, hand=0, choices=("hit", "stand", "double"))
EVEN = Prompt(Tell.ASK_INSURANCE, seat=2, amount=500, choices=("insure", "even_money", "decline"))
INSURE = Prompt(Tell.ASK_INSURANCE, seat=2, amount=500, choices=("insure", "decline"))


@pytest.mark.parametrize(
    ("prompt", "said", "button"),
    [
        (TURN, PlayerChoice("hit"), "hit"),
        (
            TURN,
            PlayerChoice("split"),
            None,
        ),  # not among the choices: entered by the dealer and refused
        (TURN, PlayerChoice("double", 500), None),
        (TURN, PlayerChoice("stand", None, 3), None),
        (INSURE, PlayerChoice("insure"), "yes"),
        (INSURE, PlayerChoice("insure", 100), None),
        (INSURE, PlayerChoice("decline"), "no"),
        (EVEN, PlayerChoice("even_money"), "yes"),
        (EVEN, PlayerChoice("insure"), None),  # there the button is for even money
    ],
)
def test_a_seat_presses_what_means_its_choice(
    prompt: Prompt, said: PlayerChoice, button: str | None
) -> None:
    assert button_of(prompt, said) == button


TOP = ("2c", "Td", "9h", "Ts", "8c")
"""One is burned; the player has twenty, the dealer seventeen."""


def test_chips_are_seen_on_the_felt(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(
            tmp_path, "classic", *TOP, players=MimicPlayers((1, "main", 1000))
        ) as one:
            await one.to(lambda s: bool(s.seats))
            assert chips(one.state, 1, "main") == 1000
            assert chips(one.state, 1, "diamond") == chips(one.state, 2, "main") == 0

    run(main())


@pytest.mark.parametrize("lights", [True, False], ids=["lit", "dark"])
def test_a_standing_wager_is_placed_by_the_bet_button(tmp_path: Path, lights: bool) -> None:
    """Bet by bet; where the button does not light up, the dealer enters the same."""
    usual = (("main", 1500), ("buster", 500))
    house = DeviceSettings(standing={2: (("main", 1500), ("buster", 500))} if lights else {})

    async def main() -> None:
        players = MimicPlayers((1, "main", 1000), (2, STANDING, 0))
        async with serving(tmp_path, "mega", *TOP, players=players, house=house) as one:
            one.robot.ways = RobotOptions(standing={2: usual})
            await one.to(lambda s: bool(s.hands))
            placed = [
                (event.seat, event.bet, event.amount, event.actor.role)
                for event in one.events()
                if isinstance(event, WagerPlaced)
            ]
            role = "player" if lights else "dealer"
            assert placed == [
                (1, "main", 1000, "dealer"),
                (2, "main", 1500, role),
                (2, "buster", 500, role),
            ]

    run(main())


def test_some_players_bet_as_usual_and_some_do_not() -> None:
    game = game_with("mega", {})
    guests = RandomPlayers(game, basic("mega"), 3, Random(5), State, standing=(1, 2))
    rounds = [guests.wagers() for _ in range(40)]
    usual = [seat for wagers in rounds for seat, bet, _ in wagers if bet == STANDING]
    assert set(usual) == {1, 2}
    assert len(usual) < 2 * len(rounds)
    for wagers in rounds:
        assert sorted(seat for seat, bet, _ in wagers if bet in ("main", STANDING)) == [1, 2, 3]


def test_a_shoe_that_runs_out_is_filled_with_the_discards(tmp_path: Path) -> None:
    """All cards except those on the felt, face down or up."""
    seven = MimicPlayers(*((seat, "main", 1000) for seat in range(1, 8)))

    async def main() -> None:
        async with serving(tmp_path, game_with("classic", {"decks": 1}), players=seven) as one:
            robot = one.robot
            await robot.play(
                lambda shown: any(one.tell is Tell.REFILL for one in robot.prompts), most=4000
            )
            await one.to_end()
        right(one.room)

    run(main())
