"""What the table knows beside the procedure's state: faults, what it recalls, buttons, the
inventory of a shoe that is closed."""

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from controller.audit.format.records import RecordActor, RecordEntry, encode
from controller.procedure.model import events as e
from controller.procedure.model.effects import DecksOut, Discarded, Told
from controller.procedure.model.events import Actor, Device
from controller.procedure.model.row import Decision
from controller.procedure.model.state import WAITING, State, Step
from controller.rules.cards import DECK
from controller.table.intake import (
    AppliedInput,
    DeviceSettings,
    TableInput,
    TableSnapshot,
    device_input,
    face_down,
)
from controller.table.intake.station import BUTTON_EVENTS, MAX_TOKEN, assign_tokens, open_buttons
from controller.table.memory import (
    EMPTY_MEMORY,
    NO_FAULTS,
    ButtonTokens,
    DeviceFault,
    DeviceFaults,
    SeatButtons,
    SeenCard,
    TableMemory,
    count_loading,
    deck_suspicions,
    memory_from,
    next_report,
)
from controller.table.memory.device_faults import DEVICES
from controller.table.memory.memory import Inventory
from drivers.devices import shoe
from firmware_protocol.messages import ButtonMask, CardFlags, WhichButton
from tests.support.audit.record.dealing import as_read
from tests.support.table.simulated.serving import DEALER, FLOOR, SECOND
from tests.support.table.typed.listening import (
    GAME,
    PROCEDURE,
    card,
    ear,
    hears,
    now,
    origin,
    press,
    source,
    states,
    taking,
)

LINK = DeviceFault("shoe", "SH-1", "link", "", "gone")
JAM = DeviceFault("shoe", "SH-1", "jam", "", "stuck")
LOADED = DeviceFault("shoe", "SH-1", "loaded", "", "cards were put in")


def at(step: Step) -> State:
    return next(s for s in states() if s.step is step and not s.lost and len(s.holds) < 2)


# --- faults ---------------------------------------------------------------------------------


def test_a_device_is_back_when_nothing_is_wrong_with_it_any_more() -> None:
    s = at(Step.TURN)
    both = NO_FAULTS.after((JAM, LINK), ())
    lost = next_report(both, s)
    assert isinstance(lost, e.DeviceLost)
    assert (lost.device, lost.why) == ("shoe", "stuck")
    gone = replace(s, lost=("shoe",))
    assert next_report(both, gone) is None
    one = both.after((), (JAM,))
    assert next_report(one, gone) is None
    back = next_report(one.after((), (LINK,)), gone)
    assert isinstance(back, e.DeviceBack)
    assert back.agrees
    assert next_report(NO_FAULTS, s) is None


def test_what_two_people_accept_is_not_told_again_until_it_comes_anew() -> None:
    s = at(Step.TURN)
    accepted = NO_FAULTS.after((LINK, LOADED), ()).accept("shoe")
    assert accepted.every == (LINK,)  # nobody but people says that cards were not put in
    assert next_report(accepted, s) is None
    assert next_report(accepted.after((LINK,), ()), s) is None  # it is the same one
    assert next_report(accepted.after((JAM,), ()), s) is not None
    assert next_report(accepted.after((LINK,), (LINK,)), s) is not None


def test_people_take_a_device_as_it_is_at_the_table() -> None:
    table = taking(ear())
    lost = table.apply_input(TableSnapshot(at(Step.TURN)), TableInput(wrong=(LINK,))).now
    assert lost.state.step is Step.DEVICE
    taken = table.apply_input(lost, TableInput((e.CountersAccepted(FLOOR, SECOND),)))
    assert isinstance(taken.answered[0].answer, Decision)
    assert (taken.now.state.step, taken.now.state.lost) == (Step.FELT, ())
    assert taken.now.faults.any_of("shoe")
    felt = table.apply_input(taken.now, TableInput((e.FeltConfirmed(DEALER),)))
    assert felt.now.state.step is Step.TURN  # where the floor can void the round, say


@pytest.mark.parametrize("step", WAITING, ids=lambda step: step.value)
def test_whatever_is_lost_and_back_is_taken_at_every_step(step: Step) -> None:
    for s in (s for s in states() if s.step is step):
        for device in DEVICES:
            one = DeviceFault(device, "X-1", "link", "", "gone")
            table = taking(ear())
            lost = table.apply_input(TableSnapshot(s), TableInput(wrong=(one,)))
            back = table.apply_input(lost.now, TableInput(right=(one,)))
            for found in (*lost.answered, *back.answered):
                assert isinstance(found.answer, Decision)
            assert device in lost.now.state.lost
            assert device not in back.now.state.lost


def behind(device: Device, serial: str) -> DeviceFault:
    return DeviceFault(device, serial, "behind", "", f"{serial}: an older copy?")


def lost_behind(applied: AppliedInput) -> list[str]:
    """What was reported as behind; each of it was accepted."""
    assert all(isinstance(one.answer, Decision) for one in applied.answered)
    events = [one.event for one in applied.answered]
    return [one.why for one in events if isinstance(one, e.DeviceLost) and one.behind]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("step", [one for one in WAITING if one is not Step.CLOSED])
def test_a_device_that_is_behind_holds_the_table_although_its_class_is_lost(
    step: Step, device: Device
) -> None:
    """The class is lost in the state of an older copy, or since another one is unplugged."""
    s = replace(next(s for s in states() if s.step is step), lost=(device,))
    unplugged = DeviceFault(device, "X-1", "link", "", "unplugged")
    fault = behind(device, "X-2")
    table = taking(ear())
    for faults in (NO_FAULTS, NO_FAULTS.after((unplugged,), ())):
        held = table.apply_input(TableSnapshot(s, faults), TableInput(wrong=(fault,)))
        assert lost_behind(held) == [fault.why]
        assert (held.now.state.step, held.now.state.lost) == (Step.DEVICE, (device,))
        assert held.now.state.holds[-1].detail == fault.why
        again = table.apply_input(held.now, TableInput(wrong=(fault,)))
        restarted = table.apply_input(TableSnapshot(held.now.state), TableInput(wrong=(fault,)))
        assert (again.answered, restarted.answered) == ((), ())
        more = table.apply_input(held.now, TableInput(wrong=(behind(device, "X-3"),)))
        assert lost_behind(more) == ["X-3: an older copy?"]


def test_the_end_of_one_fault_of_a_class_is_not_the_end_of_the_other() -> None:
    table = taking(ear())
    unplugged = DeviceFault("station", "ST-1", "link", "", "unplugged")
    fault = behind("station", "ST-2")
    s = TableSnapshot(at(Step.TURN))
    held = table.apply_input(s, TableInput(wrong=(unplugged, fault)))
    assert lost_behind(held) == [fault.why]
    still = table.apply_input(held.now, TableInput(right=(unplugged,)))
    assert (still.answered, still.now.state.step) == ((), Step.DEVICE)
    back = table.apply_input(still.now, TableInput(right=(fault,)))
    assert (back.now.state.step, back.now.state.lost) == (Step.FELT, ())
    recurs = table.apply_input(back.now, TableInput(wrong=(fault,)))
    assert lost_behind(recurs) == [fault.why]


def test_what_people_accept_behind_is_not_reported_again() -> None:
    table = taking(ear())
    fault = behind("shuffler", "SF-1")
    s = TableSnapshot(replace(at(Step.TURN), lost=("shuffler",)))
    held = table.apply_input(s, TableInput(wrong=(fault,)))
    taken = table.apply_input(held.now, TableInput((e.CountersAccepted(FLOOR, SECOND),)))
    assert (taken.now.state.step, taken.now.state.lost) == (Step.FELT, ())
    assert lost_behind(taken) == []


def test_a_device_that_is_behind_is_reported_when_the_table_is_opened() -> None:
    table = taking(ear())
    fault = behind("shuffler", "SF-1")
    for lost in ((), ("shuffler",)):
        s = TableSnapshot(replace(at(Step.CLOSED), lost=lost))
        closed = table.apply_input(s, TableInput(wrong=(fault,)))
        assert closed.answered == ()
        opened = table.apply_input(closed.now, TableInput((e.TableOpened(FLOOR, second=SECOND),)))
        assert lost_behind(opened) == [fault.why]
        assert opened.now.state.step is Step.DEVICE


# --- buttons ----------------------------------------------------------------------------------

SEATS = tuple(range(1, 8))
STANDING = dict.fromkeys((1, 2, 3), (("main", 100), ("main", 100)))
HOUSE = DeviceSettings(standing=STANDING)  # type: ignore[arg-type]


def buttons(s: State, seat: int, house: DeviceSettings = HOUSE) -> ButtonMask:
    return open_buttons(GAME, house, PROCEDURE.takes, s, (seat,))[0][1]


def test_exactly_what_the_procedure_takes_is_armed() -> None:
    """Every button of every seat at every state: armed, and it does something; or not, and it
    would not."""
    seen: set[WhichButton] = set()
    for s in states():
        for seat in SEATS:
            mask = buttons(s, seat)
            for button in WhichButton:
                said = BUTTON_EVENTS[button](GAME, HOUSE, s, Actor("player", f"seat-{seat}", seat))
                takes = said is not None and isinstance(PROCEDURE.step(s, said), Decision)
                assert bool(mask >> button & 1) == takes
                seen |= {button} if takes else set()
    assert seen == set(WhichButton) - {WhichButton.SURRENDER}  # which this game has not


def test_a_decision_is_armed_for_the_hand_in_turn_only() -> None:
    deciding = ButtonMask.HIT | ButtonMask.STAND | ButtonMask.DOUBLE | ButtonMask.SPLIT
    for s in states():
        for seat in SEATS:
            in_turn = s.step is Step.TURN and s.hands[s.turn].seat == seat
            assert in_turn or not buttons(s, seat) & deciding
    assert ButtonMask.HIT & buttons(at(Step.TURN), at(Step.TURN).hands[at(Step.TURN).turn].seat)


def armed(now: TableSnapshot, seat: int) -> SeatButtons:
    return next(arm for arm in now.arms.seats if arm.seat == seat)


def test_a_token_stands_for_one_question() -> None:
    masks = [(seat, buttons(at(Step.TURN), seat)) for seat in SEATS]
    first = assign_tokens(ButtonTokens(10), at(Step.TURN), masks)
    assert assign_tokens(first, at(Step.TURN), masks) is first
    nobody = assign_tokens(first, at(Step.REVEAL), ())
    assert nobody.seats == ()
    again = assign_tokens(nobody, at(Step.TURN), masks)
    tokens = {arm.token for arm in first.seats}
    assert tokens.isdisjoint({arm.token for arm in again.seats})
    assert all(0 < token <= MAX_TOKEN for token in tokens)


def test_another_seat_s_wager_does_not_make_a_press_too_late() -> None:
    s = next(s for s in states() if s.step is Step.WAGERING and not s.seats and s.spare is None)
    listens = ear(standing=STANDING)
    table = taking(listens)
    stands = table.with_buttons(TableSnapshot(s))
    mine = armed(stands, 2)
    after = table.apply_input(stands, TableInput((e.WagerPlaced(DEALER, 1, "main", 100),))).now
    assert armed(after, 2).token == mine.token
    found = device_input(listens, after, press(2, WhichButton.BET, mine.token), source("station"))
    assert found.events == (e.WagerPlaced(Actor("player", "seat-2", 2), 2, "main", 100),)


def test_a_press_counts_once_for_its_question() -> None:
    """Late, repeated, chorded: they change nothing and are recorded with their reason."""
    s = next(s for s in states() if s.step is Step.TURN and s.legal & 3 == 3)
    seat = s.hands[s.turn].seat
    listens = ear()
    table = taking(listens, SEATS)
    stands = table.with_buttons(TableSnapshot(s))
    arm = armed(stands, seat)

    def pressed(
        known: TableSnapshot, button: WhichButton, token: int, **more: Any
    ) -> tuple[TableInput, TableSnapshot]:
        heard = device_input(listens, known, press(seat, button, token, **more), source("station"))
        return heard, table.apply_input(known, heard, source("station").cursor).now

    heard, after = pressed(stands, WhichButton.HIT, arm.token)
    assert [type(event) for event in heard.events] == [e.Hit]
    reasons = [
        pressed(after, WhichButton.HIT, arm.token),
        pressed(after, WhichButton.STAND, arm.token),
        pressed(stands, WhichButton.HIT, arm.token + 1),
        pressed(stands, WhichButton.HIT, arm.token, stale=True),
    ]
    for ignored, then in reasons:
        assert (ignored.events, ignored.notes[0].data["ignored"]) == ((), "it came too late")
        assert then.state in (after.state, stands.state)
    ignored, _ = pressed(stands, WhichButton.YES, arm.token)
    assert ignored.notes[0].data["ignored"] == "it is not open to the seat now"


# --- what is recalled -------------------------------------------------------------------------


def seen(pos: int, number: int, back: int = 1) -> dict[str, Any]:
    return {"what": "CardSeen", "pos": pos, "card": number, "back": back}


def test_cards_that_were_seen_and_those_that_were_not() -> None:
    known = EMPTY_MEMORY.after_note({"what": "ShoeLoaded", "shoe": 4, "count": 104})
    known = known.after_note({"what": "ShoeCardRead", "shoe": 4, "pos": 1})
    known = known.after_note(seen(2, 17)).after_note(seen(3, 18))
    known = known.after_note({"what": "CutCardCame", "pos": 4})
    assert (known.loading, known.count, known.last, known.cut, known.back) == (4, 104, 4, True, 1)
    assert known.faces == (SeenCard(2, 17, 1), SeenCard(3, 18, 1))
    back = known.after_note({"what": "CardRetracted", "pos": 3})
    assert (back.faces, back.last) == ((SeenCard(2, 17, 1),), 2)
    fresh = known.after_note({"what": "ShoeLoaded", "shoe": 5, "count": 104})
    assert fresh == TableMemory(loading=5, count=104, former=1)


def test_what_people_know_is_not_told_again() -> None:
    event = e.DeckSuspect(Actor("device", "shoe"), "foreign_back")
    told = (Told("floor", "deck_suspect"),)
    assert EMPTY_MEMORY.after_event(event, told).alarmed == {"foreign_back"}
    twin = TableMemory(twin=True)
    assert twin.after_event(event, told).twin
    drawn = e.CardDrawn(Actor("device", "shoe"), 3)
    assert not twin.after_event(drawn, told).twin  # the procedure has found the duplicate itself


def test_new_decks_begin_anew() -> None:
    known = TableMemory(
        loading=3, back=1, former=2, faces=(SeenCard(1, 2, 1),), alarmed=frozenset({"long"})
    )
    assert known.after_event(e.DecksChanged(FLOOR, SECOND), ()) == TableMemory(loading=3)
    out = known.after_event(e.FloorCalled(FLOOR), (DecksOut(),))
    assert (out.back, out.former) == (0, 0)


def test_a_card_found_face_up_is_waited_for() -> None:
    known = EMPTY_MEMORY.after_event(e.FaceUpCardFound(FLOOR, 3), (Discarded(3),))
    assert known.discarding == 1
    assert known.after_event(e.ShuffleStarted(DEALER), ()).discarding == 0


def test_it_is_made_anew_from_the_record() -> None:
    """As it was at the table, whatever happened."""
    table = taking(ear())
    s = next(s for s in states() if s.step is Step.HAND_CARD and s.spare is None and not s.lost)
    stands, entries = TableSnapshot(s), list[RecordEntry]()
    for number, pos in ((3, 11), (16, 12), (40, 13)):
        taken = hears(table, stands, card(number, pos=pos, back=2))
        stands, entries = taken.now, [*entries, *taken.entries]
    assert memory_from([as_read(one) for one in entries]) == stands.memory
    assert stands.memory.faces


# --- the inventory of a closed shoe -----------------------------------------------------------


def of(*cards: int, count: int = 104, **known: Any) -> TableMemory:
    faces = tuple(SeenCard(pos, number, 1) for pos, number in enumerate(cards, 1))
    whole = {"loading": 4, "count": count, "last": len(cards), "back": 1, **known}
    return TableMemory(faces=faces, **whole)


@pytest.mark.parametrize(
    ("known", "ran_out", "found", "why"),
    [
        (of(3, 3, 16), False, Inventory(4, 3, 3), []),
        (of(3, 3, 3), False, Inventory(4, 3, 3, extra=(3,)), ["duplicate"]),
        (of(3, 3, 3, 3), False, Inventory(4, 4, 4, extra=(3, 3)), ["duplicate"]),
        (of(3, 16, last=5, cut=True), False, Inventory(4, 4, 2), []),
        (of(*DECK, *DECK), True, Inventory(4, 104, 104), []),
        (of(*DECK, *DECK[:50]), True, Inventory(4, 102, 102, missing=2), ["short"]),
        (of(*DECK, *DECK[:50]), False, Inventory(4, 102, 102), []),
        (of(*DECK, *DECK[:50], count=0), True, Inventory(4, 102, 102), []),
        (of(*DECK, *DECK, last=105), False, Inventory(4, 105, 104, beyond=1), ["long"]),
        (of(*DECK, *DECK, last=105, cut=True), False, Inventory(4, 104, 104), []),
    ],
)
def test_the_inventory(known: TableMemory, ran_out: bool, found: Inventory, why: list[str]) -> None:
    assert count_loading(known, 2, ran_out=ran_out) == found
    assert (list(deck_suspicions(found)), found.unseen) == (why, found.out - found.seen)


def test_foreign_backs_are_counted() -> None:
    known = replace(of(3), faces=(SeenCard(1, 3, 1), SeenCard(2, 4, 2), SeenCard(3, 5, 0)), last=3)
    found = count_loading(known, 2, ran_out=False)
    assert (found.foreign, list(deck_suspicions(found))) == (1, ["foreign_back"])


def test_it_is_taken_once_and_when_the_shoe_is_closed() -> None:
    table = taking(ear())
    s = at(Step.SHUFFLE_NEEDED)
    s = replace(s, shoe=replace(s.shoe, decks_out=False))
    stands = TableSnapshot(s, memory=of(3, 3, 3))
    taken = table.apply_input(stands, TableInput((e.ShuffleStarted(DEALER),)))
    assert [one.kind for one in taken.entries] == ["decision", "device", "decision"]
    assert (taken.entries[1].data["what"], taken.entries[1].data["extra"]) == ("ShoeInventory", [3])
    assert taken.now.state.step is Step.HELD
    assert taken.now.memory.closed
    assert taken.now.memory.alarmed == {"duplicate"}
    # Nothing of the kind is reckoned at any other time.
    for one in states():
        for event in (e.Cleared(DEALER), e.FeltConfirmed(DEALER), e.ShuffleCalled(DEALER)):
            found = table.apply_input(TableSnapshot(one, memory=of(3, 3, 3)), TableInput((event,)))
            counted = any(entry.kind == "device" for entry in found.entries)
            closes = one.step is not Step.CLOSED and found.now.state.step is Step.CLOSED
            assert counted == closes


def test_closing_the_table_counts_and_holds_nobody() -> None:
    table = taking(ear())
    s = next(s for s in states() if s.step is Step.WAGERING and not s.seats)
    taken = table.apply_input(
        TableSnapshot(s, memory=of(3, 3, 3)), TableInput((e.TableClosed(FLOOR, 0, SECOND),))
    )
    assert [one.kind for one in taken.entries] == ["decision", "device"]
    assert taken.now.state.step is Step.CLOSED


def test_order_is_looked_at_as_cards_come() -> None:
    listens = ear()
    table = taking(listens)
    s = next(s for s in states() if s.step is Step.HAND_CARD and s.spare is None and not s.lost)
    memory = TableMemory(loading=1, last=6, back=1)
    for pos in range(1, 7):
        memory = memory.with_face(SeenCard(pos, pos + 12, 1))
    stands = TableSnapshot(replace(s, seen=0), memory=memory)
    told = card(7 + 12, pos=7)
    taken = hears(table, stands, told)
    events = [one.event for one in taken.answered]
    assert isinstance(events[-1], e.DeckSuspect)
    assert events[-1].why == "factory_order"
    known = replace(stands, memory=replace(stands.memory, alarmed=frozenset({"factory_order"})))
    found = device_input(listens, known, told, source())
    assert [type(event) for event in found.events] == [e.CardDrawn]
    assert all(one.card + 1 == other.card for one, other in pairwise(memory.faces))


def test_a_reader_s_twin_waits_until_no_card_lies_face_down() -> None:
    table = taking(ear())
    s = next(s for s in states() if s.step is Step.HAND_CARD and s.hole and s.spare is None)
    stands = TableSnapshot(replace(s, seen=0, lost=()))
    taken = hears(table, stands, card(30, flags=CardFlags.DUPLICATE))
    assert [type(one.event) for one in taken.answered] == [e.CardDrawn]
    assert taken.now.memory.twin
    assert b'flags":0' in b"".join(encode(one.data) for one in taken.entries)
    bare = replace(taken.now, state=replace(taken.now.state, hole="", holds=()))
    assert not face_down(bare.state)
    told_now = table.apply_input(bare, TableInput())
    event = told_now.answered[0].event
    assert isinstance(event, e.DeckSuspect)
    assert event.why == "duplicate"
    assert not told_now.now.memory.twin


def test_a_cover_that_is_opened_in_play_is_held_with_its_record() -> None:
    stands = TableSnapshot(at(Step.TURN))
    taken = hears(taking(ear()), stands, shoe.CoverMoved(origin(), True))
    assert [one.kind for one in taken.entries] == ["device", "decision"]
    assert (taken.entries[0].cursor, taken.entries[1].cursor) == (source().cursor, None)
    assert taken.entries[0].by == RecordActor("device", "shoe")
    assert now(at(Step.TURN)).faults == DeviceFaults()
