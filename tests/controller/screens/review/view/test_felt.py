"""The felt as it looked: what lies face up there, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Final
from xml.etree import ElementTree

import pytest

from controller.audit.read.reader import records
from controller.audit.replay import RecordReplay, at_rest
from controller.procedure.engine import Procedure
from controller.procedure.model.state import Hold, State, Step
from controller.procedure.prompts import MoneyFormat, card_words
from controller.procedure.rows import shut
from controller.rules.cards import NAMES
from controller.rules.irregularities import Irregularity
from controller.screens.common.felt import Felt, FeltDrawing
from controller.screens.review.view import replay
from controller.screens.review.view.replay import shown_felt
from controller.sim.scripts.format import read_scripts
from tests.support.audit.record.dealing import Dealing
from tests.support.audit.record.scripted import FILES, record_all
from tests.support.audit.record.scripted import states as states_of
from tests.support.procedure.random_games import some_game
from tests.support.screens.looked_at import Browser, dealt, written

MONEY: Final = MoneyFormat()
PICTURE: Final = FeltDrawing().picture
_NAMESPACE: Final = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def states(place: Path) -> list[State]:
    """How the table stood after each record."""
    replay = RecordReplay(place)
    found = []
    for at, record in records(place):
        replay.take(at, record)
        found.append(replay.state or State())
    return found


def shown(felt: Felt) -> list[str]:
    cards = [card for seat in felt.seats for hand in seat.hands for card in hand.cards]
    return [*felt.dealer, *cards, *([felt.spare] if felt.spare else [])]


def lies(s: State) -> list[str]:
    """What lies on the felt, by the state: face up by its name, face down as --."""
    tucked = {seat.number for seat in s.seats if seat.amount("buster")}
    hands = [one for one in s.hands if not one.out or (one.busted and one.seat in tucked)]
    up = [NAMES[card] for one in hands for card in one.cards] + [NAMES[card] for card in s.dealer]
    spare = [] if s.spare is None else [NAMES[s.spare.card] if s.spare.card >= 0 else "--"]
    return up + spare + (["--"] if s.hole else [])


def test_what_lies_there_is_shown_and_nothing_else(states: list[State]) -> None:
    down = 0
    for s in states:
        felt = shown_felt(s, MONEY, 7)
        assert sorted(shown(felt)) == sorted(lies(s))
        assert ("--" in felt.dealer) == bool(s.hole)
        down += bool(s.hole)
    assert down > 100


def test_wagers_totals_and_turns_are_those_of_the_state(states: list[State]) -> None:
    turns = 0
    for s in states:
        felt = shown_felt(s, MONEY, 7)
        assert [seat.number for seat in felt.seats if seat.plays] == [
            seat.number for seat in s.seats
        ]
        hands = [hand for seat in felt.seats for hand in seat.hands]
        marked = [hand for hand in hands if hand.turn]
        if s.step is Step.TURN:
            turns += 1
            (mine,) = marked
            hand = s.hands[s.turn]
            assert mine.cards == tuple(NAMES[card] for card in hand.cards)
            assert mine.wager == MONEY.amount(hand.wager)
            assert mine.total.endswith(str(hand.total))
        assert len(marked) <= 1
    assert turns > 50


def test_a_picture_is_drawn_of_the_cards_and_no_more(states: list[State]) -> None:
    for s in states[::7]:
        felt = shown_felt(s, MONEY, 7)
        root = ElementTree.fromstring(PICTURE(felt))
        kinds = [one.get("class", "") for one in root.iter()]
        assert len([kind for kind in kinds if kind in ("card", "card back")]) == len(shown(felt))
        assert kinds.count("card back") == shown(felt).count("--")
        drawn = [one.text or "" for one in root.iter() if one.get("class", "").startswith("rank")]
        ranks = [name[0].replace("T", "10") for name in shown(felt) if name != "--"]
        assert sorted(drawn) == sorted(ranks)


def test_everything_is_within_the_picture(states: list[State]) -> None:
    for s in states[::11]:
        root = ElementTree.fromstring(PICTURE(shown_felt(s, MONEY, 7)))
        _, _, width, height = map(int, root.get("viewBox", "").split())
        for card in root.iter(f"{_NAMESPACE}rect"):
            x, y = int(card.get("x", "")), int(card.get("y", ""))
            assert 0 <= x <= width - int(card.get("width", ""))
            assert 0 <= y <= height - int(card.get("height", ""))


def test_who_does_not_see_it_is_told_the_same(states: list[State]) -> None:
    for s in states[::7]:
        felt = shown_felt(s, MONEY, 7)
        words = ". ".join(felt.words)
        for name in shown(felt):
            said = "face down" if name == "--" else card_words(NAMES.index(name))
            assert said in words


@pytest.mark.parametrize("seats", [1, 2, 5, 7, 9])
def test_a_table_may_have_other_seats(seats: int) -> None:
    root = ElementTree.fromstring(PICTURE(shown_felt(State(), MONEY, seats)))
    spots = [one for one in root.iter() if one.get("class") == "spot"]
    assert len(spots) == seats
    xs = [int(one.get("cx", "")) for one in spots]
    assert xs == sorted(xs, reverse=True)  # seat 1 at the dealer's left hand: to the right


def test_what_stands_in_words_is_escaped() -> None:
    felt = Felt("<b>&", (), "", (), "", "", notes=(("<b>&", "held"), ('"<', "due")), words=("<i>",))
    text = PICTURE(felt)
    assert not {"<b>", "<i>"} & set(re.findall("<.>", text))
    ElementTree.fromstring(text)


# --- standing ---------------------------------------------------------------------------------


def test_the_fold_from_a_snapshot_is_the_one_from_the_beginning(
    place: Path, states: list[State]
) -> None:
    every = list(records(place))
    assert every[-1][0].segment > 1
    for at in range(0, len(every), 37):
        where, record = every[at]
        begins = replay.before(place, where.segment, where.offset)
        before = states[at - 1] if at else State()
        assert begins.state == before, record.seq
        following = [one for _, one in every[at : at + 20]]
        assert list(replay.states(begins, following)) == states[at : at + 20]


def test_what_is_kept_of_earlier_folds_changes_nothing(place: Path, states: list[State]) -> None:
    every = list(records(place))
    standings = replay.ReplayCache(place)
    random = Random(3)
    for _ in range(60):
        at = random.randrange(1, len(every))
        where = every[at][0]
        found = standings.before(where.segment, where.offset)
        assert found.state == states[at - 1]
        list(replay.states(found, [one for _, one in every[at : at + 9]]))


def test_another_game_goes_on_with_a_closed_table(tmp_path: Path) -> None:
    scripts = [read_scripts(file)[0] for file in FILES[:4]]
    record = tmp_path / "games"
    record_all(record, [*scripts, *reversed(scripts)], size=64 * 1024)
    every = list(records(record))
    assert sum(one.kind == "opened" for _, one in every) > 4
    assert every[-1][0].segment > 1
    expected = [state or State() for state in states_of(record)]
    for at in range(0, len(every), 19):
        begins = replay.before(record, every[at][0].segment, every[at][0].offset)
        assert list(replay.states(begins, [one for _, one in every[at:]])) == expected[at:]


def test_another_game_begins_with_a_closed_table_though_nobody_closed_it(tmp_path: Path) -> None:
    """The power went between two rounds, and the table deals another game since."""
    place = tmp_path / "games"
    first = dealt("until the power went", 2)
    while not (at_rest(first.state) and first.state.step is not Step.CLOSED):
        first.once()
    written(place, first)
    other, _ = some_game(Random("another"), "classic")
    second = Dealing(Procedure(other), "another")
    second.state = shut(first.state)
    second.play(1)
    written(place, second)
    expected = [state or State() for state in states_of(place)]
    where, _ = next(iter(records(place)))
    begins = replay.before(place, where.segment, where.offset)
    assert list(replay.states(begins, [one for _, one in records(place)])) == expected
    assert expected[-1].round


def test_what_the_rules_would_not_do_is_not_made_up(place: Path) -> None:
    every = list(records(place))
    at = next(n for n, (_, one) in enumerate(every) if b'"CardDrawn"' in bytes(one.data))
    where, record = every[at]
    begins = replay.before(place, where.segment, where.offset)
    begins.take(record)
    assert begins.state is not None
    for _ in range(60):
        begins.take(record)  # no table deals so many cards without anything else
    assert begins.state is None


def test_what_holds_a_table_is_said_to_who_does_not_see_it() -> None:
    holds = tuple(
        Hold(what, Step.DEALING) for what in (Irregularity.MISDEAL, Irregularity.CARD_UNREADABLE)
    )
    assert shown_felt(State(holds=holds), MONEY, 7).words == ("Held: misdeal, card not read",)


def test_a_replay_without_a_script_goes_step_by_step(browser: Browser) -> None:
    first = browser.get("/rounds/3/replay")
    path, steps = "/rounds/3/replay", 0
    seen = set()
    while True:
        text = browser.get(path).text
        seen.update(re.findall(r'aria-current="step"[^>]*>(.*?)</a>', text))
        on = re.search(r'id="later" href="(\?at=\d+)"', text)
        if on is None:
            break
        path = f"/rounds/3/replay{on[1]}"
        steps += 1
        assert steps < 500
    assert steps == len(re.findall(r'data-index="\d+"', first.text)) - 1
    assert '<svg class="felt"' in first.text
    problems = re.findall(r'data-index="(\d+)"[^>]*class="problem"', first.text)
    assert problems
    jump = re.search(r'id="later_problem" href="(\?at=\d+)"', first.text)
    assert jump is not None
    there = browser.get(f"/rounds/3/replay{jump[1]}").text
    assert f'data-index="{problems[0]}" aria-current="step"' in there
