"""What stops the table or may: each irregularity with its way on, devices, the shuffle."""

from __future__ import annotations

from msgspec import Struct

from controller.api.view import View
from controller.procedure.states import Hold
from controller.screens.console.actions import capital
from controller.screens.console.tongue import Tongue


class Trouble(Struct, frozen=True):
    id: str
    what: str
    about: str
    way: str
    """The way on."""


def troubles_of(view: View, tongue: Tongue) -> tuple[Trouble, ...]:
    """The one that is ended first stands first."""
    held = [_hold(at, one, tongue) for at, one in enumerate(view.state.holds)]
    return (*reversed(held), *_shuffle(view, tongue), *_devices(view, tongue))


def _hold(at: int, held: Hold, t: Tongue) -> Trouble:
    seat = t.seat(held.seat) if held.seat else ""
    card = t.card(held.card) if held.card >= 0 else ""
    device = t.texts(f"console.device.{held.device}") if held.device else ""
    ruled = t.texts("console.trouble.ruled", name=held.ruled_by) if held.ruled_by else ""
    about = ", ".join(filter(None, (device, seat, card, t.detail(held.detail), ruled)))
    way = t.way(held.chosen.value) if held.chosen else t.texts("console.trouble.floor_rules")
    return Trouble(f"hold-{at}", capital(t.what(held.what.value)), about, capital(way))


def _shuffle(view: View, t: Tongue) -> tuple[Trouble, ...]:
    if not view.shuffle_problem:
        return ()
    what, way = t.texts("console.trouble.shuffle"), t.texts("console.trouble.shuffle_way")
    return (Trouble("shuffle-problem", what, view.shuffle_problem, way),)


def _devices(view: View, t: Tongue) -> tuple[Trouble, ...]:
    waited = {held.device for held in view.state.holds}
    made = []
    for one in view.devices:
        name = t.texts(f"console.device.{one.device}")
        mark = f"device-{one.serial.lower()}"
        if one.held:
            what = t.texts("console.trouble.adopt", device=name)
            made.append(Trouble(mark, what, one.held, t.texts("console.trouble.adopt_way")))
        elif one.device in view.state.lost and one.device not in waited:
            what = t.texts("console.trouble.aside", device=name)
            made.append(Trouble(mark, what, one.why, t.texts("console.trouble.aside_way")))
    return tuple(made)
