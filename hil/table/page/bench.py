"""The requests of the bench page: device actions, seats, spoken choices, who deals.

Every method checks and runs one request. Raises BenchRefusal if it cannot be done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from msgspec import Struct

from controller.api.http import Listeners
from controller.procedure.model.effects import Tell
from firmware_protocol.device import Answer, CannotDo, ControlRequest, Describe, Draw
from firmware_protocol.messages import DeviceClass
from hil.control import InvalidRequest, parse_request
from hil.table.page import controls
from hil.table.page.controls import NEXT_PULLS, ShoeFilling
from hil.table.page.page import BenchPicture, bench_picture
from hil.table.robots import (
    ASKING,
    SEATS,
    ApiProblem,
    Console,
    HandledDevice,
    PlayerChoice,
    RobotStuck,
    SeatClaims,
    SharedRobot,
    Unreachable,
)
from hil.table.setup import FittedDevice

ABOUT_ROBOT: Final = "the robot deals already"


class BenchRefusal(Exception):
    """A request cannot be done: why, what is allowed, and the HTTP status."""

    def __init__(self, what: str, allowed: str = "", status: int = 409) -> None:
        super().__init__(what, allowed)
        self.what = what
        self.allowed = allowed
        self.status = status


class ServedGame(Struct, frozen=True):
    """The game that the daemon currently serves."""

    console: Console
    robot: SharedRobot
    url: str | None
    """Of the dealer's console; None: the daemon serves no pages."""


class PluggedDevices(Protocol):
    """The devices of the table."""

    @property
    def devices(self) -> tuple[tuple[FittedDevice, HandledDevice], ...]: ...


class Desk:
    """Runs the requests of the bench page at one table."""

    def __init__(self, at: PluggedDevices, claims: SeatClaims) -> None:
        self.at = at
        self.claims = claims
        self.playing: ServedGame | None = None
        """None: between two games."""
        self.next_pull = "well"
        self.listeners = Listeners(0)
        """The page's open streams."""

    @property
    def viewers(self) -> int:
        """The number of the page's open streams."""
        return len(self.listeners)

    # --- what is shown --------------------------------------------------------------------

    def shown(self) -> BenchPicture | None:
        """None between two games."""
        playing = self.playing
        if playing is None:
            return None
        try:
            view, state = playing.console.view, playing.console.shown.state
        except Unreachable:
            return None
        answers = {
            fitted.serial: (fitted.profile, fitted.seats, device.request(Describe()))
            for fitted, device in self.at.devices
        }
        if self.claims.next_pull is None:
            self.next_pull = "well"
        return bench_picture(
            view,
            state,
            self.claims,
            answers,
            robot_deals=playing.console.is_dealing,
            next_pull=self.next_pull,
        )

    # --- hands ----------------------------------------------------------------------------

    def hand(self, serial: str, line: bytes) -> Answer:
        """Run any control request, in the format of the device's control socket."""
        fitted, device = self._device(serial)
        try:
            hand = parse_request(line, controls.verbs(DeviceClass[fitted.profile.upper()]))
        except InvalidRequest as bad:
            raise BenchRefusal(f"{bad.where}: {bad.what}", bad.allowed, 400) from None
        return self._do(device, hand)

    def press_shortcut(self, serial: str, name: str) -> Answer:
        """One of the buttons."""
        fitted, device = self._device(serial)
        every = (*controls.HANDS[fitted.profile], *controls.FAULTS[fitted.profile])
        found = next((one for one in every if _key(fitted, one) == name), None)
        if found is None:
            allowed = ", ".join(_key(fitted, one) for one in every)
            raise BenchRefusal(f"there is no such button at {serial}", allowed, 400)
        ways = self._at_table().robot.ways
        bench = ShoeFilling(self._at_table().robot.place.decks, ways.cut_at)
        return self._do(device, found.makes(bench))

    def _do(self, device: HandledDevice, hand: ControlRequest) -> Answer:
        with self._acting():
            if isinstance(hand, Draw):
                self._pull(hand)
                return {}
            return device.request(hand)

    @contextmanager
    def _acting(self) -> Iterator[None]:
        """Report errors of the hands as refusals, and that a person has acted."""
        try:
            yield
        except CannotDo as problem:
            what, allowed = (*map(str, problem.args), "", "")[:2]
            raise BenchRefusal(what, allowed) from None
        except RobotStuck as problem:
            raise BenchRefusal(str(problem)) from None
        finally:
            self.claims.person_acted()

    def _pull(self, hand: Draw) -> None:
        """Pull a card; a pull without options is done as chosen by `next_card`."""
        robot = self._at_table().robot
        plain = hand == Draw()
        wanted = self.claims.next_pull
        robot.pull_for_person(wanted if plain and wanted is not None else hand)
        if plain:
            self.claims.next_pull = None

    def next_card(self, how: str) -> None:
        if how not in NEXT_PULLS:
            raise BenchRefusal(f"no card comes like that: {how}", ", ".join(NEXT_PULLS), 400)
        self.next_pull = how
        self.claims.next_pull = NEXT_PULLS[how][1]
        self.claims.person_acted()

    async def discards(self) -> None:
        """Put the discards into the shoe while the prompt asks for them."""
        robot = self._at_table().robot
        prompt = robot.screen.shown.prompt
        if prompt is None or prompt.tell is not Tell.REFILL:
            raise BenchRefusal("the discards are not asked for", "when the prompt says so")
        with self._acting():
            await robot.refill(prompt)

    # --- seats ----------------------------------------------------------------------------

    def take(self, seat: int) -> None:
        self._is_seat(seat)
        if seat in self.claims.seats:
            raise BenchRefusal(f"somebody sits at seat {seat}", "another seat")
        self.claims.take(seat)

    def leave(self, seat: int) -> None:
        self._is_yours(seat)
        self.claims.leave(seat)

    def sit_out(self, seat: int) -> None:
        self._is_yours(seat)
        prompt = self._at_table().robot.screen.shown.prompt
        if prompt is None or prompt.tell is not Tell.TAKE_WAGERS:
            raise BenchRefusal("the round has begun", "while wagers are taken")
        self.claims.sit_out(seat)

    def choose(self, seat: int, choice: str) -> None:
        """Submit a spoken choice to the robot dealer."""
        self._is_yours(seat)
        playing = self._at_table()
        prompt = playing.robot.screen.shown.prompt
        if not playing.console.is_dealing:
            raise BenchRefusal("no robot deals", "tell the dealer")
        if prompt is None or prompt.tell not in ASKING or prompt.seat != seat:
            raise BenchRefusal(f"seat {seat} is not asked", "when it is its turn")
        if choice not in prompt.choices:
            raise BenchRefusal(
                f"'{choice}' is not open to seat {seat}", ", ".join(prompt.choices), 400
            )
        self.claims.choose(seat, PlayerChoice(choice))

    # --- the dealer, the game -------------------------------------------------------------

    async def robot_deals(self) -> None:
        """Sign the robot dealer in at its screen; it relieves the current dealer."""
        console = self._at_table().console
        if console.is_dealing:
            raise BenchRefusal(ABOUT_ROBOT)
        try:
            await console.deal()
        except ApiProblem as problem:
            raise BenchRefusal(problem.error.what, problem.error.allowed) from None
        except Unreachable:
            raise BenchRefusal("the daemon does not answer") from None
        self.claims.person_acted()

    def next_game(self) -> None:
        """Change the game after this round."""
        self.claims.next_game = True
        self.claims.person_acted()

    # --- what there is --------------------------------------------------------------------

    def _at_table(self) -> ServedGame:
        if self.playing is None:
            raise BenchRefusal("no game is served at this moment", "in a few seconds", 503)
        return self.playing

    def _device(self, serial: str) -> tuple[FittedDevice, HandledDevice]:
        for fitted, device in self.at.devices:
            if fitted.serial == serial:
                return fitted, device
        allowed = ", ".join(fitted.serial for fitted, _ in self.at.devices)
        raise BenchRefusal(f"there is no device {serial}", allowed, 400)

    def _is_seat(self, seat: int) -> None:
        if seat not in SEATS:
            raise BenchRefusal(
                f"there is no seat {seat}", f"{SEATS.start} to {SEATS.stop - 1}", 400
            )

    def _is_yours(self, seat: int) -> None:
        self._is_seat(seat)
        if seat not in self.claims.seats:
            raise BenchRefusal(f"a robot sits at seat {seat}", "take the seat first")


def _key(fitted: FittedDevice, one: controls.ShortcutButton) -> str:
    """Returns a button's key, which is distinct for actions and faults."""
    return one.name if one in controls.HANDS[fitted.profile] else f"fault-{one.name}"
