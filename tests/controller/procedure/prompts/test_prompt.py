"""What a waiting step shows: one prompt, the shoe's lock, the stations' buttons and lamps."""

from itertools import product
from random import Random
from typing import Any, Final

import pytest

from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.model.effects import Fact, Prompt, ShoeLock, Shuffler, Stations, Tell
from controller.procedure.model.events import (
    Actor,
    Confirmed,
    Decline,
    Double,
    EvenMoney,
    Event,
    FloorCalled,
    FloorRuled,
    Hit,
    Insure,
    PayDeclined,
    PayTaken,
    ShuffleStarted,
    SpareRefused,
    Split,
    Stand,
    Surrender,
    TableClosed,
    TableOpened,
    WagerPlaced,
    Withdrawn,
)
from controller.procedure.model.felt import times_seen
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import WAITING, State, Step
from controller.procedure.prompts import SHOWS
from controller.rules.cards import DECK
from controller.rules.hands import CHOICES, choices
from controller.rules.irregularities import Way
from tests.support.procedure.scenes import STOPS, Willing
from tests.support.procedure.table import HOUSES, Table

FROM_SHOE: Final = (Step.DEALING, Step.HAND_CARD, Step.DEALER_LATE, Step.DEALER_CARD)
TO_BURN: Final = (Step.BURNING, Step.RELIEF_BURN)
BY_HAND: Final = {
    "hit": Hit,
    "stand": Stand,
    "double": Double,
    "split": Split,
    "surrender": Surrender,
    "refuse_card": SpareRefused,
}
BY_SEAT: Final = {
    "even_money": EvenMoney,
    "decline": Decline,
    "take_pay": PayTaken,
    "decline_pay": PayDeclined,
}
MIXTURES: Final = tuple(
    (game, by, HOUSES[number % 2])
    for number, (game, by) in enumerate(
        product(("maxtime", "sf21x", "classic", "mega"), ("signals", "buttons", "both"))
    )
)
BUTTONS: Final = (*BY_HAND, *BY_SEAT, "insure", "withdraw")


def pressed(choice: str, who: Actor, seat: int, hand: int) -> Event:
    """What a press of that button hands in."""
    if choice in BY_HAND:
        return BY_HAND[choice](who, seat, hand)
    if choice in BY_SEAT:
        return BY_SEAT[choice](who, seat)
    return Withdrawn(who) if choice == "withdraw" else Insure(who, seat, 2)


class Watched(Willing):
    """A table at which anything may be decided, and whatever is shown is looked at."""

    def __init__(self, seed: int, game: str, by: str, house: str, **more: Any) -> None:
        super().__init__(game, house, start=State(), decisions__by=by, **more)
        self.rng = Random(seed)
        self.steps: set[Step] = set()

    def bring(self, event: Event) -> Decision | Refused:
        answer = super().bring(event)
        if isinstance(answer, Decision):
            self.steps.add(self.step)
            self.check_shown()
        return answer

    def check_shown(self) -> None:
        s, old = self.state, self.game
        shown = tuple(effect for effect in self.effects if not isinstance(effect, Fact))
        kinds = [type(effect) for effect in shown]
        assert kinds in ([Prompt, Stations, ShoeLock], [Prompt, Stations, ShoeLock, Shuffler])
        # What was shown before, here or at another table, changes nothing of it.
        new = Game(old.name, old.options, old.jurisdiction, old.title, old.seats, old.clauses)
        assert shown == SHOWS[s.step](new, s)
        assert self.locked is not self.takes_a_card()
        if s.step is Step.WAGERING:
            assert self.stations.armed == tuple((number, ("bet",)) for number in range(1, 8))
            return
        for seat in s.seats:
            self.check_buttons(seat.number, dict(self.stations.armed).get(seat.number, ()))
        if s.step is Step.HELD:
            self.check_ways()

    def takes_a_card(self) -> bool:
        """A card from the shoe may come now: one that lies beside it comes before."""
        s = self.state
        if s.step is Step.WAGERING:
            return s.spare is None and bool(s.seats)
        return s.step in TO_BURN or (s.step in FROM_SHOE and self.from_shoe)

    def check_buttons(self, seat: int, armed: tuple[str, ...]) -> None:
        """Exactly the buttons that are armed do something."""
        s = self.state
        in_turn = s.hands[s.turn] if s.hands else None
        hand = in_turn.number if in_turn is not None and in_turn.seat == seat else 0
        presses = {choice: pressed(choice, player(seat), seat, hand) for choice in BUTTONS}
        works = {
            choice
            for choice, press in presses.items()
            if isinstance(self.procedure.step(s, press), Decision)
        }
        if self.game.buttons:
            assert works == set(armed), self.prompt
        else:
            assert not armed
            assert works <= {"withdraw"}  # said with a hand signal, no decision of the hand
        if s.step is Step.TURN and in_turn is not None and in_turn.seat == seat:
            legal = choices(self.game.options, in_turn, sum(h.seat == seat for h in s.hands))
            words = {word for bit, word in CHOICES.items() if legal & bit}
            if s.late and s.up in (0, 1, 10):
                words.discard("surrender")  # nobody could check yet
            exposed = s.spare is not None and s.spare.exposed
            assert set(self.prompt.choices) == words | ({"refuse_card"} if exposed else set())

    def check_ways(self) -> None:
        for way in Way:
            ruled = self.procedure.step(self.state, FloorRuled(FLOOR, way, SECOND))
            assert isinstance(ruled, Decision) is (way.value in self.prompt.choices), way

    def _continue(self, left: list[str]) -> None:
        s, rng = self.state, self.rng
        if rng.random() < 0.05 and s.step is not Step.CLOSED:
            for stop in rng.sample(sorted(STOPS), 8):
                if isinstance(self.bring(STOPS[stop](self)), Decision):
                    return
        match s.step:
            case Step.CLOSED:
                self.do(TableOpened(FLOOR, 0, SECOND))
            case Step.HELD:
                self.rule(Way(rng.choice(self.prompt.choices)))
            case Step.TURN | Step.INSURANCE | Step.NATURALS:
                seat, hand = self.prompt.seat, self.prompt.hand
                self.do(pressed(rng.choice(self.prompt.choices), self.by(seat), seat, hand))
            case _:
                super()._continue(left)

    def _fresh(self) -> int:
        left = [each for each in DECK if times_seen(self.state, each) < self.game.decks]
        return self.rng.choice(left)


def test_every_step_shows_what_can_be_done() -> None:
    reached = {Step.CLOSED}
    for seed in range(60):
        if seed >= 12 and reached == set(WAITING):
            break
        t = Watched(seed, *MIXTURES[seed % 12], double__natural=seed % 3 == 0)
        for _ in range(12):
            t.until(Step.WAGERING)
            for seat in (1, 5):
                t.bring(WagerPlaced(player(seat), seat, "main", 1000))
            t.until(Step.DEALING, Step.HELD, Step.SHUFFLE_NEEDED)
        reached |= t.steps
    assert reached == set(WAITING)


# Who decides


@pytest.mark.parametrize(
    ("by", "armed"), [("signals", ()), ("buttons", (1,)), ("both", (1,))], ids=str
)
def test_stations_stay_dark_where_hand_signals_decide(by: str, armed: tuple[int, ...]) -> None:
    t = Table(decisions__by=by).bets(1000).deal("AC AS 8H (9D)")
    assert t.stations == Stations(
        tuple((seat, ("insure", "decline")) for seat in armed), ((1, "asked"),)
    )
    t.decline(1).until(Step.TURN)
    legal = ("hit", "stand", "double")
    t.prompts(choices=legal)
    assert t.stations == Stations(tuple((seat, legal) for seat in armed), ((1, "turn"),))
    refused = t.refusal_of(Hit(player(1), 1, 0)) if by == "signals" else ""
    assert refused == ("hand_signals" if by == "signals" else "")
    if by == "buttons":
        t.refuses(Hit(DEALER, 1, 0), "buttons_only")
    t.do(Double(t.by(1), 1, 0))
    assert t.stations == Stations(tuple((seat, ("withdraw",)) for seat in armed), ((1, "asked"),))


def test_a_press_that_is_not_armed_changes_nothing() -> None:
    (
        Table("mega")
        .bets(1000, 1000)
        .deal("9C 8C 6S 2H KC (TD)")
        .refuses(Split(player(1), 1, 0), "cannot_split")
        .refuses(Surrender(player(1), 1, 0), "cannot_surrender")
        .refuses(Hit(player(2), 2, 0), "not_in_turn")
        .refuses(Hit(player(1), 2, 0), "other_seat")
        .refuses(Hit(player(1), 1, 1), "not_in_turn")
        .refuses(Insure(player(1), 1, 100), "insurance_not_open")
        .do(Double(player(1), 1, 0))
        .refuses(Double(player(1), 1, 0), "no_decision_now")
        .do(Confirmed(DEALER))
        .refuses(Stand(player(1), 1, 0), "no_decision_now")
    )


# Single prompts


def test_the_next_place_is_told_before_each_card() -> None:
    t = Table().bet(2, 1000).bet(5, 1000).deal("9C")
    told = []
    for name in ("8C", "7S", "KD", "2D", "(9D)"):
        prompt = t.prompt
        told.append((prompt.seat, prompt.place, prompt.count))
        t.shoe_open().deal(name)
    assert told == [(5, "hand", 1), (0, "up", 1), (2, "hand", 2), (5, "hand", 2), (0, "hole", 2)]


def test_the_dealers_next_card_is_counted_from_his_own_hand() -> None:
    (
        Table()
        .bets(1000)
        .deal("9C 8S 9D (7H)")
        .until(Step.DEALER_CARD)
        .asks(Tell.DEAL, place="dealer", count=3, total=15)
        .ends(cards="6D")
        .bets(1000)
        .deal("9C 5S 9D (4H)")
        .until(Step.DEALER_CARD)
        .deal("6H")
        .asks(Tell.DEAL, place="dealer", count=4, total=15)
    )


def test_bonuses_that_are_one_card_away_are_pointed_out() -> None:
    t = Table("maxtime").bets(1000).deal("2C 6S 3H (TD)")
    near = [t.prompt.near]
    for name in ("4C", "2D", "3S"):
        t.hit(1, name)
        near.append(t.prompt.near)
    assert near == [(), (), ("instant21",), ("instant21", "instant6")]
    t.double(1, "2H").prompts(near=())


def test_a_double_on_21_is_warned_about() -> None:
    (
        Table("sf21x")
        .bets(1000)
        .deal("7C 6S 7H (TD)")
        .hit(1, "7D")
        .prompts(warn="")
        .do(Double(player(1), 1, 0))
        .asks(Tell.CONFIRM_DOUBLE, warn="doubles_21", total=21)
    )


def test_insurance_is_offered_in_amounts_that_can_be_taken() -> None:
    t = (
        Table(money__unit=100)
        .bets(500, 100)
        .deal("8C 9C AS 8D 9D (7H)")
        .asks(Tell.ASK_INSURANCE, seat=1, amount=200)
    )
    t.insure(1, t.prompt.amount).at(Step.INSURANCE_CLOSE)  # half of seat 2's wager is no chip


@pytest.mark.parametrize("house", HOUSES)
def test_a_stopped_table_lights_every_station_red_and_locks_the_shoe(house: str) -> None:
    t = Table(house=house).bets(1000).deal("9C 8S 2H (9D)").hit(1).do(FloorCalled(DEALER))
    assert t.stations == Stations((), tuple((seat, "fault") for seat in range(1, 8)))
    t.shoe_locked().asks(Tell.RULE, to="floor", warn="two_people")


def test_the_shuffler_works_on_as_many_decks_as_the_game_has() -> None:
    t = (
        Table("mega", decks=8, start=State(step=Step.SHUFFLE_NEEDED))
        .shuffler_works_on(0)
        .do(ShuffleStarted(SHOE))
        .shuffler_works_on(8)
    )
    assert t.do(TableClosed(FLOOR, 0, SECOND)).the(Shuffler) == Shuffler(0)
