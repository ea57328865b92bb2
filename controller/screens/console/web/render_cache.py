"""What browsers are shown: made once for each change and each kind of screen, not once for each
who looks; and what was shown lately, so that a press can be held against what it was pressed on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from controller.api.contract.view import View
from controller.api.http import TableApi
from controller.api.service import CachedView, ScreenSession, act_for, dealer_here, signed_in
from controller.procedure.model import events
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import Step
from controller.screens.console.view import Viewer
from controller.table.memory import TableDisplay
from controller.table.running import RunningTable

MAX_STATES: Final = 256
"""Changes that are remembered."""
ANY_TIME: Final[frozenset[type[Event]]] = frozenset({events.FloorCalled})
"""What the dealer may say whatever the prompt is."""


class RenderedPage(NamedTuple):
    """A picture of the table, and the instruction as it is read out."""

    html: str
    say: str


RenderFunction = Callable[[View, Viewer], RenderedPage]


class PageUpdate(Struct, frozen=True):
    """What a page is sent."""

    seq: int
    html: str
    say: str
    controls: bool
    signed: str
    """Who is signed in at the screen, by role."""


class EncodedUpdate(NamedTuple):
    """The same, as it goes over the wire."""

    told: PageUpdate
    event: bytes


class RenderCache:
    """One table's."""

    def __init__(self, api: TableApi, draw: RenderFunction) -> None:
        self._api = api
        self._draw = draw
        self._seen: CachedView | None = None
        self._made: dict[Viewer, EncodedUpdate] = {}

    def here(self, screen: ScreenSession) -> Viewer:
        served = self._api.served
        return Viewer(
            controls=dealer_here(served, screen) is not None,
            tests=signed_in(served, screen, "technician") is not None,
        )

    def now(self, here: Viewer) -> EncodedUpdate:
        """As all stands now."""
        seen = self._api.views.now()
        if seen is not self._seen:
            self._seen, self._made = seen, {}
        found = self._made.get(here)
        if found is None:
            drawn = self._draw(seen.view, here)
            told = PageUpdate(seen.view.seq, drawn.html, drawn.say, here.controls, here.signed)
            found = self._made[here] = EncodedUpdate(told, _event(told))
        return found


def _event(told: PageUpdate) -> bytes:
    return b"event: table\nid: %d\ndata: %s\n\n" % (told.seq, msgspec.json.encode(told))


class ShownState(NamedTuple):
    """What was shown at some time."""

    shown: TableDisplay
    case: str
    """What the table calls the hold that was on."""


class ShownHistory:
    """What was shown, as far back as anybody may still press on it."""

    def __init__(self, table: RunningTable) -> None:
        self._table = table
        self._was: deque[ShownState] = deque(
            (ShownState(table.shown, table.case),), maxlen=MAX_STATES
        )

    def now(self) -> ShownState:
        self.note()
        self._settle()
        return self._was[-1]

    def note(self) -> None:
        """Something may be shown otherwise. To be told of every change."""
        if self._table.shown is not self._was[-1].shown:
            self._settle()
            self._was.append(ShownState(self._table.shown, ""))

    def at(self, seq: int) -> ShownState | None:
        """What was shown then; None where that is too long ago, or was never."""
        self.now()
        return next((one for one in reversed(self._was) if one.shown.seq == seq), None)

    def _settle(self) -> None:
        # A case has its name a moment after it is shown, and before anything else is.
        self._was[-1] = ShownState(self._was[-1].shown, self._table.case)


def still_asked(kind: type[Event] | None, then: ShownState, now: ShownState) -> bool:
    """Whether the dealer would press the same on what is shown now."""
    return kind in ANY_TIME or _asks(then.shown) == _asks(now.shown)


def same_asked(then: ShownState, now: ShownState) -> bool:
    """An act was done and nothing is to be seen of it. A wager is seen where it lies."""
    seen = Step.WAGERING in (then.shown.state.step, now.shown.state.step)
    return not seen and _asks(then.shown) == _asks(now.shown)


def same_case(
    kind: type[Event] | None, sent: Mapping[str, Any], then: ShownState, now: ShownState, game: Game
) -> bool:
    """Whether the floor would sign for the same on what is shown now."""
    if kind is None or then == now:
        return True
    before, after = (act_for(kind, sent, one.shown.state, game, one.case) for one in (then, now))
    return before == after


def _asks(shown: TableDisplay) -> tuple[object, ...]:
    """What is asked, and all that an answer would be about."""
    s = shown.state
    if s.step is Step.WAGERING:  # one seat's wager is not about another one's
        return s.step, s.round, s.holds
    return s.step, s.round, s.turn, s.asked, s.due, s.holds, shown.prompt
