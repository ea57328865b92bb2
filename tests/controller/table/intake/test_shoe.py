"""What the table makes of two cards pulled together, and of a shoe set to other decks."""

from __future__ import annotations

from controller.procedure.model import events as e
from controller.procedure.model.state import State, Step
from controller.table.intake import TableInput, TableSnapshot, card_destination, device_input
from drivers.devices import DeviceEvent, shoe
from firmware_protocol.messages import CardFlags, DeckKind, ReadWhy
from tests.support.table.typed.listening import ear, origin, source, states


def heard(s: State, told: DeviceEvent) -> TableInput:
    return device_input(ear(), TableSnapshot(s), told, source())


def test_of_two_cards_the_covered_one_may_be_the_first() -> None:
    first = CardFlags.DOUBLE_FEED | CardFlags.CAME_FIRST
    face_up = next(
        s for s in states() if card_destination(s) == "face_up" and s.step is Step.HAND_CARD
    )
    found = heard(face_up, shoe.ReadFailed(origin(), 21, ReadWhy.NO_INDEX, first))
    why = "two cards came out together: this one first, not read"
    assert found.events == (e.CardUnreadable(e.Actor("device", "shoe"), why),)
    assert found.notes[0].data["flags"] == int(first)


def test_a_shoe_that_is_set_to_decks_of_48_cards_is_not_used() -> None:
    """At any step; until it is set and loaded again, as no game is dealt from them."""
    for s in states():
        odd = heard(s, shoe.ShoeLoaded(origin(), 8, 2, 96, 0, DeckKind.SPANISH_48))
        assert odd.wrong[0].cause == "deck_kind"
        for kind in (DeckKind.FULL_52, DeckKind.UNKNOWN):
            found = heard(s, shoe.ShoeLoaded(origin(), 8, 2, 104, 0, kind))
            assert [one.cause for one in found.right] == ["deck_kind"]
            assert "deck_kind" not in [one.cause for one in found.wrong]
