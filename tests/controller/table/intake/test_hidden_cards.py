"""A card that lies face down shows in nothing: not in what the gateway makes of it, not in what is
recorded, not in a refusal, not in how long any of it is."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.audit.format.hole_cards import NotCommitted, opening
from controller.audit.format.records import encode
from controller.audit.replay import decode_decision
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State, Step
from controller.rules.cards import DECK, VALUE, Card
from controller.rules.hands import is_blackjack
from controller.table.intake import (
    AppliedInput,
    IntakeContext,
    TableInput,
    TableSnapshot,
    card_destination,
    device_input,
)
from controller.table.loop import read_act
from controller.table.memory import CardVault, NotInVault, TableMemory
from drivers.devices import Sealed
from firmware_protocol.messages import CardFlags
from tests.support.table.simulated.serving import DEALER, FLOOR, KEYS, TABLE
from tests.support.table.typed.listening import card, ear, read, source, states, taking

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
    assert decode_decision(encode(taken.entries[0].data)).sealed
    assert taken.entries[0].cursor == source().cursor
    assert taken.entries[1].data == {"what": "ShoeCardRead", "shoe": 7, "pos": 21}
