"""What the floor signs for: one act, as it will be sent, about what stands on the table now.

Authority for an act is authority for these words of it: for this ruling, this amount, this device
as its log stands. What is sent otherwise, or after things have moved on, is not what was signed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from controller.api.contract.errors import Problem
from controller.people import ADOPTED, Act, act_of
from controller.procedure.model import events
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.permissions import WHO
from controller.procedure.model.state import State
from controller.rules.cards import NAMES
from controller.rules.irregularities import Way
from controller.table.loop import BadAct, kind_of
from controller.table.running import RunningTable
from drivers.session import Supervisor

ADOPT: Final = "DeviceAdopted"
AGAIN: Final = "ShuffleAgain"
BESIDE: Final = (ADOPT, AGAIN)
"""What is signed for beside the events of the procedure."""
WHENEVER: Final[frozenset[type[Event]]] = frozenset(
    {
        events.TableOpened,
        events.TableClosed,
        events.ShuffleCalled,
        events.ShuffleStarted,
        events.ShuffleDone,
        events.ShoeLoaded,
        events.DecksChanged,
        events.PaymentCorrected,
    }
)
"""Acts that say all that they are about, or are about no round."""


def floor_act(table: RunningTable, sent: Mapping[str, Any]) -> Act:
    """The act that a badge and PIN are to stand for. Problem where the floor signs for no such
    thing."""
    name = sent.get("type")
    if name == ADOPT:
        return _adoption(table, sent)
    if name == AGAIN:
        only(sent, ())
        return again()
    kind = kind_of_sent(sent)
    act = None if kind is None else _act_now(table, kind, sent)
    if act is None:
        allowed = ", ".join((*sorted(one.__name__ for one in SIGNED), *BESIDE))
        raise Problem(400, "no_floor_act", f"the floor does not sign for {name}", allowed)
    return act


def _act_now(table: RunningTable, kind: type[Event], sent: Mapping[str, Any]) -> Act | None:
    return act_for(kind, sent, table.shown.state, table.parts.game, table.case)


def kind_of_sent(sent: Mapping[str, Any]) -> type[Event] | None:
    """Which event it would bring; None where the vault knows. Problem."""
    try:
        return kind_of(sent)
    except BadAct as problem:
        raise Problem(400, "no_act", str(problem)) from None


SIGNED: Final = frozenset(kind for kind, roles in WHO.items() if "floor" in roles)
"""Events that the floor may bring."""


def act_for(
    kind: type[Event], sent: Mapping[str, Any], s: State, game: Game, case: str
) -> Act | None:
    """None for what the floor does not do. `case`: what the table calls the hold that is on."""
    if kind not in SIGNED:
        return None
    return act_of(kind, two=takes_two(kind, sent, s, game), about=about(kind, sent, s, case))


def takes_two(kind: type[Event], sent: Mapping[str, Any], s: State, game: Game) -> bool | None:
    """Whether the house wants a second person; None: as ever."""
    if kind is events.FloorRuled:
        return bool(s.holds) and game.needs_two(s.holds[-1].what, Way(sent["way"]))
    return None


def about(kind: type[Event], sent: Mapping[str, Any], s: State, held: str) -> str:
    """What is signed for, in words that stand in the record. `held`: what the table calls the hold
    that is on; a second one that looks the same is another case."""
    fields = {name: sent[name] for name in sorted(sent) if name != "type"}
    words = msgspec.json.encode(fields).decode() if fields else ""
    case = "" if kind in WHENEVER else _case(kind, s, held)
    return ": ".join(filter(None, (case, words)))


def _case(kind: type[Event], s: State, name: str) -> str:
    """What lies before the floor: it is all face up."""
    parts = [f"round {s.round}"]
    if s.holds:
        held = s.holds[-1]
        parts.append(held.what.value)
        parts += [held.device] if held.device else []
        parts += [f"seat {held.seat}"] if held.seat else []
        parts += [NAMES[held.card]] if held.card >= 0 else []
        parts += [name] if name else []
    elif s.due and kind is events.PaymentApproved:
        due = s.due[0]
        hand = f"hand {due.hand}, " if due.hand > 0 else ""  # of a split: they may win the same
        parts.append(f"seat {due.seat}, {hand}{due.bet}, {due.outcome} {due.moves}")
    return ", ".join(parts)


# --- devices ----------------------------------------------------------------------------------


def again() -> Act:
    return Act(AGAIN, ("floor",))


def adoption(supervisor: Supervisor, *, skip: bool) -> Act:
    """Of a log as it stands now. Problem where nothing waits for it."""
    held, serial = supervisor.held, supervisor.wanted.serial
    if held is None:
        what = f"{serial} waits for nobody: it is {supervisor.state.value}"
        raise Problem(409, "nothing_held", what, "a device whose log is held")
    verdict = held.verdict.name.lower()
    log = f"epoch {held.epoch}, {held.oldest} to {held.head}"
    about = f"{serial}: {verdict}, {log}{', skipped' if skip else ''}"
    return Act(ADOPTED.name, ADOPTED.roles, ADOPTED.two, about)


def supervisor_of(table: RunningTable, serial: str) -> Supervisor:
    try:
        return table.supervisor(serial)
    except LookupError:
        every = ", ".join(table.fittings.served)
        raise Problem(404, "no_device", "this table has no such device", every) from None


def _adoption(table: RunningTable, sent: Mapping[str, Any]) -> Act:
    only(sent, ("serial", "skip"))
    serial, skip = sent.get("serial"), sent.get("skip", False)
    if not isinstance(serial, str) or not isinstance(skip, bool):
        what = f"{ADOPT} says which device"
        raise Problem(400, "no_act", what, "serial: its serial number; skip: true or false")
    return adoption(supervisor_of(table, serial), skip=skip)


def only(sent: Mapping[str, Any], fields: tuple[str, ...]) -> None:
    """Problem where there is anything else in it."""
    unknown = sorted(set(sent) - {"type", *fields})
    if unknown:
        what = f"{sent['type']} has no {unknown[0][:40]!r}"
        raise Problem(400, "no_act", what, ", ".join(fields) or "no fields")
