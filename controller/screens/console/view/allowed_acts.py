"""The acts that are allowed now: those that the procedure would accept.

The procedure's step function is asked, with the state of the view. The counts of seen cards, which
the view does not contain, are rebuilt from the face-up cards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack

import msgspec
from msgspec import Struct

from controller.api.contract.view import StateShown, View
from controller.api.service import takes_two
from controller.people import act_of
from controller.procedure.engine import Procedure
from controller.procedure.model.events import Actor, Event
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State
from controller.screens.console.text import HouseTerms
from controller.table.loop import BY_PEOPLE

ActingRole: TypeAlias = Literal["dealer", "floor"]
ButtonLook: TypeAlias = Literal["main", "choice", "quiet", "care"]
FieldKind: TypeAlias = Literal["money", "card", "one", "text", "count"]

_BY_NAME: Final = {kind.__name__: kind for kind in BY_PEOPLE}
_DEALER: Final = Actor("dealer", "who deals")
_FLOOR: Final = Actor("floor", "the floor")
_SECOND: Final = Actor("floor", "a second person")
_MOST_SEEN: Final = 15


class FieldOption(Struct, frozen=True):
    """One allowed value of a field."""

    value: str | int
    label: str
    hint: str = ""


class ActField(Struct, frozen=True):
    """A field of an act that is entered before it is sent."""

    name: str
    kind: FieldKind
    label: str
    options: tuple[FieldOption, ...] = ()
    value: str = ""
    """The initial value."""


class ActButton(Struct, frozen=True):
    """A button: its act, the people who sign, the fields to enter."""

    id: str
    label: str
    act: str
    """The encoded act, without the fields to enter."""
    look: ButtonLook = "main"
    hint: str = ""
    people: int = 0
    """0: the dealer; 1: the floor; 2: the floor and a second person."""
    inputs: tuple[ActField, ...] = ()
    key: str = ""
    """The keyboard shortcut."""
    preferred_key: str = ""
    """The preferred shortcut."""
    confirmation: str = ""
    """The consequence to confirm before it is sent; empty: no confirmation."""

    @property
    def inputs_json(self) -> str:
        """The fields, encoded for the page's script."""
        return msgspec.json.encode(self.inputs).decode()


class ButtonOptions(TypedDict, total=False):
    """Optional properties of a button."""

    label: str
    """If it is not the text of the act."""
    tail: str
    """The end of its id, if several buttons send the same act."""
    look: ButtonLook
    hint: str
    inputs: tuple[ActField, ...]
    preferred_key: str
    confirmation: str


class AllowedActs:
    """The acts that the procedure accepts in the state of a view."""

    def __init__(self, view: View, game: Game, terms: HouseTerms) -> None:
        self.view = view
        self._texts = terms.texts
        self.game = game
        self.state = state_of(view.state)
        self._procedure = _procedure(game)

    def dealers(self, name: str) -> bool:
        """Whether the game lets the dealer bring this event."""
        return "dealer" in self.game.who[_BY_NAME[name]]

    def takes(self, name: str, fields: Mapping[str, Any], who: ActingRole) -> bool:
        event = _event(_BY_NAME[name], name, fields, who)
        return isinstance(self._procedure.step(self.state, event), Decision)

    def seats(self, name: str, among: Iterable[int]) -> tuple[int, ...]:
        """Returns the seats for which the dealer's act is accepted."""
        return tuple(seat for seat in among if self.takes(name, {"seat": seat}, "dealer"))

    def people(self, name: str, fields: Mapping[str, Any]) -> int:
        """Returns how many people sign for an act of the floor."""
        kind = _BY_NAME[name]
        two = takes_two(kind, {"type": name, **fields}, self.state, self.game)
        return 2 if act_of(kind, two=two).two else 1

    def offer(
        self,
        name: str,
        fields: Mapping[str, Any] | None = None,
        *,
        who: ActingRole = "dealer",
        sample: Mapping[str, Any] | None = None,
        **trim: Unpack[ButtonOptions],
    ) -> tuple[ActButton, ...]:
        """Returns the button if the act is accepted. `sample`: values for the fields to enter."""
        fields = fields or {}
        if not self.takes(name, {**fields, **(sample or {})}, who):
            return ()
        people = self.people(name, fields) if who == "floor" else 0
        return (self.button(name, fields, people=people, **trim),)

    def button(
        self,
        name: str,
        fields: Mapping[str, Any] | None = None,
        *,
        people: int = 0,
        **trim: Unpack[ButtonOptions],
    ) -> ActButton:
        """Returns the button without checking the act."""
        act = msgspec.json.encode({"type": name, **(fields or {})}).decode()
        return ActButton(
            "-".join(filter(None, ("act", name.lower(), trim.get("tail", "")))),
            trim.get("label") or self._texts(f"console.do.{name}"),
            act,
            trim.get("look", "main"),
            trim.get("hint", ""),
            people,
            trim.get("inputs", ()),
            preferred_key=trim.get("preferred_key", ""),
            confirmation=trim.get("confirmation", ""),
        )


def _event(kind: type[Event], name: str, fields: Mapping[str, Any], who: ActingRole) -> Event:
    actor = _DEALER if who == "dealer" else _FLOOR
    said = {"type": name, **fields, "actor": msgspec.to_builtins(actor)}
    if who == "floor" and "second" in kind.__struct_fields__:
        said["second"] = msgspec.to_builtins(_SECOND)
    return msgspec.convert(said, kind)


@lru_cache(maxsize=8)
def _procedure(game: Game) -> Procedure:
    return Procedure(game)


def state_of(shown: StateShown) -> State:
    """Returns the state that a view shows."""
    known = {name: getattr(shown, name) for name in shown.__struct_fields__}
    return State(**known, seen=_seen(shown))


def _seen(shown: StateShown) -> int:
    """Returns the counts of the face-up cards."""
    cards = [*shown.dealer, *(card for hand in shown.hands for card in hand.cards)]
    if shown.spare is not None and shown.spare.card >= 0:
        cards.append(shown.spare.card)
    seen = 0
    for card in cards:
        if (seen >> 4 * card) & _MOST_SEEN < _MOST_SEEN:
            seen += 1 << 4 * card
    return seen
