"""Nobody can tell the hole card from anything the procedure says before it is turned over."""

import typing
from random import Random
from typing import Final

import msgspec
import pytest
from msgspec import Struct

from controller.games import SHOE
from controller.procedure.engine import EVENTS, LiveTable, Procedure
from controller.procedure.model import events
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import Event
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.cards import DECK, Card
from controller.rules.hands import is_blackjack
from controller.sim.play import Stepper
from tests.support.procedure.ledger import total
from tests.support.procedure.random_games import GAMES, some_game
from tests.support.procedure.random_table import RandomTable

_PAIRS: Final = 500
"""For each game."""
_WARM_UP: Final = 3


class Twin(RandomTable):
    """A table whose hole card can be another one; all else follows from the seed alone.

    Neither of the two cards comes out of the shoe, so that either may lie there.
    """

    def __init__(self, engine: Stepper, seed: str, *, second: bool) -> None:
        super().__init__(engine, seed)
        self._second = second
        self.pair: tuple[Card, Card] | None = None
        self.said: list[tuple[Event, Decision | Refused]] = []
        self._watch = self._listen
        self._listens = False

    def listen(self) -> None:
        self._listens = True

    def _listen(self, before: State, event: Event, answer: Decision | Refused) -> None:
        if self._listens:
            self.said.append((event, answer))

    def _follow(self, before: State, event: Event, answer: Decision) -> None:
        super()._follow(before, event, answer)
        if isinstance(event, events.HoleDealt) and self._listens:
            self._exchange(answer.state)

    def _exchange(self, s: State) -> None:
        """Another card as good as the hole card: it makes a blackjack no more than that one."""
        card = self._vault[s.hole]
        for _ in range(20):
            other = self.draw()
            alike = s.dealer and is_blackjack(s.dealer[0], card) == is_blackjack(s.dealer[0], other)
            if other >= 0 and other != card and alike:
                self.pair = card, other
                self.reserved = self.pair
                self._vault[s.hole] = other if self._second else card
                return

    def _out_of_sight(self) -> tuple[Card, ...]:
        return self.reserved if self.pair else super()._out_of_sight()

    def to_the_reveal(self) -> bool:
        """Plays on until the hole card is about to be told; False when that never comes."""
        before = self.rounds
        while self.rounds == before:
            if self._tells():
                return True
            self.once()
        return False

    def _tells(self) -> bool:
        s = self.state
        back = s.holds[-1].back if s.holds else s.step
        return bool(s.hole) and Step.REVEAL in (s.step, back)


def _twins(engine: Stepper, seed: str) -> list[Twin]:
    return [Twin(engine, seed, second=second) for second in (False, True)]


def _compare(one: Twin, other: Twin, seed: str, *, closely: bool) -> int:
    """What both tables said before the reveal, in numbers of answers."""
    warm_up = Random(seed).randrange(_WARM_UP)
    for twin in (one, other):
        twin.play(warm_up)
        twin.listen()
    ends = one.to_the_reveal(), other.to_the_reveal()
    assert ends[0] == ends[1], seed
    assert one.said == other.said, seed
    assert one.state == other.state, seed
    if closely:
        for (_, this), (_, that) in zip(one.said, other.said, strict=True):
            assert repr(this) == repr(that), seed
            assert str(this) == str(that), seed
            assert msgspec.json.encode(this) == msgspec.json.encode(that), seed
    return len(one.said) if ends[0] and one.pair else 0


@pytest.mark.parametrize("name", GAMES)
def test_all_is_the_same_before_the_reveal_whatever_the_hole_card(name: str) -> None:
    pairs = number = 0
    rng = Random(f"hole {name}")
    while pairs < _PAIRS:
        game, what = some_game(rng, name)
        engine: Stepper = LiveTable(game) if rng.random() < 0.05 else Procedure(game)
        for _ in range(30):
            seed = f"hole {name} {number}: {what}"
            one, other = _twins(engine, seed)
            said = _compare(one, other, seed, closely=number % 4 == 0)
            pairs += said > 0
            number += 1
            if said:
                assert one.pair == other.pair
                assert one.face(one.state.hole) != other.face(other.state.hole)


def test_a_reveal_before_its_time_is_refused_in_the_same_words() -> None:
    """The refused event names the card; nothing of it comes back."""
    asked = 0
    for name in GAMES:
        seed = f"early {name}"
        game, _ = some_game(Random(seed), name)
        procedure = Procedure(game)
        table = RandomTable(procedure, seed)
        for _ in range(3_000):
            table.once()
            s = table.state
            if not s.hole or s.step is Step.REVEAL or not table.chance(0.05):
                continue
            said = {repr(procedure.step(s, events.HoleRevealed(SHOE, card, ""))) for card in DECK}
            assert len(said) == 1, seed
            assert said.pop().startswith("Refused"), seed
            asked += 1
    assert asked > 100


def test_while_the_hole_card_lies_there_the_dealer_shows_one_card() -> None:
    for name in GAMES:
        seed = f"shown {name}"
        game, _ = some_game(Random(seed), name)
        table = RandomTable(Procedure(game), seed)
        for _ in range(3_000):
            table.once()
            s = table.state
            if s.hole:
                assert len(s.dealer) == 1, seed
                assert (s.dealer_total, s.dealer_soft) == total(s.dealer), seed


def _structs(kind: object) -> list[type[Struct]]:
    """Every struct that a value of this type may hold."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        hints = typing.get_type_hints(kind)
        return [kind, *(found for hint in hints.values() for found in _structs(hint))]
    return [found for part in typing.get_args(kind) for found in _structs(part)]


def _cards_in(kind: type[Struct]) -> set[str]:
    """Fields that are declared to hold a card, by the source: `Card` itself is but an int."""
    found = set()
    for base in kind.__mro__:
        for name, hint in getattr(base, "__annotations__", {}).items():
            if "Card" in str(hint).replace("CardDrawn", ""):
                found.add(name)
    return found


def test_only_events_about_cards_that_are_seen_carry_a_card() -> None:
    carry = {kind for kind in EVENTS if _cards_in(kind)}
    assert carry == {
        events.CardDrawn,
        events.HoleRevealed,
        events.FaceUpCardFound,
        events.ErrorCardExposed,
        events.CardEntered,
    }
    assert events.HoleDealt.__struct_fields__ == ("actor", "commitment", "spare")
    assert events.HoleChecked.__struct_fields__ == ("actor", "blackjack")
    assert typing.get_type_hints(events.HoleChecked)["blackjack"] is bool


def test_what_state_and_effects_hold_of_cards_lies_face_up() -> None:
    """A new field for a card is to be looked at here, and then added."""
    state = {(kind.__name__, name) for kind in _structs(State) for name in _cards_in(kind)}
    assert state == {
        ("Hand", "cards"),
        ("State", "dealer"),
        ("State", "read"),  # from the felt, when the hole card lies face up
        ("State", "read"),  # the hole card turned over, read from the felt and confirmed
        ("Due", "cards"),
        ("Spare", "card"),
        ("Hold", "card"),
    }
    effects = {
        (kind.__name__, name)
        for effect in Effect.__subclasses__()
        for each in (effect, *effect.__subclasses__())
        for kind in _structs(each)
        for name in _cards_in(kind)
    }
    assert effects == {
        ("Prompt", "cards"),
        ("Settled", "cards"),
        ("Tucked", "cards"),
        ("Burned", "card"),
        ("Discarded", "card"),
    }
