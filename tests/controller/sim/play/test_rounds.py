"""How simulated rounds are played: shoes, cut cards, insurance, payments that wait."""

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from controller.errors import UsageProblem
from controller.games import wagering
from controller.procedure.engine import Procedure
from controller.procedure.model.effects import Settled
from controller.procedure.model.events import (
    CardDrawn,
    Cleared,
    CutCardSeen,
    Event,
    HoleDealt,
    HoleRevealed,
    PaymentApproved,
    ShoeLoaded,
    ShoeRanOut,
    WagerPlaced,
)
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.cards import DECK
from controller.sim.par.simulation import game_for
from controller.sim.play import (
    POLICIES,
    Play,
    PlaySetup,
    RoundRecord,
    RoundStuck,
    Strategy,
    stakes_for,
)
from controller.sim.play.shoe import RandomShoe, refill
from controller.sim.play.strategy import parse


def plays(
    name: str,
    policy: Strategy = POLICIES["mimic"],
    *,
    seats: int = 1,
    cut: bool = False,
    side: bool = True,
    seed: int = 7,
    engine: type[Procedure] = Procedure,
    **settings: object,
) -> Play:
    game = game_for(name, {path.replace("__", "."): value for path, value in settings.items()})
    setup = PlaySetup(seats, stakes_for(game, side=side), cut)
    return Play(engine(game), policy, setup, Random(seed).random)


def records(play: Play, rounds: int) -> list[RoundRecord]:
    kept = []
    for _ in range(rounds):
        play.round()
        kept.append(list(play.record))
    return kept


def names(record: RoundRecord) -> list[str]:
    return [type(event).__name__ for event, _, _ in record]


# Shoes


def test_a_shoe_deals_every_card_once() -> None:
    shoe = RandomShoe(2, Random(1).random)
    for _ in range(3):
        assert shoe.left == 104
        assert Counter([shoe.draw() for _ in range(104)]) == Counter(DECK * 2)
        assert shoe.left == 0
        shoe.shuffle()


def test_a_shoe_is_well_shuffled() -> None:
    """Every card comes first, and second, about as often as any other."""
    shoe = RandomShoe(1, Random(2).random)
    rounds = 52_000
    first: Counter[int] = Counter()
    second: Counter[int] = Counter()
    for _ in range(rounds):
        shoe.shuffle()
        first[shoe.draw()] += 1
        second[shoe.draw()] += 1
    for seen in (first, second):
        chi = sum((seen[card] - 1000) ** 2 / 1000 for card in DECK)
        assert chi < 51 + 4 * (2 * 51) ** 0.5


def test_a_refilled_shoe_has_all_but_what_lies_on_the_felt() -> None:
    shoe = RandomShoe(1, Random(3).random)
    felt = [shoe.draw() for _ in range(20)][:8]
    shoe.refill(felt)
    assert shoe.left == 44
    assert Counter(shoe.draw() for _ in range(44)) == Counter(set(DECK) - set(felt))
    shoe.shuffle()
    assert Counter(shoe.draw() for _ in range(52)) == Counter(DECK)


# Rounds from a fresh shuffle


def test_a_round_is_kept_from_its_wager_to_the_clear_felt() -> None:
    for record in records(plays("classic"), 50):
        told = names(record)
        assert (told[0], told[-1], told.count("HoleDealt")) == ("WagerPlaced", "Cleared", 1)
        assert told.count("HoleRevealed") == 1
        assert all(rows for _, rows, _ in record)
        settled = [effect for _, _, effects in record for effect in effects]
        assert any(isinstance(effect, Settled) for effect in settled)


def test_every_round_is_the_first_of_a_shuffle() -> None:
    for record in records(plays("maxtime"), 20):
        bets = [event.bet for event, _, _ in record if isinstance(event, WagerPlaced)]
        assert bets == ["main", "diamond"]


def test_the_commitment_tells_nothing() -> None:
    """The same words whatever the hole card is, and none of them twice in a block."""
    told = []
    for seed in (1, 2):
        kept = records(plays("classic", POLICIES["stand"], side=False, seed=seed), 30)
        told.append(
            [e.commitment for record in kept for e, _, _ in record if isinstance(e, HoleDealt)]
        )
    assert told[0] == told[1]
    assert len(set(told[0])) == 30


# A shoe dealt to the cut card


@pytest.mark.parametrize("name", ["classic", "maxtime", "sf21x", "mega"])
def test_a_shoe_is_dealt_to_the_cut_card(name: str) -> None:
    game = game_for(name, {})
    drawn: list[int] = []
    cut = rounds = shoes = 0
    for record in records(plays(name, seats=3, cut=True), 120):
        for event, _, _ in record:
            if isinstance(event, ShoeLoaded):
                assert cut <= 1
                # Every shoe is dealt to the cut card, or to the most rounds that it may feed.
                assert cut == 1 or rounds == game.options.shuffle.max_rounds
                assert all(count <= game.decks for count in Counter(drawn).values())
                drawn, cut, rounds, shoes = [], 0, 0, shoes + 1
            elif isinstance(event, CardDrawn | HoleRevealed):
                drawn.append(event.card)
            elif isinstance(event, CutCardSeen):
                behind = game.decks * 52 - game.options.cut_behind
                # A hole card that is face down has left the shoe and is not counted yet.
                assert len(drawn) in {behind, behind - 1}
                cut += 1
            elif isinstance(event, Cleared):
                rounds += 1
    assert shoes > 1


def test_a_bonus_of_the_first_round_is_wagered_on_no_other() -> None:
    for number, record in enumerate(records(plays("maxtime", cut=True), 9)):
        bets = [event.bet for event, _, _ in record if isinstance(event, WagerPlaced)]
        assert bets == (["main"] if number % 3 else ["main", "diamond"])


def test_a_shoe_that_runs_out_is_filled_with_the_discards() -> None:
    play = plays(
        "maxtime", seats=7, cut=True, shuffle__cut_cards_behind=13, shuffle__max_rounds=None
    )
    kept = records(play, 40)
    ran_out = [record for record in kept if "ShoeRanOut" in names(record)]
    assert ran_out
    for record in ran_out:
        assert names(record)[names(record).index(ShoeRanOut.__name__) + 1] == "ShoeLoaded"


def test_a_shoe_cannot_be_refilled_if_all_cards_are_in_play() -> None:
    state = replace(wagering(), dealer=tuple(DECK[1:]), hole="hidden")
    with pytest.raises(UsageProblem, match="all the cards lie on the felt") as refused:
        refill(RandomShoe(1, Random(1).random), state, DECK[0])
    assert refused.value.where == "--seats"


# Decisions beside the play of the hand

INSURES = """
name = "insures"
note = "insures whatever may be insured"
insurance = "always"
even_money = "always"
"""


def insuring() -> Strategy:
    charts = ""
    for section, keys in (("hard", "4-21"), ("soft", "12-21")):
        charts += f'[{section}]\n{keys} = "{" ".join("S" * 10)}"\n'
    charts += "[pairs]\n" + "".join(f'{key} = "{" ".join("-" * 10)}"\n' for key in "23456789TA")
    return parse(INSURES + charts, "insures")


def test_a_strategy_may_insure_and_take_even_money() -> None:
    taken: Counter[str] = Counter()
    for record in records(plays("mega", insuring(), side=False), 1_500):
        taken.update(names(record))
        for _, _, effects in record:
            taken.update(f"{e.bet} {e.outcome}" for e in effects if isinstance(e, Settled))
    assert taken["Insure"] > 50
    assert taken["EvenMoney"] > 0
    assert taken["main even_money"] == taken["EvenMoney"]
    assert taken["insurance win"] + taken["insurance lose"] == taken["Insure"]


def test_payments_that_wait_for_the_floor_are_approved() -> None:
    kept = records(plays("sf21x", payout__floor_from=1), 200)
    assert any(isinstance(event, PaymentApproved) for record in kept for event, _, _ in record)


def test_a_blackjack_that_may_be_doubled_is_paid() -> None:
    play = plays("sf21x", double__natural=True, side=False)
    assert any("PayTaken" in names(record) for record in records(play, 200))


def test_players_who_decide_by_buttons() -> None:
    kept = records(plays("classic", decisions__by="buttons"), 20)
    assert {event.actor.role for record in kept for event, _, _ in record} >= {"player", "dealer"}


class _RefusesTurns(Procedure):
    def step(self, s: State, e: Event) -> Decision | Refused:
        return Refused("not_now", "not now") if s.step is Step.TURN else super().step(s, e)


def test_a_table_that_is_stuck_says_where() -> None:
    with pytest.raises(RoundStuck, match="at turn: not now"):
        records(plays("classic", side=False, engine=_RefusesTurns), 50)


# Stakes


def test_stakes_come_out_even() -> None:
    for name in ("maxtime", "sf21x", "classic", "mega"):
        options = game_for(name, {}).options
        stake = stakes_for(game_for(name, {}), side=True).main
        pays = options.blackjack.pays
        assert (stake * pays.pays % pays.on, stake % 2) == (0, 0)
    assert stakes_for(game_for("sf21x", {"blackjack.pays": "12:5"}), side=False).main % 5 == 0


def test_stakes_keep_the_limits() -> None:
    settings = {
        "money.unit": 5,
        "limits.main.min": 105,
        "limits.main.step": 15,
        "limits.buster.max": 20,
    }
    stakes = stakes_for(game_for("mega", settings), side=True)
    assert stakes.main >= 105
    assert (stakes.main % 60, stakes.of("buster")) == (0, 20)
    assert dict(stakes.later) == dict(stakes.first_round)


def test_limits_without_an_even_stake_are_refused() -> None:
    game = game_for("classic", {"limits.main.min": 5, "limits.main.max": 7})
    with pytest.raises(UsageProblem) as refused:
        stakes_for(game, side=False)
    assert refused.value.where == "limits.main"
