"""No irregularity without a story over the wire, in each house and for each way that is open there.

What there is is read from the procedure and from the jurisdictions' files; what is told, from the
stories themselves, each of which is held against its record.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from controller.config import load_jurisdiction
from controller.procedure.engine.dispatch import ROWS
from controller.procedure.irregularities import (
    release,
    rulings,
    stops,
    wrong_card,
)
from controller.procedure.model.events import ErrorCardDrawn, Go
from controller.procedure.model.holds import applicable
from controller.procedure.model.row import Row
from controller.procedure.model.state import WAITING, Hold, Place, Seat, Spare, State, Step
from controller.rules.hands import Hand
from controller.rules.irregularities import FIXED, WAYS, Irregularity, Way
from controller.rules.irregularities import Irregularity as Odd
from firmware_protocol.device import Draw
from tests.support.asynchronous import in_turn, simulated
from tests.support.drivers.simulated import until
from tests.support.paths import ROOT
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.serving import FLOOR, kept
from tests.support.table.simulated.telling import (
    BOTH,
    CARDS,
    HOUSES,
    OTHERWISE,
    WON,
    Case,
    family,
    holds,
    tell,
    telling,
)
from tests.support.table.stories import CASES, MODULES

PARTS: Final = (wrong_card, stops, rulings, release)
"""Where the rows stand that find irregularities, rule on them, and lift what was held."""

NOT_OVER_THE_WIRE: Final = {
    "card_not_expected": "a card comes face down where none is due; people say when it was seen",
    "card_without_wagers": "the same before any wager",
    "second_card": "the same with wagers, while another card waits beside the shoe",
    "device_disagrees": "a device that does not agree is held by its supervisor and not back",
}
"""Rows for events that a running table does not bring, and why."""


def rows_of(case: Case) -> set[str]:
    """All rows that a story shows, in any way."""
    return {*case.rows, *(row for more in case.also.values() for row in more)}


def reached() -> dict[tuple[Irregularity, str], set[Way]]:
    """The ways that stories go, by irregularity and house."""
    found: dict[tuple[Irregularity, str], set[Way]] = defaultdict(set)
    for case in CASES:
        for house, ways in case.ways.items():
            found[case.what, house] |= set(ways)
    return found


# --- which ways are open ----------------------------------------------------------------------


def found_at(what: Irregularity) -> set[Step]:
    """Where stories find it: the steps of the rows that do."""
    named = {row for case in CASES if case.what is what for row in rows_of(case)}
    return {step for row in ROWS if family(row.id) in named for step in row.at if step in WAITING}


def states_at(step: Step) -> Iterator[State]:
    """A state of each kind that makes a difference to the ways that are open."""
    hand, seat = Hand(1, 1000, 1000), Seat(1, 1000)
    places = (Place("hand", 1, 0, 0), Place("hole"))
    for spare in (None, Spare(commitment="sealed")):
        for dealt in (0, 1):
            yield State(
                step, 1, seats=(seat,), hands=(hand,), places=places, dealt=dealt, spare=spare
            )
        if step is Step.WAGERING:
            yield State(step, spare=spare)
            yield State(step, seats=(seat,), spare=spare)


def always(what: Irregularity, way: Way) -> bool:
    """The way can be gone wherever it is found."""
    return all(
        applicable(s, Hold(what, step, seat=1), way)
        for step in found_at(what)
        for s in states_at(step)
    )


def open_ways(house: str, what: Irregularity) -> set[Way]:
    """What a house leaves open: its way, and where the floor is asked, what it may rule."""
    if what in FIXED:
        return set(WAYS[what])
    game = game_with("classic", {}, house)
    ruling = game.jurisdiction.ruling(what)
    may_rule = set(ruling.options or WAYS[what])
    if ruling.way is Way.FLOOR_DECIDES:
        return may_rule
    alone = ruling.way is Way.ENTER_CARD or not game.needs_two(what, ruling.way)
    if alone and always(what, ruling.way):
        return {ruling.way}
    return {ruling.way} | may_rule


@pytest.mark.parametrize("what", Irregularity, ids=lambda what: what.value)
@pytest.mark.parametrize("house", HOUSES)
def test_each_way_that_is_open_is_told(house: str, what: Irregularity) -> None:
    told = reached()[what, house]
    assert told, f"no story of {what.value} in the {house} house"
    wanted = {way for way in open_ways(house, what) if can_be_gone(what, way)}
    assert not wanted - told, f"{what.value}: {sorted(way.value for way in wanted - told)}"


def can_be_gone(what: Irregularity, way: Way) -> bool:
    if what in FIXED:
        return True
    return any(
        applicable(s, Hold(what, step, seat=1), way)
        or (way is Way.REOPEN_INSURANCE and what is Irregularity.INSURANCE_DISPUTE)
        for step in found_at(what)
        for s in states_at(step)
    )


def test_a_way_that_nobody_tells_would_be_found() -> None:
    """The floor may void a round that a shoe was lost in, where the floor is asked."""
    assert Way.VOID in open_ways("strict", Irregularity.DEVICE_LOST)
    assert open_ways("default", Irregularity.DEVICE_LOST) == {Way.DEVICE_CHECK}
    assert open_ways("default", Irregularity.ERROR_CARD) == set(WAYS[Irregularity.ERROR_CARD])


# --- which rows there are ---------------------------------------------------------------------


def irregular_rows() -> dict[str, Row]:
    """One of each family, those aside that are ways on: they are asked for by way."""
    ways = {f"way_{way.value}" for way in Way} | {"resume"}
    rows = [row for part in PARTS for row in part.ROWS]
    return {family(row.id): row for row in rows if family(row.id) not in ways}


def told_rows() -> set[str]:
    """What stories have shown of their records."""
    told = {row for case in CASES for row in rows_of(case)}
    for case in CASES:
        for ways in case.ways.values():
            told |= {row for way in ways for row in OTHERWISE.get((case.what, way), ())}
    return told


EVERYWHERE: Final = ("floor_decides", "floor_rules")
"""Rows of every ruling."""


@pytest.mark.parametrize("row", sorted(irregular_rows()))
def test_each_row_is_told(row: str) -> None:
    told = told_rows()
    if row in NOT_OVER_THE_WIRE:
        assert row not in told, f"{row} is told: it can be brought over the wire after all"
        return
    assert row in told or row in EVERYWHERE, f"no story of row {row}"


def test_what_is_excused_is_a_row() -> None:
    assert set(NOT_OVER_THE_WIRE) <= set(irregular_rows())


def test_every_irregularity_has_a_row_that_finds_it_and_a_step() -> None:
    for what in Irregularity:
        assert found_at(what) or what is Irregularity.LATE_WAGER, what
    assert Step.TURN in found_at(Irregularity.ERROR_CARD)
    assert any(row.event is ErrorCardDrawn for row in irregular_rows().values())
    assert not any(row.event is Go for row in wrong_card.ROWS)


# --- which jurisdictions there are ------------------------------------------------------------


def test_both_houses_are_those_of_the_files() -> None:
    folder = ROOT / "configs" / "jurisdictions"
    assert sorted(HOUSES) == sorted(file.stem for file in folder.glob("*.toml"))
    for house in HOUSES:
        assert set(load_jurisdiction(house).ways) == {what.value for what in Irregularity}


def test_each_house_rules_something_that_the_other_does_not() -> None:
    default, strict = (load_jurisdiction(house) for house in HOUSES)
    asked = [what for what in Irregularity if strict.ruling(what).way is Way.FLOOR_DECIDES]
    fewer = [what for what in Irregularity if default.ruling(what).way is Way.FLOOR_DECIDES]
    assert set(fewer) < set(asked)


# --- what a house says beside it ----------------------------------------------------------------

ORDER: Final = "running/test_order_of_cards.py"
BUTTONS: Final = "devices/test_buttons.py"
CLOSING: Final = "running/test_order_of_cards.py"
LOCK: Final = "devices/test_outputs.py"
NON_EVENT_ACTS: Final = {
    "a fault of the shoe blocks dealing": ("devices.a_shoe_that_is_jammed",),
    "a fault of the shuffler blocks dealing": (
        "devices.a_shuffler_that_loses_its_power",
        "devices.a_shuffler_that_is_gone_when_it_is_to_shuffle",
        "cards.a_shuffle_that_people_call_done_before_it_is",
        "cards.a_count_that_comes_when_the_cards_are_in_play",
    ),
    "cut card: the next round is the last": (
        f"{ORDER}: test_the_cut_card_comes_in_a_round",
        f"{ORDER}: test_the_cut_card_comes_before_a_round",
    ),
    "burn of each batch": ("people.a_table_that_is_closed_and_opened",),
    "burn for each dealer": (
        "people.a_dealer_who_is_relieved",
        "people.a_dealer_who_is_relieved_over_wagers",
        "people.a_dealer_who_is_relieved_in_a_round",
    ),
    "two batches of different backs alternate": (
        f"{ORDER}: test_batches_of_two_backs_take_turns",
        f"{ORDER}: test_a_batch_that_is_not_the_other_one",
        f"{ORDER}: test_the_batch_before_is_known_over_a_start_of_the_controller",
        f"{ORDER}: test_a_batch_that_goes_back_in_is_known_over_a_start_of_the_controller",
    ),
    "limits of each seat and bet": ("money.limits_of_each_seat_and_bet",),
    "from an amount on a payment waits for the floor": (
        "money.a_payment_that_waits_for_the_floor",
    ),
    "the cap is shown before wagers lock and cuts no payment": ("money.the_cap_of_a_round",),
    "payments are declared, then compared": ("money.a_payment_that_is_declared_wrongly",),
    "one main wager a seat, and no back bets": ("money.back_bets_are_refused",),
    "several seats of one player, each in turn": ("money.a_player_with_several_seats",),
    "the shoe's cards are counted when it closes: missing, too many, twice, foreign": (
        f"{CLOSING}: test_a_shoe_is_counted_when_it_is_taken_out",
        f"{CLOSING}: test_a_shoe_that_runs_out_too_early",
        f"{CLOSING}: test_a_duplicate_that_the_floor_let_pass_is_counted",
        f"{CLOSING}: test_a_foreign_back_that_the_floor_let_pass_is_counted",
    ),
    "an order alarm, of cards that lie face up": (
        "cards.cards_in_factory_order",
        f"{ORDER}: test_a_card_that_lies_face_down_rings_no_alarm",
    ),
    "the deck check is that of the sheet's decks": (
        f"{ORDER}: test_the_shuffler_is_told_the_decks_of_the_sheet",
        f"{ORDER}: test_a_batch_that_is_not_the_decks_of_the_sheet",
    ),
    "the bet button places the standing wager": (
        f"{BUTTONS}: test_the_bet_button_places_the_standing_wager",
    ),
    "buttons are armed for exactly the legal choices": (
        f"{BUTTONS}: test_exactly_the_legal_choices_are_armed",
    ),
    "a late, repeated or chorded press changes nothing and is recorded": (
        f"{BUTTONS}: test_a_press_that_comes_too_late",
        f"{BUTTONS}: test_a_button_that_is_pressed_again_and_again",
        f"{BUTTONS}: test_several_buttons_at_once",
    ),
    "lamps are leased and expire": (
        f"{BUTTONS}: test_lamps_are_leased_and_the_lease_is_taken_anew",
        f"{BUTTONS}: test_lamps_and_buttons_without_a_controller_are_safe_by_themselves",
    ),
    "the shoe is locked when no card may come": (f"{LOCK}: test_no_card_comes_where_none_is_due",),
}
"""Sentences that have no irregularity of their own, and the stories that show them."""


TESTS: Final = Path(__file__).parent.parent


def exists(story: str) -> bool:
    """Whether it is a registered story, or the "FILE: FUNCTION" of a test."""
    file, separator, name = story.partition(": ")
    if not separator:
        return story in {case.name for case in CASES}
    body = ast.parse((TESTS / file).read_text()).body
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return name in {one.name for one in body if isinstance(one, functions)}


@pytest.mark.parametrize("sentence", NON_EVENT_ACTS)
def test_each_sentence_has_its_story(sentence: str) -> None:
    assert [story for story in NON_EVENT_ACTS[sentence] if not exists(story)] == []


def test_a_case_without_a_story_has_a_test_of_its_own() -> None:
    assert all(exists(case.name) for case in CASES)


@pytest.mark.parametrize("step", [Step.WAGERING, Step.TURN, Step.PAYING], ids=lambda s: s.value)
@pytest.mark.parametrize("house", HOUSES)
@simulated
async def test_a_controller_that_restarts(house: str, step: Step, tmp_path: Path) -> None:
    """A card that came while it was down is processed at the step at which it came."""

    async with kept(tmp_path, game_with("classic", {}, house), stations=False) as made:
        async with telling(made, CARDS, BOTH, {1: "hit"}) as t:
            await t.to(lambda s: s.step is step and len(s.seats) == 2)
            stood, words = t.state, t.words
        if step is Step.TURN:
            made.shoe.request(Draw(force=True))
        async with telling(made, CARDS, BOTH, {1: "hit"}) as t:
            t.robot.pending_wagers = []
            await in_turn(
                t.comes_to(Step.FELT, 20),
                t.shows(
                    "Compare the felt with the screen, confirm when they agree - controller "
                    "restarted"
                ),
                until(lambda: t.locked),
                t.refused("not_theirs", "FeltConfirmed", FLOOR),
                t.does("FeltConfirmed"),
            )
            if step is Step.TURN:
                await t.ruled(Odd.ERROR_CARD, Way.USE_NEXT)
                assert t.state.spare is not None
            else:
                assert t.state == stood
                await t.shows(words)
            await t.to_end()
            assert (t.nets(), t.shown.again) == (WON, False)
    holds(made, Odd.RESTARTED, ("controller_restarted", "confirm_felt"), Way.FELT_CHECK)


TOLD = [
    pytest.param(case, house, way, id=f"{case.name}-{house}-{way.value}")
    for case in CASES
    if case.story is not None
    for house, ways in case.ways.items()
    for way in ways
]


@pytest.mark.parametrize(("case", "house", "way"), TOLD)
def test_a_story(case: Case, house: str, way: Way, tmp_path: Path) -> None:
    tell(case, house, way, tmp_path)


def test_each_module_has_stories() -> None:
    told = {case.name.partition(".")[0] for case in CASES if case.story is not None}
    assert told == {module.__name__.rpartition(".")[2] for module in MODULES}
