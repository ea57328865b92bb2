"""What devices tell, at every step: what it is to the procedure, and what is recorded of it. A
card that lies face down shows in nothing of that, not even in how long any of it is."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.audit.format.hole_cards import NotCommitted, opening
from controller.audit.format.records import encode
from controller.audit.replay import decode_decision
from controller.procedure.model import events as e
from controller.procedure.model.felt import discards
from controller.procedure.model.holds import BEFORE, stopped_at
from controller.procedure.model.row import Decision
from controller.procedure.model.state import WAITING, Hold, State, Step
from controller.rules.cards import DECK, VALUE, Card
from controller.rules.hands import is_blackjack
from controller.rules.irregularities import Irregularity as Odd
from controller.table.intake import (
    AppliedInput,
    IntakeContext,
    TableInput,
    TableSnapshot,
    card_destination,
    device_input,
)
from controller.table.intake.apply import READERS
from controller.table.intake.context import SHUFFLER
from controller.table.loop import read_act
from controller.table.memory import CardVault, NotInVault, TableMemory
from controller.table.memory.device_faults import DEVICES
from drivers.devices import DeviceEvent, Faulted, Sealed, Tampered, shoe, shuffler, station
from drivers.devices import events as device_events
from firmware_protocol.messages import (
    CardFlags,
    FaultCode,
    JamCode,
    ReadWhy,
    TamperSource,
)
from tests.support.audit.record.dealing import as_read
from tests.support.table.simulated.serving import DEALER, FLOOR, KEYS, TABLE
from tests.support.table.typed.listening import (
    GAME,
    card,
    ear,
    everything,
    hears,
    now,
    origin,
    read,
    source,
    states,
    taking,
    unread,
)

NOTHING = (Step.CLOSED, Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING, Step.REFILL)
BURNS = (Step.BURNING, Step.RELIEF_BURN)
FACE_UP = (Step.HAND_CARD, Step.DEALER_CARD, Step.DEALER_LATE)
MUST_BE_TAKEN = (
    e.CardDrawn,
    e.CardBurned,
    e.HoleDealt,
    e.ErrorCardDrawn,
    e.CardUnreadable,
    e.UnknownCardDrawn,
    e.DeckSuspect,
    e.ShuffleDone,
    e.DeviceLost,
    e.DeviceBack,
)


def heard(s: State, told: DeviceEvent, **known: object) -> TableInput:
    return device_input(ear(), TableSnapshot(s, **known), told, source())  # type: ignore[arg-type]


def kinds(found: TableInput) -> list[type[object]]:
    return [type(event) for event in found.events]


def at(step: Step) -> list[State]:
    return [s for s in states() if s.step is step]


# --- a card, wherever the table stands --------------------------------------------------------


def wanted(s: State) -> list[type[object]]:
    """What a card is to the procedure at this state, said a second time."""
    spare = s.spare is not None
    if s.step in NOTHING:
        return []
    if s.step in BURNS:
        return [e.CardBurned]
    if s.step is Step.WAGERING:
        return [e.CardDrawn] if s.seats and not spare else [e.ErrorCardDrawn]
    if s.step is Step.DEALING and s.places[s.dealt].kind == "hole":
        hidden = spare and s.spare is not None and s.spare.card < 0
        return [e.CardUnreadable] if hidden else [e.HoleDealt]
    if s.step is Step.DEALING or s.step in FACE_UP:
        return [e.CardDrawn]
    return [e.ErrorCardDrawn]


@pytest.mark.parametrize("step", WAITING, ids=lambda step: step.value)
def test_a_card_at_every_step(step: Step) -> None:
    assert at(step)
    for s in at(step):
        assert kinds(heard(s, card(30))) == wanted(s), s


@pytest.mark.parametrize("step", WAITING, ids=lambda step: step.value)
def test_a_card_that_is_not_read_at_every_step(step: Step) -> None:
    for s in at(step):
        place = card_destination(s)
        assert kinds(heard(s, unread())) == {
            "nothing": [],
            "burn": [e.CardBurned],
            "error": [e.UnknownCardDrawn],
        }.get(place, [e.CardUnreadable]), s


def test_whatever_a_device_tells_is_taken_and_recorded() -> None:
    """Nothing raises, nothing of a card is refused, and each has exactly one cursor."""
    for s in states():
        table = taking(ear())
        stands = table.with_buttons(TableSnapshot(s))
        for device, told in everything():
            taken = hears(table, stands, told, device)
            assert taken.entries, told
            cursors = [one.cursor for one in taken.entries if one.cursor is not None]
            assert cursors == [source(device).cursor]
            for one in taken.answered:
                if isinstance(one.event, MUST_BE_TAKEN):
                    assert isinstance(one.answer, Decision), (s, one)


def test_of_other_events_the_record_alone_takes_note() -> None:
    types = {
        kind
        for module in (shoe, shuffler, station, device_events)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, DeviceEvent) and kind is not DeviceEvent
    }
    assert types - set(READERS) == {
        device_events.Started,
        device_events.RingFilling,
        device_events.HostPaired,
        shuffler.ShuffleProgressed,
        station.ButtonReleased,
        station.ButtonStuck,
        station.LampBroken,
    }


# --- cards in particular ----------------------------------------------------------------------


FIRST = CardFlags.DOUBLE_FEED | CardFlags.CAME_FIRST
SECOND = CardFlags.DOUBLE_FEED | CardFlags.CAME_SECOND


def a_place_face_up() -> State:
    return next(
        s for s in states() if card_destination(s) == "face_up" and s.step is Step.HAND_CARD
    )


@pytest.mark.parametrize(
    ("fields", "kind", "why"),
    [
        ({"confidence": 79}, e.CardUnreadable, "79 %"),
        ({"flags": CardFlags.DOUBLE_FEED}, e.CardUnreadable, "two cards came out together"),
        ({"flags": FIRST}, e.CardUnreadable, "two cards came out together: this one first"),
        ({"flags": SECOND}, e.CardUnreadable, "two cards came out together: this one second"),
        ({"confidence": 80}, e.CardDrawn, ""),
        ({"flags": CardFlags.REVERSED}, e.CardDrawn, ""),
    ],
)
def test_a_card_that_is_not_sure_is_entered_by_people(
    fields: dict[str, object], kind: type[object], why: str
) -> None:
    found = heard(a_place_face_up(), card(30, **fields))
    assert kinds(found) == [kind]
    assert why in getattr(found.events[0], "why", "")


def test_a_foreign_back_is_suspect_after_the_card_is_on_its_place() -> None:
    s = a_place_face_up()
    own = heard(s, card(30, back=2), memory=TableMemory(back=2))
    other = heard(s, card(30, back=3), memory=TableMemory(back=2))
    known = heard(
        s, card(30, back=3), memory=TableMemory(back=2, alarmed=frozenset({"foreign_back"}))
    )
    assert kinds(own) == [e.CardDrawn]
    assert kinds(other) == [e.CardDrawn, e.DeckSuspect]
    assert kinds(known) == [e.CardDrawn]
    assert kinds(heard(s, unread(ReadWhy.FOREIGN))) == [e.CardUnreadable, e.DeckSuspect]


def test_batches_of_two_backs_alternate() -> None:
    assert not TableMemory(former=1).foreign(2, (1, 2))
    assert TableMemory(former=1).foreign(1, (1, 2))
    assert TableMemory().foreign(3, (1, 2))
    assert not TableMemory(former=1).foreign(1, (1,))
    assert not TableMemory(former=1).foreign(0, (1, 2))


def test_a_card_found_face_up_is_pulled_out_and_not_used() -> None:
    found = heard(a_place_face_up(), card(30), memory=TableMemory(discarding=1))
    assert found.events == ()
    assert found.notes[0].data == {"what": "ShoeCardRead", "shoe": 7, "pos": 21, "discarded": True}
    assert TableMemory(discarding=1).after_note(found.notes[0].data).discarding == 0


# --- the shoe ---------------------------------------------------------------------------------


@pytest.mark.parametrize("step", WAITING, ids=lambda step: step.value)
def test_cards_put_in(step: Step) -> None:
    for s in at(step):
        found = heard(s, shoe.ShoeLoaded(origin(), 8, 2, 104, 0))
        if step in (Step.LOADING, Step.REFILL):
            assert found.events == (e.ShoeLoaded(e.Actor("device", "shoe"), 104),)
        else:
            assert found.events == ()
            assert [one.cause for one in found.wrong] == ([] if step in NOTHING else ["loaded"])


@pytest.mark.parametrize("step", WAITING, ids=lambda step: step.value)
def test_batches_take_turns_with_each_shuffle_of_all_cards(step: Step) -> None:
    """What is put in while a shoe is in play, or in a round whose shoe ran out, has the same backs
    and comes after the same batch."""
    known = TableMemory(loading=7, back=2, former=1)
    for s in at(step):
        found = heard(s, shoe.ShoeLoaded(origin(), 8, 2, 104, 0), memory=known)
        again = stopped_at(s) not in (Step.CLOSED, *BEFORE)
        after = known.after_note(found.notes[0].data)
        assert (after.loading, after.again) == (8, again)
        assert (after.back, after.former) == ((2, 1) if again else (0, 2))
        assert after.foreign(1, (1, 2)) == again
        assert after.foreign(2, (1, 2)) != again


def test_a_shoe_that_does_not_count_leaves_it_to_the_dealer() -> None:
    assert heard(at(Step.LOADING)[0], shoe.ShoeLoaded(origin(), 8, 2, 0, 0)).events == ()


@pytest.mark.parametrize("step", WAITING, ids=lambda step: step.value)
def test_an_open_cover(step: Step) -> None:
    for s in at(step):
        opened = heard(s, shoe.CoverMoved(origin(), True))
        closed = heard(s, shoe.CoverMoved(origin(), False))
        assert bool(opened.wrong) == (step not in NOTHING)
        assert [one.cause for one in closed.right] == ["cover"]


def test_a_jam_and_its_end() -> None:
    s = a_place_face_up()
    stuck = heard(s, shoe.ShoeJammed(origin(), JamCode.EXIT_BLOCKED))
    assert stuck.wrong[0].why == "a card is stuck (exit_blocked)"
    assert heard(s, shoe.ShoeJammed(origin(), JamCode.CLEARED)).right[0].cause == "jam"


def test_a_card_that_goes_back_is_looked_for() -> None:
    assert heard(a_place_face_up(), shoe.CardRetracted(origin(), 4)).wrong[0].cause == "retracted"
    assert heard(at(Step.CLOSED)[0], shoe.CardRetracted(origin(), 4)).wrong == ()


# --- the shuffler -----------------------------------------------------------------------------

DONE = shuffler.ShuffleDone(origin(), 1, 104, 0, 0, True)


def test_a_shuffle_begun_at_the_machine() -> None:
    started = shuffler.ShuffleStarted(origin(), 1, 2)
    assert kinds(heard(at(Step.SHUFFLE_NEEDED)[0], started)) == [e.ShuffleStarted]
    assert kinds(heard(at(Step.SHUFFLING)[0], started)) == []
    assert kinds(heard(at(Step.TURN)[0], started)) == []


@pytest.mark.parametrize(
    ("told", "missing", "extra"),
    [
        (DONE, 0, 0),
        (shuffler.ShuffleDone(origin(), 1, 103, 0, 0, True), 1, 0),
        (shuffler.ShuffleDone(origin(), 1, 105, 0, 0, True), 0, 1),
        (shuffler.ShuffleDone(origin(), 1, 104, 1, 1, True), 1, 1),
        (shuffler.CountWrong(origin(), 104, 103), 1, 0),
        (shuffler.CountWrong(origin(), 104, 106), 0, 2),
        (shuffler.CountWrong(origin(), 312, 104), 208, 0),
    ],
)
def test_the_count_of_a_shuffle(told: DeviceEvent, missing: int, extra: int) -> None:
    found = heard(at(Step.SHUFFLING)[0], told)
    assert found.events == (e.ShuffleDone(e.Actor("device", "shuffler"), missing, extra),)


SHORT = shuffler.CountWrong(origin(), 104, 103)
LATE = (
    (DONE, ""),
    (SHORT, "short"),
    (shuffler.CountWrong(origin(), 104, 105), "long"),
    (shuffler.ShuffleDone(origin(), 1, 103, 0, 0, True), "short"),
    (shuffler.ShuffleDone(origin(), 1, 104, 0, 2, True), "long"),
    (shuffler.ShuffleDone(origin(), 1, 104, 1, 1, True), "short"),
)


@pytest.mark.parametrize("step", WAITING, ids=lambda step: step.value)
def test_a_count_that_comes_too_late_is_a_doubt_about_the_decks(step: Step) -> None:
    """The cards that were counted are in the shoe, or on the way there; without any they are
    counted anew."""
    for s in at(step):
        waits = stopped_at(s)
        if s.step in (Step.SHUFFLING, Step.REFILL) or waits is Step.REFILL:
            continue
        for told, why in LATE:
            doubt = why and waits not in (Step.CLOSED, Step.SHUFFLE_NEEDED)
            found = heard(s, told)
            assert found.events == ((e.DeckSuspect(SHUFFLER, why),) if doubt else ())  # type: ignore[arg-type]
            assert [one.data["what"] for one in found.notes] == [type(told).__name__]


def test_a_late_count_of_discards_is_held_against_those_that_were_loaded() -> None:
    s, again = at(Step.TURN)[0], TableMemory(again=True, count=90)
    for count, why in ((90, ""), (89, "short"), (91, "long")):
        for told in (
            shuffler.CountWrong(origin(), 104, count),
            shuffler.ShuffleDone(origin(), 1, count, 104 - count, 0, True),
        ):
            events = heard(s, told, memory=again).events
            assert events == ((e.DeckSuspect(SHUFFLER, why),) if why else ())  # type: ignore[arg-type]
    unknown = TableMemory(again=True)  # loaded by a shoe that does not count
    assert heard(s, SHORT, memory=unknown).events == ()
    assert heard(at(Step.LOADING)[0], SHORT, memory=again).events != ()  # all cards, once more


def test_a_shuffle_whose_random_numbers_failed_is_none() -> None:
    found = heard(at(Step.SHUFFLING)[0], shuffler.ShuffleDone(origin(), 1, 104, 0, 0, False))
    assert (found.events, found.wrong[0].cause) == ((), "random")


def test_a_door_is_in_the_way_of_a_shuffle_that_has_begun() -> None:
    s, opened = at(Step.SHUFFLING)[0], shuffler.DoorMoved(origin(), True)
    assert heard(s, opened).wrong == ()  # the cards are being put in
    assert heard(s, opened, memory=TableMemory(shuffling=True)).wrong[0].cause == "door"
    assert heard(at(Step.TURN)[0], opened, memory=TableMemory(shuffling=True)).wrong == ()
    assert heard(s, shuffler.DoorMoved(origin(), False)).right[0].cause == "door"


def test_discards_are_counted_without_the_cards_on_the_felt() -> None:
    s = at(Step.REFILL)[0]
    count = GAME.decks * 52
    assert heard(s, DONE).events[0] != e.ShuffleDone(e.Actor("device", "shuffler"))
    right = shuffler.ShuffleDone(origin(), 1, discards(GAME, s), count, 0, True)
    assert heard(s, right).events == (e.ShuffleDone(e.Actor("device", "shuffler")),)
    assert heard(s, shuffler.CountWrong(origin(), count, discards(GAME, s))).events == ()
    short = heard(s, shuffler.CountWrong(origin(), count, discards(GAME, s) - 1))
    assert short.events == (e.ShuffleDone(e.Actor("device", "shuffler"), 1),)


def test_discards_are_counted_while_the_floor_is_called_too() -> None:
    refill = at(Step.REFILL)[0]
    s = replace(refill, step=Step.HELD, holds=(*refill.holds, Hold(Odd.FLOOR_CALLED, Step.REFILL)))
    for count, why in ((discards(GAME, s), ""), (discards(GAME, s) - 1, "short")):
        events = heard(s, shuffler.CountWrong(origin(), 104, count)).events
        assert events == ((e.DeckSuspect(SHUFFLER, why),) if why else ())  # type: ignore[arg-type]


# --- faults -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", FaultCode, ids=lambda code: code.name.lower())
def test_faults(code: FaultCode) -> None:
    s = at(Step.SHUFFLING)[0]
    harmless = (FaultCode.NONE, FaultCode.LAMPS, FaultCode.CLOCK, FaultCode.READER_DIRTY)
    for device in DEVICES:
        told = Faulted(origin(), code, 1)
        found = device_input(ear(), TableSnapshot(s), told, source(device))
        stops = device != "station" and code not in harmless
        assert bool(found.wrong) == stops


def test_tampering_is_over_source_by_source() -> None:
    table = taking(ear())
    stands = TableSnapshot(a_place_face_up())
    for where in (TamperSource.CASE, TamperSource.SEAL):
        stands = hears(table, stands, Tampered(origin(), where, True)).now
    assert stands.state.step is Step.DEVICE
    stands = hears(table, stands, Tampered(origin(), TamperSource.CASE, False)).now
    assert stands.state.step is Step.DEVICE
    stands = hears(table, stands, Tampered(origin(), TamperSource.SEAL, False)).now
    assert stands.state.step is Step.FELT


def test_now_has_its_buttons() -> None:
    assert any(now(s).arms.seats for s in at(Step.TURN))


# --- a card that lies face down -------------------------------------------------------------------


COMMITMENT = re.compile(rb"[0-9a-f]{64}")
SEALED = re.compile(rb"[A-Za-z0-9+/]{139}=")
odd = st.fixed_dictionaries(
    {
        "confidence": st.integers(0, 100),
        "alternative": st.sampled_from((*DECK, 0x40, 0xFE)),
        "flags": st.sampled_from([CardFlags(bits) for bits in range(8)]),
        "back": st.integers(0, 255),
    }
)


def hidden_places() -> dict[str, State]:
    """A state for each way in which a card may come that nobody sees."""
    found: dict[str, State] = {}
    for s in states():
        place = card_destination(s)
        if place != "face_up":
            found.setdefault(f"{place} at {s.step.value}", s)
    return found


PLACES = hidden_places()


def told(
    listens: IntakeContext, s: State, number: Card, **fields: object
) -> tuple[TableInput, AppliedInput]:
    stands = TableSnapshot(s)
    heard = device_input(listens, stands, card(number, **fields), source())
    return heard, taking(listens).apply_input(stands, heard, source().cursor)


def shows(heard: TableInput, taken: AppliedInput) -> list[bytes]:
    """All that can be read of it, with what binds and seals the card taken out."""
    texts = [encode(one.data) for one in taken.entries]
    for thing in (heard, taken, taken.entries, taken.now):
        texts += [repr(thing).encode(), str(thing).encode()]
    return [SEALED.sub(b"S", COMMITMENT.sub(b"C", text)) for text in texts]


@pytest.mark.parametrize("place", PLACES)
def test_every_card_looks_the_same(place: str) -> None:
    s = PLACES[place]
    first = told(ear(), s, 0)
    for number in DECK:
        found = told(ear(), s, number)
        assert shows(*found) == shows(*first)
        assert [len(encode(one.data)) for one in found[1].entries] == [
            len(encode(one.data)) for one in first[1].entries
        ]
        assert all(isinstance(one.answer, Decision) for one in found[1].answered)


@given(number=st.sampled_from(DECK), fields=odd, place=st.sampled_from(sorted(PLACES)))
def test_whatever_is_odd_about_it(number: Card, fields: dict[str, object], place: str) -> None:
    s = PLACES[place]
    found = told(ear(), s, number, **fields)
    assert shows(*found) == shows(*told(ear(), s, 0))
    body = read(number, **fields).encode()
    opened = opening(KEYS.hole, source().cursor, Sealed(read(number, **fields))).open()
    for one in found[1].entries:
        data = encode(one.data)
        for secret in (body, opened, read(number, **fields).salt):
            assert secret not in data
            assert secret.hex().encode() not in data


def test_a_card_that_is_pulled_out_shows_nothing_either() -> None:
    """Whoever said that it lies face up may have been wrong."""
    stands = TableSnapshot(PLACES["hole at dealing"], memory=TableMemory(discarding=1))
    heard = [device_input(ear(), stands, card(number), source()) for number in DECK]
    assert len({repr(one) for one in heard}) == 1


# --- acts before their time, or by somebody who may not ---------------------------------------


def with_hole(s: State, number: Card) -> tuple[IntakeContext, State]:
    """The state with this card as its hole card, in the vault."""
    listens = ear()
    bound = listens.vault.put(source().cursor, Sealed(read(number)))
    return listens, replace(s, hole=bound.commitment_hex)


def steps_with_a_hole() -> list[State]:
    found: dict[Step, State] = {}
    for s in states():
        if s.hole:
            found.setdefault(s.step, s)
    return list(found.values())


def done(listens: IntakeContext, s: State, name: str, actor: object = DEALER) -> AppliedInput:
    make = read_act({"type": name}, actor, listens)  # type: ignore[arg-type]
    return taking(listens).apply_input(TableSnapshot(s), make(TableSnapshot(s)))


@pytest.mark.parametrize("actor", [DEALER, FLOOR], ids=["dealer", "floor"])
@pytest.mark.parametrize("name", ["CheckHole", "RevealHole"])
def test_what_is_asked_before_its_time_is_refused_alike(name: str, actor: object) -> None:
    due = Step.CHECK if name == "CheckHole" else Step.REVEAL
    tried = 0
    for s in steps_with_a_hole():
        if s.step is due and actor is DEALER:
            continue
        tried += 1
        entries = set()
        for number in DECK:
            listens, at = with_hole(s, number)
            taken = done(listens, at, name, actor)
            assert not isinstance(taken.answered[0].answer, Decision)
            entries.add(tuple(encode(one.data) for one in taken.entries))
        assert len(entries) == 1
    assert tried > 5


def test_the_check_tells_one_bit() -> None:
    s = next(s for s in states() if s.step is Step.CHECK)
    answers: dict[bool, set[bytes]] = {True: set(), False: set()}
    for number in DECK:
        listens, at = with_hole(s, number)
        taken = done(listens, at, "CheckHole")
        made = b"".join(encode(one.data) for one in taken.entries)
        answers[is_blackjack(s.dealer[0], number)].add(made)
    assert [len(answers[bit]) for bit in (True, False)] == [1, 1]


# --- the vault --------------------------------------------------------------------------------


def test_the_check_is_that_of_the_rules() -> None:
    vault = CardVault(TABLE, KEYS.hole, KEYS.surveillance)
    for number in DECK:
        bound = vault.put(source().cursor, Sealed(read(number)))
        for up in DECK:
            said = vault.makes_blackjack(bound.commitment_hex, VALUE[up])
            assert said == is_blackjack(up, number)


def test_a_card_is_given_up_with_what_opens_its_commitment() -> None:
    vault = CardVault(TABLE, KEYS.hole, KEYS.surveillance)
    bound = vault.put(source().cursor, Sealed(read(40)))
    number, opened = vault.reveal(bound.commitment_hex)
    assert number == 40
    assert opened == opening(KEYS.hole, source().cursor, Sealed(read(40))).open().hex()
    assert repr(vault) == "CardVault(1 face down)"
    vault.forget(frozenset({bound.commitment_hex}))
    assert vault.has(bound.commitment_hex)
    vault.forget()
    for ask in (vault.reveal, vault.read, vault.card, vault.cursor):
        with pytest.raises(NotInVault):
            _call(ask, bound.commitment_hex)


def _call(ask: Callable[[str], object], commitment: str) -> object:
    return ask(commitment)


def test_a_card_that_is_told_again_is_the_same_one_or_none() -> None:
    vault = CardVault(TABLE, KEYS.hole, KEYS.surveillance)
    bound = vault.put(source().cursor, Sealed(read(40)))
    vault.forget()
    with pytest.raises(NotCommitted):
        vault.put_again(source().cursor, Sealed(read(41)), bound.commitment_hex)
    with pytest.raises(NotCommitted):
        vault.put_again(source("shoe", 10).cursor, Sealed(read(40)), bound.commitment_hex)
    assert not vault.has(bound.commitment_hex)
    vault.put_again(source().cursor, Sealed(read(40)), bound.commitment_hex)
    assert vault.reveal(bound.commitment_hex)[0] == 40


def test_a_card_face_down_is_recorded_with_what_seals_it() -> None:
    _, taken = told(ear(), PLACES["hole at dealing"], 12)
    assert decode_decision(as_read(taken.entries[0])).sealed
    assert taken.entries[0].cursor == source().cursor
    assert taken.entries[1].data == {"what": "ShoeCardRead", "shoe": 7, "pos": 21}
