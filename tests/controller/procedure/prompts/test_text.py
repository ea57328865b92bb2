"""What a waiting step shows: one prompt, the shoe's lock, the stations; and in which words.

Every prompt and fact has words, and the words are those that a dealer needs.
"""

import tomllib
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.model.effects import (
    BankCounted,
    Burned,
    Corrected,
    DecksOut,
    Discarded,
    Effect,
    Fact,
    Prompt,
    RoundOver,
    RoundVoid,
    Ruled,
    SeatDead,
    Settled,
    ShoeLock,
    Shuffler,
    Stations,
    Tell,
    Told,
    Tucked,
    WagersLocked,
)
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
from controller.procedure.model.game import BETS, WHYS, Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import WAITING, State, Step
from controller.procedure.prompts import SHOWS, MoneyFormat, PromptTerms, catalogue, fact, say
from controller.rules.cards import DECK
from controller.rules.hands import CHOICES, choices
from controller.rules.irregularities import WAYS, Irregularity, Way
from controller.rules.money import EVEN, Odds, parse_odds
from controller.sim.scripts.format import read_scripts
from controller.sim.scripts.runner import play_script
from tests.support.paths import SCRIPT_FILES
from tests.support.procedure.scenes import STOPS, Willing
from tests.support.procedure.table import HOUSES, Table, cards

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
        else:  # "withdraw" is said with a hand signal, no decision of the hand
            assert (armed, works - {"withdraw"}) == ((), set()), self.prompt
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
    if by == "signals":
        t.refuses(Hit(player(1), 1, 0), "hand_signals")
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


SCRIPTS = sorted(SCRIPT_FILES.glob("*.json"))
DOLLARS = MoneyFormat()


# --- amounts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("currency", "amount", "text"),
    [
        (DOLLARS, 2500, "$25"),
        (DOLLARS, 1250, "$12.50"),
        (DOLLARS, 1205, "$12.05"),
        (DOLLARS, 0, "$0"),
        (DOLLARS, 7, "$0.07"),
        (DOLLARS, 123456700, "$1,234,567"),
        (DOLLARS, -1250, "-$12.50"),
        (MoneyFormat("CHF", 2), 2500, "CHF 25"),
        (MoneyFormat("¥", 0), 2500, "¥2,500"),
        (MoneyFormat("KD", 3), 2500, "KD 2.500"),
    ],
)
def test_amounts_are_written_as_people_read_them(
    currency: MoneyFormat, amount: int, text: str
) -> None:
    assert currency.amount(amount) == text


# --- prompts, word for word --------------------------------------------------------------------


def read_prompt(fields: dict[str, Any]) -> Prompt:
    """A prompt as prompts.toml writes it."""
    given = {**fields, "tell": Tell(fields["tell"])}
    for name in ("choices", "near"):
        given[name] = tuple(fields.get(name, ()))
    given["cards"] = cards(fields.get("cards", ""))
    if "odds" in fields:
        given["odds"] = parse_odds(fields["odds"], "odds")
    chips = fields.get("chips", "")
    pairs = [chip.split() for chip in chips.split(", ") if chip]
    given["chips"] = tuple((int(count), name) for count, name in pairs)
    return Prompt(**given)


PROMPTS = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
GOLDEN = tuple((text, read_prompt(fields)) for text, fields in PROMPTS.items())


@pytest.mark.parametrize(("text", "prompt"), GOLDEN, ids=[text for text, _ in GOLDEN])
def test_the_prompt_reads(text: str, prompt: Prompt) -> None:
    assert say(prompt, DOLLARS) == text


def test_each_kind_of_prompt_has_a_golden_line() -> None:
    assert {prompt.tell for _, prompt in GOLDEN} == set(Tell)


def test_each_warning_stands_in_a_golden_line() -> None:
    assert {prompt.warn for _, prompt in GOLDEN} >= set(catalogue.WARNS)


def test_the_first_hand_of_several_is_named_too() -> None:
    prompt = Prompt(Tell.DECIDE, seat=3, hand=0, choices=("hit", "stand"), total=12)
    assert say(prompt, DOLLARS, several=True) == "Seat 3, hand 1 - hard 12 - hit or stand"


# --- facts -------------------------------------------------------------------------------------

SETTLED = Settled(4, 3, 0, "main", "win", EVEN, 2500, 5000, "dealer_busts", False, cards("TC 8D"))

FACTS: tuple[tuple[str, Fact], ...] = (
    ("Bank counted twice: $2,500", BankCounted(250000, "ann", "bo")),
    ("Round 4: wagers of $125 are locked", WagersLocked(4, 12500)),
    (
        "Round 4: wagers of $125 are locked - beyond $20,000 won the floor sees each payment",
        WagersLocked(4, 12500, 2000000),
    ),
    ("Seat 3 - dealer busts - $25 paid on $25", SETTLED),
    (
        "Seat 3, hand 2 - bust with 22 - $25 taken",
        Settled(4, 3, 1, "main", "lose", None, 2500, 0, "bust", True, cards("TC 2D KH")),
    ),
    (
        "Seat 3 - surrender - $12.50 of $25 given back",
        Settled(4, 3, 0, "main", "surrender", None, 2500, 1250, "surrender", True, cards("TC 6D")),
    ),
    (
        "Seat 3 - insurance - dealer has blackjack - $25 paid on $12.50",
        Settled(4, 3, -1, "insurance", "win", Odds(2, 1), 1250, 3750, "dealer_blackjack", False),
    ),
    ("Seat 3: cards tucked under the Buster wager", Tucked(3, 0, cards("TC 2D KH"))),
    ("A card burned", Burned()),
    ("7 of hearts burned", Burned(cards("7H")[0])),
    ("Ace of spades to the discard rack", Discarded(cards("AS")[0])),
    ("The decks are out of play", DecksOut()),
    ("Seat 3: dead hand, in again next round", SeatDead(3)),
    ("Floor told: player gone, seat 3", Told("floor", "player_absent", 3)),
    (
        "Surveillance told: decks in doubt, one card too often",
        Told("surveillance", "deck_suspect", 0, "duplicate"),
    ),
    (
        "Ruled on misdeal: void the round, by floor and floor-2",
        Ruled("misdeal", "void", "floor", "floor-2"),
    ),
    (
        "Ruled on device lost: device taken back as it is, by floor",
        Ruled("device_lost", "counters_accepted", "floor"),
    ),
    ("Round 4 is void, by floor and floor-2", RoundVoid(4, "misdeal", "floor", "floor-2")),
    (
        "Round 4, seat 3, main - $20 was paid, $25 was due - by floor and floor-2",
        Corrected(4, 3, 0, "main", 2000, 2500, "floor", "floor-2"),
    ),
    ("Round 4 is over, $50 won", RoundOver(4, 5000)),
)


@pytest.mark.parametrize(("text", "happened"), FACTS, ids=[text for text, _ in FACTS])
def test_the_fact_reads(text: str, happened: Fact) -> None:
    assert fact(happened, DOLLARS) == text


def test_each_kind_of_fact_has_a_golden_line() -> None:
    assert {type(happened) for _, happened in FACTS} == set(Fact.__subclasses__())


# --- nothing without words ---------------------------------------------------------------------


def test_every_reason_has_words() -> None:
    assert {*catalogue.WHY, "against_total"} == set(WHYS)
    terms = PromptTerms(catalogue.ENGLISH, DOLLARS)
    for key in WHYS:
        for tell in (Tell.PAY, Tell.COLLECT, Tell.GIVE_BACK):
            for hand in ((), cards("2C 3D 4H 5S 7C")):
                text = terms.why(key, hand, tell)
                assert text
                assert not set(text) & set("{}_")


def test_every_irregularity_and_way_has_words() -> None:
    assert set(catalogue.WHAT) == {what.value for what in Irregularity}
    assert set(catalogue.WAYS) == {way.value for way in Way}
    for what in Irregularity:
        ways = tuple(way.value for way in WAYS[what])
        assert "_" not in say(Prompt(Tell.RULE, "floor", why=what.value, choices=ways), DOLLARS)


def test_every_choice_and_bet_has_words() -> None:
    assert set(CHOICES.values()) <= set(catalogue.CHOICES)
    assert {*BETS, "insurance"} == set(catalogue.BETS)


def test_no_two_names_are_worded_alike() -> None:
    for table in (
        catalogue.BETS,
        catalogue.CHOICES,
        catalogue.WARNS,
        catalogue.WHAT,
        catalogue.WAYS,
    ):
        assert len(set(table.values())) == len(table)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.name))
def test_everything_that_the_scripts_bring_up_has_words(script: Path) -> None:
    said: list[str] = []

    def watch(event: Event, answer: Decision | Refused) -> None:
        if isinstance(answer, Decision):
            said.extend(filter(None, map(_worded, answer.effects)))

    for scripted in read_scripts(script):
        play_script(scripted, watch)
    assert said
    for text in said:
        assert text.isprintable()
        assert not set(text) & set("{}_"), text
        assert text.isascii(), text  # the smallest terminal shows it


def _worded(effect: Effect) -> str | None:
    match effect:
        case Prompt():
            return say(effect, DOLLARS)
        case Fact():
            return fact(effect, DOLLARS)
    return None
