"""What people send: read strictly, done by who has signed for it, refused in plain words."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.audit.format.records import encode
from controller.audit.replay import decode_refusal
from controller.procedure.model import events
from controller.procedure.model.events import Actor
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import Spare, State, Step
from controller.table.intake import AppliedInput, IntakeContext, TableInput, TableSnapshot
from controller.table.loop import BadAct, InputRejected, read_act
from controller.table.loop.acts import NAMES
from controller.table.memory import NO_FAULTS, DeviceFault, TableMemory
from controller.table.restart.restore import devices_away
from drivers.devices import Sealed
from firmware_protocol.messages import CardFlags
from tests.support.audit.record.dealing import as_read
from tests.support.table.simulated.serving import DEALER, FLOOR, SECOND
from tests.support.table.typed.listening import ear, read, source, states, taking

CLOSED = State()


def heard(sent: dict[str, Any], s: State = CLOSED, **more: Any) -> TableInput:
    actor = more.pop("actor", DEALER)
    listens = more.pop("listens", None) or ear()
    return read_act(sent, actor, listens, **more)(TableSnapshot(s))


def taken(
    sent: dict[str, Any], s: State, listens: IntakeContext, actor: Actor = DEALER
) -> AppliedInput:
    make = read_act(sent, actor, listens)
    return taking(listens).apply_input(TableSnapshot(s), make(TableSnapshot(s)))


def at(step: Step) -> State:
    return next(s for s in states() if s.step is step)


# --- reading ----------------------------------------------------------------------------------


def test_an_act_is_the_event_of_who_signed_for_it() -> None:
    assert heard({"type": "Paid", "amount": 500}).events == (events.Paid(DEALER, 500),)
    assert heard({"type": "Hit", "seat": 3, "hand": 1}).events == (events.Hit(DEALER, 3, 1),)
    opened = heard({"type": "TableOpened", "bank": 9}, actor=FLOOR, second=SECOND)
    assert opened.events == (events.TableOpened(FLOOR, 9, SECOND),)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, "there is no act of this type"),
        ({"type": 7}, "there is no act of this type"),
        ({"type": "x" * 500}, "there is no act of this type"),
        ({"type": "Pay"}, "there is no act 'Pay'; allowed: AllPaid"),
        ({"type": "Go"}, "there is no act 'Go'"),
        ({"type": "CardDrawn", "card": 3}, "there is no act 'CardDrawn'"),
        ({"type": "HoleRevealed", "card": 3, "opening": ""}, "there is no act 'HoleRevealed'"),
        ({"type": "HoleChecked", "blackjack": True}, "there is no act 'HoleChecked'"),
        ({"type": "Paid", "actor": {"role": "floor", "name": "me"}}, "nothing of its actor"),
        ({"type": "TableOpened", "second": None}, "nothing of its second"),
        ({"type": "Paid", "sum": 5}, "Paid has no 'sum'; allowed: amount"),
        ({"type": "AllPaid", "sum": 5}, "AllPaid has no 'sum'; allowed: no fields"),
        ({"type": "Paid", "amount": "5"}, "Paid: Expected"),
        ({"type": "Paid", "amount": 2**53}, "numbers below 2^53"),
        ({"type": "Paid", "amount": -(2**70)}, "numbers below 2^53"),
        ({"type": "Paid", "amount": 1.5}, "Paid: Expected"),
        ({"type": "Hit", "seat": 3}, "Hit: Object missing required field `hand`"),
        ({"type": "FloorRuled", "way": "anyhow"}, "FloorRuled: Invalid enum value"),
        ({"type": "CardEntered", "card": 52}, "card: allowed: 0 to 51"),
        ({"type": "CardEntered", "card": -1}, "card: allowed: 0 to 51"),
        ({"type": "RoundVoided", "reason": "x" * 501}, "up to 500 printable characters"),
        ({"type": "RoundVoided", "reason": "a\nb"}, "up to 500 printable characters"),
        ({"type": "RoundVoided", "reason": "\ud800"}, "up to 500 printable characters"),
        ({"type": "CheckHole", "card": 3}, "CheckHole has no fields"),
    ],
)
def test_what_is_no_act(sent: dict[str, Any], words: str) -> None:
    with pytest.raises(BadAct, match=re.escape(words)):
        heard(sent)


def test_a_second_person_is_given_where_one_is_taken_only() -> None:
    with pytest.raises(BadAct, match="Paid takes no second person"):
        heard({"type": "Paid"}, second=SECOND)
    with pytest.raises(BadAct, match="no second person"):
        heard({"type": "CheckHole"}, second=SECOND)


@pytest.mark.parametrize("role", ["player", "device"])
def test_stations_and_devices_send_no_acts(role: Any) -> None:
    with pytest.raises(BadAct, match="sends no acts"):
        heard({"type": "Paid"}, actor=Actor(role, "x", 1))


simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(simple, lambda inner: st.lists(inner, max_size=3), max_leaves=6)


@given(
    name=st.sampled_from(NAMES),
    fields=st.dictionaries(
        st.sampled_from(("seat", "hand", "amount", "card", "way", "why", "bet", "reason", "which")),
        values,
        max_size=4,
    ),
    at_state=st.sampled_from(states()),
    who=st.sampled_from((DEALER, FLOOR)),
)
def test_whatever_is_sent_is_answered_and_can_be_recorded(
    name: str, fields: dict[str, Any], at_state: State, who: Actor
) -> None:
    """It is no act, or cannot be done now, or is recorded."""
    listens = ear()
    try:
        made = read_act({"type": name, **fields}, who, listens)(TableSnapshot(at_state))
    except (BadAct, LookupError):
        return
    try:
        found = taking(listens).apply_input(TableSnapshot(at_state), made)
    except (LookupError, ArithmeticError, ValueError):
        return  # the table tells whoever asked that it cannot be
    for one in found.entries:
        encode(one.data)


# --- the acts behind which the vault stands ---------------------------------------------------


def hidden(number: int, **fields: Any) -> tuple[IntakeContext, str]:
    listens = ear(backs=(1, 2))
    bound = listens.vault.put(source().cursor, Sealed(read(number, **fields)))
    return listens, bound.commitment_hex


def to_reveal(number: int, **fields: Any) -> tuple[IntakeContext, State]:
    """The hole card may be turned over, and is this one."""
    listens, commitment = hidden(number, **fields)
    s = next(s for s in states() if s.step is Step.REVEAL and s.checked is None)
    return listens, replace(s, hole=commitment, seen=0, read=-1, lost=())


def test_the_hole_card_is_turned_over() -> None:
    listens, s = to_reveal(40)
    found = taken({"type": "RevealHole"}, s, listens)
    revealed = found.answered[0].event
    assert isinstance(revealed, events.HoleRevealed)
    assert (revealed.card, revealed.opening) == (40, listens.vault.reveal(s.hole)[1])
    assert isinstance(found.answered[0].answer, Decision)
    assert (found.now.state.hole, found.entries[-1].data["what"]) == ("", "CardSeen")


@pytest.mark.parametrize(
    "fields", [{"confidence": 60, "alternative": 41}, {"flags": CardFlags.DOUBLE_FEED}]
)
def test_an_unsure_hole_card_is_read_from_the_felt(fields: dict[str, Any]) -> None:
    """What was odd waited until it was turned over."""
    listens, s = to_reveal(40, **fields)
    found = taken({"type": "RevealHole"}, s, listens)
    assert isinstance(found.answered[0].event, events.CardUnreadable)
    assert found.now.state.step in (Step.CARD_ENTRY, Step.HELD)
    # The floor has confirmed what the dealer read, and that lies on the felt: the record has it
    # beside the card that the shoe's opening proves.
    for confirmed in (40, 39):
        known = taken({"type": "RevealHole"}, replace(s, read=confirmed), listens)
        assert (known.now.state.hole, known.now.state.dealer[1]) == ("", confirmed)
        assert [one.kind for one in known.entries] == ["decision"]  # how it was read stands there
        shown = known.answered[0].event
        assert isinstance(shown, events.HoleRevealed)
        assert (shown.card, shown.opening) == (40, listens.vault.reveal(s.hole)[1])


def test_a_foreign_back_of_the_hole_card_is_suspect_once_it_lies_face_up() -> None:
    listens, s = to_reveal(40, back=9)
    found = taken({"type": "RevealHole"}, s, listens)
    assert [type(one.event) for one in found.answered] == [events.HoleRevealed, events.DeckSuspect]
    assert found.now.state.step is Step.HELD
    assert "foreign_back" in found.now.memory.alarmed


def test_a_foreign_back_of_an_unsure_card_is_suspect_at_once() -> None:
    listens, s = to_reveal(40, back=9, confidence=60)
    found = taken({"type": "RevealHole"}, s, listens)
    assert [type(one.event) for one in found.answered] == [
        events.CardUnreadable,
        events.DeckSuspect,
    ]


def test_what_the_shoe_calls_a_twin_is_suspect_when_no_card_lies_face_down() -> None:
    listens, s = to_reveal(40, flags=CardFlags.DUPLICATE)
    found = taken({"type": "RevealHole"}, s, listens)
    assert [type(one.event) for one in found.answered] == [events.HoleRevealed, events.DeckSuspect]
    event = found.answered[1].event
    assert isinstance(event, events.DeckSuspect)
    assert event.why == "duplicate"


def test_what_is_not_in_the_vault_is_not_guessed() -> None:
    s = replace(at(Step.REVEAL), hole="ab" * 32, read=-1)
    with pytest.raises(LookupError, match="not known here"):
        heard({"type": "RevealHole"}, s)


def spare_at(kind: str, number: int, **fields: Any) -> tuple[IntakeContext, State]:
    """A card that nobody has seen lies beside the shoe, and is due."""
    listens, commitment = hidden(number, **fields)
    for s in states():
        due = s.step is Step.DEALING and s.places[s.dealt].kind == kind
        if due or (kind == "first" and s.step is Step.WAGERING and s.seats):
            return listens, replace(s, spare=Spare(commitment), seen=0)
    raise AssertionError(kind)


def test_the_card_beside_the_shoe_is_laid_face_up_or_face_down() -> None:
    for kind in ("hand", "first"):
        listens, s = spare_at(kind, 40)
        found = taken({"type": "LaySpare"}, s, listens)
        assert found.answered[0].event == events.CardDrawn(DEALER, 40, spare=True)
        assert isinstance(found.answered[0].answer, Decision)
    listens, s = spare_at("hole", 40)
    assert s.spare is not None
    found = taken({"type": "LaySpare"}, s, listens)
    assert found.answered[0].event == events.HoleDealt(DEALER, s.spare.commitment, spare=True)
    assert isinstance(found.answered[0].answer, Decision)
    assert found.now.state.hole == s.spare.commitment


def test_an_unsure_card_beside_the_shoe_is_entered() -> None:
    listens, s = spare_at("hand", 40, confidence=10)
    assert isinstance(
        taken({"type": "LaySpare"}, s, listens).answered[0].event, events.CardUnreadable
    )


def test_the_floor_does_not_lay_cards() -> None:
    listens, s = spare_at("hand", 40)
    with pytest.raises(BadAct, match="the dealer lays the card"):
        taken({"type": "LaySpare"}, s, listens, FLOOR)


def test_no_card_is_laid_that_is_not_due() -> None:
    with pytest.raises(BadAct, match="no card that lies beside the shoe is due"):
        heard({"type": "LaySpare"}, at(Step.TURN))


def test_an_exposed_card_is_the_one_that_the_shoe_read() -> None:
    listens, commitment = hidden(40)
    s = next(s for s in states() if s.step is Step.TURN and s.spare is None and s.hole)
    s = replace(s, spare=Spare(commitment), seen=0)
    with pytest.raises(BadAct, match="the shoe has read another card") as caught:
        taken({"type": "ErrorCardExposed", "card": 41}, s, listens)
    assert "40" not in str(caught.value)
    found = taken({"type": "ErrorCardExposed", "card": 40}, s, listens)
    assert isinstance(found.answered[0].answer, Decision)


def wrong(card: int, s: State, listens: IntakeContext, actor: Actor) -> str:
    """What they are told."""
    with pytest.raises(BadAct) as caught:
        taken({"type": "ErrorCardExposed", "card": card}, s, listens, actor)
    assert isinstance(caught.value, InputRejected)  # so it stands in the record
    return str(caught.value)


def test_nobody_finds_a_card_that_lies_face_down_by_trying() -> None:
    listens, commitment = hidden(40)
    s = next(s for s in states() if s.step is Step.TURN and s.spare is None and s.hole)
    s = replace(s, spare=Spare(commitment), seen=0)
    for card in (41, 42):
        assert "the shoe has read another card than Ann says" in wrong(card, s, listens, DEALER)
    # From here on the right one is not told from a wrong one.
    told = {wrong(card, s, listens, DEALER) for card in range(52)}
    assert told == {
        "Ann is not asked which card it is any more, after wrong ones: the floor says it"
    }
    assert listens.vault.wrong(commitment) == 2
    for card in (41, 43):
        assert "the shoe has read another card than" in wrong(card, s, listens, FLOOR)
    told = {wrong(card, s, listens, FLOOR) for card in range(52)}
    (words,) = told
    assert words.endswith("it stays face down, or the floor voids the round")


def test_the_floor_says_which_card_it_is_after_the_dealer_s_wrong_ones() -> None:
    listens, commitment = hidden(40)
    s = next(s for s in states() if s.step is Step.TURN and s.spare is None and s.hole)
    s = replace(s, spare=Spare(commitment), seen=0)
    for card in (41, 42):
        wrong(card, s, listens, DEALER)
    found = taken({"type": "ErrorCardExposed", "card": 40}, s, listens, FLOOR)
    assert isinstance(found.answered[0].answer, Decision)


@pytest.mark.parametrize(
    ("step", "actor"),
    [(Step.HELD, DEALER), (Step.TURN, Actor("technician", "Tim Vo"))],
    ids=["not now", "not theirs"],
)
def test_the_vault_is_not_asked_which_card_is_beside_the_shoe(step: Step, actor: Actor) -> None:
    """A right guess and a wrong one are refused, and recorded, alike."""
    listens, commitment = hidden(40)
    s = next(s for s in states() if s.step is step)
    s = replace(s, spare=Spare(commitment), seen=0)
    made = [
        taken({"type": "ErrorCardExposed", "card": card}, s, listens, actor) for card in (40, 41)
    ]
    answers = [one.answered[0].answer for one in made]
    assert isinstance(answers[0], Refused)
    assert answers[0] == answers[1]
    assert [len(one.entries) for one in made] == [1, 1]


def test_a_refusal_is_recorded_with_its_reason() -> None:
    found = taken({"type": "Paid"}, at(Step.TURN), ear())
    assert found.entries[0].kind == "refusal"
    assert decode_refusal(as_read(found.entries[0])).why == "no payment is due now"


# --- who says that the cards are shuffled -----------------------------------------------------

SHUFFLED = {"type": "ShuffleDone"}
JAMMED = DeviceFault("shuffler", "SF-1", "jam", "", "cards are stuck")


def with_shuffler() -> IntakeContext:
    return replace(ear(), shuffler=True)


@pytest.mark.parametrize("actor", [DEALER, FLOOR], ids=lambda actor: actor.role)
def test_nobody_passes_over_the_count_of_the_shuffler(actor: Actor) -> None:
    act = read_act(SHUFFLED, actor, with_shuffler())
    for memory in (TableMemory(), TableMemory(shuffling=True)):
        with pytest.raises(BadAct, match="the shuffler counts the cards and says when") as caught:
            act(TableSnapshot(at(Step.SHUFFLING), memory=memory))
        assert isinstance(caught.value, InputRejected)  # so it stands in the record
    assert read_act(SHUFFLED, actor, ear())(
        TableSnapshot(at(Step.SHUFFLING), memory=TableMemory(shuffling=True))
    ).events == (events.ShuffleDone(actor),)


def test_people_shuffle_where_two_of_them_have_taken_the_shuffler_as_it_is() -> None:
    act = read_act(SHUFFLED, DEALER, with_shuffler())
    lost = NO_FAULTS.after((JAMMED,), ())
    stands = TableSnapshot(at(Step.SHUFFLING), lost.accept("shuffler"), TableMemory(shuffling=True))
    assert act(stands).events == (events.ShuffleDone(DEALER),)
    over = replace(stands, faults=stands.faults.after((), (JAMMED,)))
    for faults in (over.faults, lost, devices_away([("shuffler", "SF-1")])):
        with pytest.raises(BadAct):
            act(replace(stands, faults=faults))


def test_people_shuffle_the_discards_unless_the_shuffler_does() -> None:
    act = read_act(SHUFFLED, DEALER, with_shuffler())
    assert act(TableSnapshot(at(Step.REFILL))).events == (events.ShuffleDone(DEALER),)
    with pytest.raises(BadAct, match="the shuffler counts"):
        act(TableSnapshot(at(Step.REFILL), memory=TableMemory(shuffling=True)))


def test_where_nothing_is_shuffled_the_procedure_says_so() -> None:
    listens = with_shuffler()
    for s in (s for s in states() if s.step not in (Step.SHUFFLING, Step.REFILL)):
        answer = taken(SHUFFLED, s, listens).answered[0].answer
        assert isinstance(answer, Refused)
        assert answer.id == "no_shuffle_to_end"
    technician = taken(SHUFFLED, at(Step.SHUFFLING), listens, Actor("technician", "Tim Vo"))
    assert isinstance(technician.answered[0].answer, Refused)
