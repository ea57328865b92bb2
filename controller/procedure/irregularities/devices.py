"""Lost devices: the table stops if they affect the outcome, immediately or when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from controller.procedure.model.effects import Effect, Told
from controller.procedure.model.events import (
    Device,
    DeviceBack,
    DeviceLost,
    Go,
    ShoeLoaded,
    ShuffleStarted,
)
from controller.procedure.model.felt import returned
from controller.procedure.model.game import Game
from controller.procedure.model.holds import BEFORE, found, hold, told
from controller.procedure.model.row import Row
from controller.procedure.model.state import OPEN, WAITING, Hold, State, Step
from controller.procedure.rows import another_round, fresh_felt, no_shoe, no_shuffler
from controller.rules.irregularities import Irregularity


def _device_held(g: Game, s: State, e: DeviceLost) -> State:
    gone = replace(s, lost=_with(s.lost, e.device))
    return hold(g, gone, Hold(Irregularity.DEVICE_LOST, gone.step, detail=e.why, device=e.device))


def _with(lost: tuple[str, ...], device: str) -> tuple[str, ...]:
    return lost if device in lost else (*lost, device)


def _gone(g: Game, s: State, e: DeviceLost) -> State:
    return replace(s, lost=_with(s.lost, e.device))


def came_back(g: Game, s: State, e: DeviceBack) -> State:
    if not e.agrees:
        return s
    return returned(s, e.device)


def _shoe_still_lost(g: Game, s: State, e: Go) -> bool:
    return another_round(g, s) and "shoe" in s.lost


def _waits_for(device: Device) -> Callable[[Game, State, Any], State]:
    """Returns a hold until the device that is needed now is connected."""

    def do(g: Game, s: State, e: ShoeLoaded | ShuffleStarted) -> State:
        return hold(g, s, Hold(Irregularity.DEVICE_LOST, s.step, device=device))

    return do


def _hold_for_shoe(g: Game, s: State, e: Go) -> State:
    """Holds the next round until the shoe is back; the round in which it was lost was voided."""
    return hold(g, fresh_felt(s), Hold(Irregularity.DEVICE_LOST, Step.WAGERING, device="shoe"))


def touches_outcome(g: Game, s: State, e: DeviceLost) -> bool:
    """Whether the newly lost device affects the next step."""
    if e.device in s.lost:
        return False
    step = s.holds[0].back if s.holds else s.step
    if step is Step.CLOSED:
        return False
    if e.device == "shoe":
        return step not in BEFORE
    if e.device == "shuffler":
        return step in BEFORE or s.step is Step.REFILL
    return g.options.decisions.by == "buttons" and bool(s.seats)


def _aside(g: Game, s: State, e: DeviceLost) -> bool:
    return not touches_outcome(g, s, e)


def _lost_aside(g: Game, s: State, e: DeviceLost, after: State) -> tuple[Effect, ...]:
    return (Told("floor", Irregularity.DEVICE_LOST.value, 0, f"{e.device}: {e.why}"),)


ROWS = (
    Row(
        "shoe_still_lost",
        (Step.NEXT_ROUND,),
        Go,
        Step.RULING,
        "The shoe is still gone: no round begins without it.",
        _shoe_still_lost,
        _hold_for_shoe,
        told,
    ),
    found(
        "shuffler_gone_at_shuffle",
        (Step.SHUFFLE_NEEDED, Step.REFILL),
        ShuffleStarted,
        "The shuffler that is to shuffle is gone, or came back as another one.",
        _waits_for("shuffler"),
        no_shuffler,
    ),
    found(
        "shoe_gone_at_load",
        (Step.LOADING,),
        ShoeLoaded,
        "The shoe that is to be loaded is gone, or came back as another one.",
        _waits_for("shoe"),
        no_shoe,
    ),
    found(
        "device_lost",
        OPEN,
        DeviceLost,
        "A device that has a part in the outcome is gone.",
        _device_held,
        touches_outcome,
    ),
    *(
        Row(
            f"device_lost_aside_at_{step.value}",
            (step,),
            DeviceLost,
            step,
            "A device is gone that has no part in what happens now; the floor is told.",
            _aside,
            _gone,
            _lost_aside,
            why="the device is in use, or was gone before",
        )
        for step in WAITING
    ),
    *(
        Row(
            f"device_back_at_{step.value}",
            (step,),
            DeviceBack,
            step,
            "A device is back that nothing waits for.",
            do=came_back,
        )
        for step in WAITING
        if step is not Step.DEVICE
    ),
)


REFUSALS = ()
