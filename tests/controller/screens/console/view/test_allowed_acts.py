"""What the console offers: all that answers the prompt, and nothing that would be refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.api.contract.view import DeviceShown
from controller.api.service import NON_EVENT_ACTS, takes_two
from controller.games import SHOE
from controller.people import act_of
from controller.procedure.model.effects import Tell
from controller.procedure.model.events import Actor, Event, ShoeRanOut
from controller.procedure.model.holds import CARD_STEPS
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.procedure.prompts import MoneyFormat
from controller.rules.cards import DECK
from controller.screens.console.view.allowed_acts import ActButton, ActField
from controller.screens.console.view.page import RESERVED, ConsolePage
from controller.table.loop import BY_PEOPLE, BY_VAULT, kind_of
from tests.support.screens.console.shown_at import (
    DEVICES,
    LONG,
    TEXTS,
    WATCHES,
    Around,
    At,
    console_at,
    everywhere,
    fragment,
    played,
    view_at,
)

_VAULT: Final = {kind.__name__ for kind in BY_VAULT}
_KINDS: Final = {kind.__name__: kind for kind in BY_PEOPLE}
_BY_THE_SHOE: Final = (Tell.LOAD_SHOE, Tell.AWAIT_SHUFFLE)
"""What devices answer, where the table has them."""
_BY_A_CARD: Final = (Tell.BURN, Tell.DEAL)
"""What a card that leaves the shoe answers, and no button."""


Shown: TypeAlias = tuple[tuple[At, ConsolePage], ...]


@pytest.fixture(scope="module")
def shown() -> Shown:
    """Of tables that play at random each state, with what the console shows of it."""
    return tuple((at, console_at(at)) for at in everywhere("offered", 80, LONG))


def every(console: ConsolePage) -> tuple[ActButton, ...]:
    wagers = () if console.wagers is None else console.wagers.seats
    of_seats = [one for seat in wagers for one in (*seat.enter, *seat.back)]
    sheet = [one for group in console.groups for one in group.actions]
    return (*console.actions, *console.aside, *of_seats, *sheet)


def filled(at: At, action: ActButton) -> Iterator[dict[str, Any]]:
    """The act with what is asked, as somebody who knows the table says it: for a choice, each."""
    act = json.loads(action.act)
    choices = [ask for ask in action.inputs if ask.kind == "one"]
    usual = {ask.name: _usual(at, act, ask) for ask in action.inputs}
    if not choices:
        yield {**act, **usual}
    for ask in choices:
        for option in ask.options:
            said = {**act, **usual, ask.name: option.value}
            if act["type"] == "WagerPlaced":
                said["amount"] = _wager(at, str(option.value))
            yield said


def _usual(at: At, act: dict[str, Any], ask: ActField) -> object:
    if ask.kind == "card":
        return next(card for card in DECK if (at.state.seen >> 4 * card) & 15 < at.game.decks)
    if ask.kind == "text":
        return str(ask.options[0].value)
    if ask.kind == "count":
        return int(ask.value)
    if ask.kind == "one":
        return ask.options[0].value
    if act["type"] == "Paid":
        return at.state.due[0].moves
    return {"due": at.game.money.unit, "paid": 0, "bank": 10000, "counted_again": 10000}.get(
        ask.name, at.game.money.unit
    )


def _wager(at: At, bet: str) -> int:
    limit, unit = at.game.limits[bet], at.game.money.unit
    return next(
        amount
        for amount in range(unit, 100_000, unit)
        if (limit.min is None or amount >= limit.min)
        and (limit.step is None or amount % limit.step == 0)
    )


def brought(action: ActButton, sent: dict[str, Any]) -> Event:
    """By whom it is signed for."""
    kind = _KINDS[str(sent["type"])]
    actor = Actor("floor", "Fay") if action.people else Actor("dealer", "Dana")
    fields = {**sent, "actor": msgspec.to_builtins(actor)}
    if action.people > 1:
        fields["second"] = msgspec.to_builtins(Actor("surveillance", "Sam"))
    return msgspec.convert(fields, kind)


def test_nothing_is_offered_that_would_be_refused(shown: Shown) -> None:
    """Each button, with each of the choices that it asks for, is taken by the procedure."""
    taken: Counter[str] = Counter()
    for at, console in shown:
        for action in every(console):
            name = json.loads(action.act)["type"]
            if name in _VAULT or name in NON_EVENT_ACTS:
                continue
            for sent in filled(at, action):
                assert kind_of(sent) is _KINDS[name]
                answer = at.procedure.step(at.state, brought(action, sent))
                assert not isinstance(answer, Refused), (sent, answer)
                taken[name] += 1
    missing = {kind.__name__ for kind in BY_PEOPLE} - set(taken)
    # By devices here, in a relief at sign-in, or in place of what the table has a device for.
    assert missing <= {"ShuffleDone", "ShoeLoaded", "DealerRelieved"}


def test_whatever_is_asked_can_be_answered(shown: Shown) -> None:
    seen = set()
    for at, console in shown:
        view = view_at(at)
        assert view.prompt is not None
        tell = view.prompt.tell
        seen.add(tell)
        if tell is Tell.TAKE_WAGERS:
            assert console.wagers is not None
        elif tell in _BY_A_CARD:
            assert console.actions == ()
        elif tell in _BY_THE_SHOE:
            assert console_at(at, around=Around(devices=())).actions, tell
        else:
            assert console.actions, tell
    assert len(seen) > 25


def test_that_the_shoe_is_empty_is_said_in_two_steps_among_other_things(shown: Shown) -> None:
    """Where Hit was a moment ago no button holds the table."""
    seen = 0
    for at, console in shown:
        view = view_at(at)
        assert not [one for one in console.actions if "ShoeRanOut" in one.act]
        if view.prompt is None or view.prompt.tell not in _BY_A_CARD:
            continue
        (said,) = [one for one in every(console) if "ShoeRanOut" in one.act]
        (cards,) = [one for one in console.groups if one.id == "cards"]
        assert said in cards.actions
        assert (said.confirmation, said.look, said.key) == (
            TEXTS("console.sure.shoe_empty"),
            "care",
            "",
        )
        assert f'data-sure="{said.confirmation}"' in fragment(console)
        seen += 1
    assert seen > 40


def test_the_floor_is_offered_a_void_where_discards_are_to_be_loaded() -> None:
    """The way out where the shoe was not empty."""
    some = played("mega", "default", "x", 200)
    draws = next(at for at in some if at.state.step is Step.HAND_CARD)
    answer = draws.procedure.step(draws.state, ShoeRanOut(SHOE))
    assert isinstance(answer, Decision)
    at = draws._replace(state=answer.state)
    assert at.state.step is Step.REFILL
    (void,) = [one for one in every(console_at(at)) if "RoundVoided" in one.act]
    assert void.people == 2
    assert not [one for one in every(console_at(at, WATCHES)) if "RoundVoided" in one.act]


def test_acts_of_the_vault_are_offered_at_their_time_only(shown: Shown) -> None:
    at_steps: dict[str, set[Step]] = {}
    for at, console in shown:
        for action in every(console):
            name = json.loads(action.act)["type"]
            if name in _VAULT:
                at_steps.setdefault(name, set()).add(at.state.step)
    assert (at_steps["CheckHole"], at_steps["RevealHole"]) == ({Step.CHECK}, {Step.REVEAL})
    assert {Step.WAGERING} < at_steps["LaySpare"] <= {Step.WAGERING, *CARD_STEPS}


def test_the_hand_in_turn_has_every_decision_that_is_open(shown: Shown) -> None:
    seen = 0
    for at, console in shown:
        view = view_at(at)
        if view.prompt is None or view.prompt.tell is not Tell.DECIDE:
            continue
        names = {json.loads(one.act)["type"] for one in console.actions}
        by = at.game.options.decisions.by
        words = {"refuse_card": "SpareRefused"}
        wanted = {words.get(word, word.capitalize()) for word in view.prompt.choices}
        assert names == (set() if by == "buttons" else wanted)
        seen += 1
    assert seen > 40


def test_how_many_sign_is_as_the_api_asks_for(shown: Shown) -> None:
    seen = Counter[int]()
    for at, console in shown:
        for action in every(console):
            sent = json.loads(action.act)
            kind = _KINDS.get(sent["type"])
            if kind is None or not action.people:
                continue
            two = act_of(kind, two=takes_two(kind, sent, at.state, at.game)).two
            assert action.people == 1 + two
            seen[action.people] += 1
    assert min(seen[1], seen[2]) > 20


def test_who_only_watches_is_offered_nothing() -> None:
    for at in everywhere("watched", 30):
        console = console_at(at, WATCHES)
        assert every(console) == ()
        assert not console.controls
        assert "Dana" in console.status.watching


def test_while_nobody_deals_the_floor_may_still_act() -> None:
    """A table that is closed is opened before anybody deals."""
    (at,) = played("mega", "default", "closed", 1)
    closed = At(at.game, at.procedure, State(), {})
    console = console_at(closed, WATCHES, around=Around(dealer=None))
    assert [json.loads(one.act)["type"] for one in console.actions] == ["TableOpened"]
    assert [ask.name for ask in console.actions[0].inputs] == ["bank", "counted_again"]


def test_a_log_that_is_held_is_taken_up_by_two_people() -> None:
    held = DeviceShown("shuffler", "SF-0001", "resuming", "", held="it has another ring")
    around = Around(devices=(DEVICES[0], held))
    (at,) = played("mega", "default", "held", 1)
    console = console_at(at, around=around)
    adopting = [one for one in every(console) if json.loads(one.act)["type"] == "DeviceAdopted"]
    assert [json.loads(one.act)["skip"] for one in adopting] == [False, True]
    assert all(one.people == 2 for one in adopting)
    assert any("it has another ring" in one.about for one in console.troubles)


def test_a_shuffle_that_did_not_begin_can_be_asked_for_again() -> None:
    for at in played("mega", "default", "shuffle", 200):
        if at.state.step is Step.SHUFFLING:
            console = console_at(at, around=Around(problem="the shuffle was not started"))
            assert [json.loads(one.act) for one in console.actions] == [{"type": "ShuffleAgain"}]
            assert console.actions[0].people == 1
            assert any("was not started" in one.about for one in console.troubles)
            return
    pytest.fail("nothing was shuffled")


@pytest.mark.parametrize("devices", [DEVICES, DEVICES[:1]], ids=["shuffler", "none"])
def test_discards_of_a_round_are_shuffled_by_hand(devices: tuple[DeviceShown, ...]) -> None:
    """A shuffler is started for whole decks only: nothing is offered that would start it again."""
    for at in played("classic", "default", "refill", 4000):
        if at.state.step is Step.REFILL:
            console = console_at(at, around=Around(devices=devices))
            acts = [json.loads(one.act)["type"] for one in console.actions]
            assert acts == ["ShuffleStarted", "ShuffleDone"]
            return
    pytest.fail("no shoe ran out in a round")


def test_the_dealer_says_when_a_shuffle_is_done_where_no_shuffler_does() -> None:
    (at,) = played("mega", "default", "by hand", 1)
    shuffling = At(at.game, at.procedure, State(step=Step.SHUFFLING), {})

    def offered(around: Around) -> list[str]:
        return [json.loads(one.act)["type"] for one in console_at(shuffling, around=around).actions]

    assert offered(Around()) == ["ShuffleAgain"]
    assert offered(Around(out=True)) == ["ShuffleDone", "ShuffleAgain"]
    assert offered(Around(devices=())) == ["ShuffleDone"]


def test_every_button_has_a_name_and_a_key_of_its_own(shown: Shown) -> None:
    for _, console in shown:
        ids = [one.id for one in every(console)]
        assert len(ids) == len(set(ids))
        groups = {one.id for group in console.groups for one in group.actions}
        back = () if console.wagers is None else console.wagers.seats
        bare = groups | {one.id for seat in back for one in seat.back}
        assert not [one for one in every(console) if one.id in bare and one.key]
        keys = [one.key for one in every(console) if one.id not in bare]
        assert all(len(key) == 1 for key in keys)
        assert len({*keys, *RESERVED.values()}) == len(keys) + len(RESERVED)
        assert all(one.label.strip() for one in every(console))


def test_what_is_done_with_care_shares_its_key_with_nothing_that_is_sent_at_once(
    shown: Shown,
) -> None:
    """Who has a key in the fingers does nothing else with it one step later."""
    sends: dict[str, set[str]] = {}
    careful: set[str] = set()
    for _, console in shown:
        for one in (*console.actions, *console.aside):
            if one.inputs or one.people or one.confirmation:
                continue
            sends.setdefault(one.key, set()).add(json.loads(one.act)["type"])
            if one.look in ("quiet", "care"):
                careful.add(one.key)
    assert len(careful) > 4
    assert {key: sends[key] for key in careful if len(sends[key]) > 1} == {}


def test_every_hold_is_listed_with_its_way_on(shown: Shown) -> None:
    most = 0
    for at, console in shown:
        holds = [one for one in console.troubles if one.id.startswith("hold-")]
        assert len(holds) == len(at.state.holds)
        assert all(one.what and one.way for one in holds)
        most = max(most, len(holds))
    assert most > 1


def test_payments_are_listed_in_their_order() -> None:
    most = 0
    for at in played("classic", "default", "payments", 1200):
        console = console_at(at)
        if at.state.step is not Step.PAYING:
            assert console.payments is None
            continue
        assert console.payments is not None
        listed = (console.payments.first, *console.payments.more)
        money = MoneyFormat()
        assert [one.amount for one in listed] == [money.amount(due.moves) for due in at.state.due]
        assert [one.who.split(" ")[1].strip(",") for one in listed] == [
            str(due.seat) for due in at.state.due
        ]
        winner = at.state.due[0].returned > at.state.due[0].stake
        early = winner and at.state.after is not Step.CLEARING
        assert bool(console.payments.interrupt) is early
        most = max(most, len(listed))
    assert most > 2


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_what_is_offered_follows_from_what_is_shown(seed: int) -> None:
    """Nothing but the view goes in: two tables that look alike offer the same, whatever the shoe
    has dealt before."""
    *_, at = played("mega", "default", f"chance {seed}", 40)
    assert console_at(at) == console_at(At(at.game, at.procedure, at.state, {}))
