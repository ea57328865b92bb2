"""Alerts: irregularities with their way on, devices, the shuffle."""

from __future__ import annotations

from msgspec import Struct

from controller.api.contract.view import DeviceShown, View
from controller.procedure.model.state import Hold
from controller.screens.console.text import READY, HouseTerms
from controller.screens.console.view.buttons import capital


class ConsoleAlert(Struct, frozen=True):
    id: str
    what: str
    about: str
    way: str
    """What to do."""


def alerts_of(view: View, tongue: HouseTerms) -> tuple[ConsoleAlert, ...]:
    """The hold that ends first comes first."""
    held = [_hold(at, one, view, tongue) for at, one in enumerate(view.state.holds)]
    return (*reversed(held), *_shuffle(view, tongue), *_devices(view, tongue))


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
