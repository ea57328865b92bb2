"""Which hands a mechanism knows: a table from the hand to what is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from firmware_protocol.device.control import ControlRequest
from firmware_protocol.device.interfaces import Answer, CannotDo, Mechanism

_M = TypeVar("_M", bound=Mechanism)
RequestTable: TypeAlias = Mapping[type[Any], Callable[[_M, Any, int], Answer]]


def dispatch(mechanism: _M, verbs: RequestTable[_M], hand: ControlRequest, now: int) -> Answer:
    """Do it, or CannotDo if it is nothing for this class of device."""
    do = verbs.get(type(hand))
    if do is None:
        whose = mechanism.device_class.name.lower()
        raise CannotDo(
            f"{verb_of(type(hand))} is nothing for a {whose}", ", ".join(map(verb_of, verbs))
        )
    return do(mechanism, hand, now)


def verb_of(hand: type[Any]) -> str:
    """The hand as the control socket names it."""
    return str(hand.__struct_config__.tag)
