"""The status line and the alerts: links, record, clock, shoe, dealer, irregularities."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from controller.api.contract.view import DeviceShown, View
from controller.procedure.model.game import Game
from controller.procedure.model.state import Hold, Step
from controller.procedure.prompts import is_last_round
from controller.screens.console.text import READY, HouseTerms
from controller.screens.console.view.allowed_acts import state_of
from controller.screens.console.view.buttons import capital

ROLES: Final = ("dealer", "technician")
"""Roles that sign in at a console."""


class Viewer(Struct, frozen=True):
    controls: bool
    """The dealer is signed in at this screen."""
    tests: bool = False
    """A technician is signed in at this screen."""

    @property
    def signed(self) -> str:
        """The signed-in roles."""
        there = zip(ROLES, (self.controls, self.tests), strict=True)
        return " ".join(role for role, here in there if here)


Mark: TypeAlias = Literal["good", "care", "alarm"]


class StatusLine(Struct, frozen=True):
    id: str
    name: str
    said: str
    mark: Mark
    more: str = ""


class TableStatus(Struct, frozen=True):
    table: str
    game: str
    round: str
    lines: tuple[StatusLine, ...]
    dealer: str
    watching: str
    """Why this screen cannot act; empty if it can."""


def status_of(view: View, game: Game, here: Viewer, terms: HouseTerms) -> TableStatus:
    texts = terms.texts
    number = view.state.round
    return TableStatus(
        view.table,
        view.title,
        texts("console.status.round", round=number) if number else "",
        (
            _shoe(view, game, terms),
            *link_lines(view, terms),
            _record(view, terms),
            _clock(view, terms),
        ),
        _dealer(view, here, terms),
        _watching(view, here, terms),
    )


def _dealer(view: View, here: Viewer, t: HouseTerms) -> str:
    dealer = view.dealer
    if dealer is None:
        return t.texts("console.status.nobody")
    if here.controls:
        return t.texts("console.status.deals_here", name=dealer.name)
    return t.texts("console.status.deals", name=dealer.name, screen=dealer.screen)


def _watching(view: View, here: Viewer, t: HouseTerms) -> str:
    if here.controls:
        return ""
    if view.dealer is None:
        return t.texts("console.status.sign_in_first")
    return t.texts("console.status.watching", name=view.dealer.name, screen=view.dealer.screen)


def link_lines(view: View, t: HouseTerms) -> tuple[StatusLine, ...]:
    """One line for a device; several of a kind are counted, and the faulty ones named."""
    kinds = dict.fromkeys(one.device for one in view.devices)
    by_kind = ([one for one in view.devices if one.device == kind] for kind in kinds)
    return tuple(line for these in by_kind for line in _links(these, t))


def _links(these: Sequence[DeviceShown], t: HouseTerms) -> tuple[StatusLine, ...]:
    kind = these[0].device
    name = t.texts(f"console.device.{kind}")
    if len(these) == 1:
        return (_link(these[0], name, t),)
    wrong = tuple(_link(one, one.serial, t) for one in these if _state(one) != READY)
    ready = len(these) - len(wrong)
    said = t.texts("console.status.of", ready=ready, count=len(these))
    mark: Mark = "alarm" if any(one.mark == "alarm" for one in wrong) else "care"
    # If none is ready, a line for each would say no more.
    return (
        StatusLine(f"links-{kind}", name, said, mark if wrong else "good"),
        *(wrong if ready else ()),
    )


def _state(one: DeviceShown) -> str:
    return "held" if one.held else one.state


def _link(one: DeviceShown, name: str, t: HouseTerms) -> StatusLine:
    state = _state(one)
    mark: Mark = "good" if state == READY else "alarm"
    if state in ("opening", "identifying", "handshaking", "resuming", "held"):
        mark = "care"
    said, more = t.linked(state, state), one.why
    if one.held:
        more = t.linked(f"held_{one.held}", one.held)
    return StatusLine(f"link-{one.serial.lower()}", name, said, mark, more)


def _record(view: View, t: HouseTerms) -> StatusLine:
    name = t.texts("console.status.record")
    if view.stopped:
        return StatusLine("record", name, t.texts("console.status.stopped"), "alarm", view.stopped)
    if view.record.full:
        return StatusLine("record", name, _room(view, t), "care", view.record.full)
    return StatusLine("record", name, *_seen(view, t))


def _seen(view: View, t: HouseTerms) -> tuple[str, Mark]:
    """The position of the record, and since when it has no cosignature."""
    record = view.record
    if not record.unwitnessed:
        return str(record.seq), "good"
    if not record.witnessed:
        return t.texts("console.status.never_witnessed", seq=record.seq), "care"
    since = _when(record.unwitnessed, view.clock.utc)
    return t.texts("console.status.unwitnessed", seq=record.seq, since=since), "care"


def _room(view: View, t: HouseTerms) -> str:
    """How much play the full disk leaves."""
    hours, minutes = divmod(view.record.minutes, 60)
    if not view.record.minutes:
        return t.texts("console.status.disk_full_soon")
    return t.texts("console.status.disk_full", hours=hours, minutes=f"{minutes:02}")


def _when(utc: int, now: int) -> str:
    """The time in UTC, or the day if it is not today."""
    then, today = (datetime.fromtimestamp(one // 1_000_000, UTC) for one in (utc, now))
    return f"{then:%H:%M} UTC" if then.date() == today.date() else f"{then:%Y-%m-%d}"


def _clock(view: View, t: HouseTerms) -> StatusLine:
    quality = view.clock.quality
    said = t.texts(f"console.clock.{quality}")
    return StatusLine(
        "clock", t.texts("console.status.clock"), said, "good" if quality == "synced" else "care"
    )


def _shoe(view: View, game: Game, t: HouseTerms) -> StatusLine:
    shoe, name = view.state.shoe, t.texts("console.status.shoe")
    state = state_of(view.state)
    if shoe.decks_out:
        return StatusLine("shoe", name, t.texts("console.shoe.decks_out"), "alarm")
    if not shoe.loaded:
        return StatusLine("shoe", name, t.texts("console.shoe.empty"), "care")
    if view.state.closing:
        return StatusLine("shoe", name, t.texts("console.shoe.closing"), "care")
    last = is_last_round(game, state) if view.state.step is Step.WAGERING else shoe.rounds_left == 0
    if last:
        return StatusLine("shoe", name, t.texts("console.shoe.last_round"), "care")
    if shoe.rounds_left > 0:
        return StatusLine("shoe", name, t.texts("console.shoe.cut_card"), "care")
    return StatusLine("shoe", name, t.texts("console.shoe.loaded", rounds=shoe.rounds), "good")


class ConsoleAlert(Struct, frozen=True):
    id: str
    what: str
    about: str
    way: str
    """What to do."""


def alerts_of(view: View, terms: HouseTerms) -> tuple[ConsoleAlert, ...]:
    """The hold that ends first comes first."""
    held = [_hold(at, one, view, terms) for at, one in enumerate(view.state.holds)]
    return (*reversed(held), *_shuffle(view, terms), *_devices(view, terms))


def _hold(at: int, held: Hold, view: View, t: HouseTerms) -> ConsoleAlert:
    seat = t.seat(held.seat) if held.seat else ""
    card = t.card(held.card) if held.card >= 0 else ""
    device = _which(held.device, view, t) if held.device else ""
    ruled = t.texts("console.trouble.ruled", name=held.ruled_by) if held.ruled_by else ""
    about = ", ".join(filter(None, (device, seat, card, t.detail(held.detail), ruled)))
    way = t.way(held.chosen.value) if held.chosen else t.texts("console.trouble.floor_rules")
    return ConsoleAlert(f"hold-{at}", capital(t.what(held.what.value)), about, capital(way))


def _which(kind: str, view: View, t: HouseTerms) -> str:
    """The disconnected devices of the kind; only the kind if all are ready again."""
    gone = [one for one in view.devices if one.device == kind and one.state != READY]
    return ", ".join(t.device(one) for one in gone) or t.texts(f"console.device.{kind}")


def _shuffle(view: View, t: HouseTerms) -> tuple[ConsoleAlert, ...]:
    if not view.shuffle_problem:
        return ()
    what, way = t.texts("console.trouble.shuffle"), t.texts("console.trouble.shuffle_way")
    return (ConsoleAlert("shuffle-problem", what, view.shuffle_problem, way),)


def _devices(view: View, t: HouseTerms) -> tuple[ConsoleAlert, ...]:
    waited = {held.device for held in view.state.holds}
    made = []
    for one in view.devices:
        name = t.device(one)
        mark = f"device-{one.serial.lower()}"
        if one.held:
            what = t.texts("console.trouble.adopt", device=name)
            about = t.linked(f"held_{one.held}", one.held)
            made.append(ConsoleAlert(mark, what, about, t.texts("console.trouble.adopt_way")))
        elif _aside(one, view) and one.device not in waited:
            what = t.texts("console.trouble.aside", device=name)
            about = ": ".join(filter(None, (t.linked(one.state, one.state), one.why)))
            made.append(ConsoleAlert(mark, what, about, t.texts("console.trouble.aside_way")))
    return tuple(made)


def _aside(one: DeviceShown, view: View) -> bool:
    """Whether it is disconnected, and the round cannot continue without its kind."""
    return one.device in view.state.lost and one.state != READY
