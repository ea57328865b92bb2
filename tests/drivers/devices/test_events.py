"""Every event and every command of a class of devices has its place in the drivers."""

from __future__ import annotations

import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

import firmware_protocol
from drivers.devices import (
    DRIVERS,
    DeviceEvent,
    LinkState,
    commands,
    shoe,
    shuffler,
    station,
)
from drivers.devices.events import COMMON, Origin
from drivers.devices.shoe import ShoeCardRead
from firmware_protocol.messages import (
    COMMANDS,
    EVENTS,
    Abort,
    Arm,
    ButtonMask,
    Buzz,
    CardRead,
    Command,
    DeckKind,
    DeviceClass,
    Eject,
    Event,
    Info,
    Lamps,
    Lock,
    LockState,
    Reread,
    Resume,
    Selftest,
    Start,
)
from tests.support.drivers.fake_line import FakeLine

ORIGIN = Origin("X-1", 5, 9, 1, 1234, 5678)


def of_class(device_class: DeviceClass, known: dict[int, Any]) -> set[type]:
    return {one for one in known.values() if one.CLASS in (DeviceClass.ANY, device_class)}


def test_every_class_of_device_has_a_driver() -> None:
    assert set(DRIVERS) == set(DeviceClass) - {DeviceClass.ANY}


@pytest.mark.parametrize("device_class", DRIVERS)
def test_every_event_of_a_class_becomes_a_typed_one(device_class: DeviceClass) -> None:
    assert set(DRIVERS[device_class].EVENTS) == of_class(device_class, EVENTS)


@pytest.mark.parametrize("device_class", DRIVERS)
def test_no_two_events_become_the_same_type(device_class: DeviceClass) -> None:
    line = FakeLine(device_class)
    kinds = [type(line.comes(sample(kind))) for kind in DRIVERS[device_class].EVENTS]
    assert len(set(kinds)) == len(kinds)
    assert all(issubclass(kind, DeviceEvent) for kind in kinds)


def sample(kind: type[Event]) -> Event:
    """What its golden vector says."""
    body = next(
        one["body"]
        for one in vectors()
        if one["message"] == kind.NAME and one["sample"] in ("between", "least")
    )
    return kind.decode(bytes.fromhex(body))


@cache
def vectors() -> list[dict[str, Any]]:
    text = (Path(firmware_protocol.__file__).parent / "vectors/v1/messages.json").read_text()
    # Those in between first: there all fields differ.
    return sorted(json.loads(text), key=lambda one: bool(one["sample"] != "between"))


@pytest.mark.parametrize("device_class", DRIVERS)
def test_a_typed_event_says_what_the_message_said(device_class: DeviceClass) -> None:
    for kind, make in DRIVERS[device_class].EVENTS.items():
        message = sample(kind)
        event = make(ORIGIN, message)
        assert event.origin == ORIGIN
        if isinstance(event, ShoeCardRead):
            assert isinstance(message, CardRead)
            assert (event.shoe, event.pos) == (message.shoe, message.pos)
            assert (event.card.open(), event.body.open()) == (message.card, message)
            continue
        said = {name: getattr(message, name) for name in message.SPEC.fields}
        has = msgspec.structs.asdict(event)
        for name in has.keys() & said.keys():
            assert has[name] == said[name], (kind, name)
        for name, value in said.items():
            assert value in has.values() or name in ("edge", "held"), (kind, name)


METHODS: dict[type[Command], str] = {
    Info: "info",
    Selftest: "selftest",
    Lock: "lock open_gate",
    Reread: "reread",
    Start: "start",
    Eject: "eject",
    Abort: "abort",
    Arm: "arm disarm",
    Lamps: "lamps",
    Buzz: "buzz",
}
"""By which methods of its driver a command is given."""


def test_every_command_has_its_methods() -> None:
    # RESUME is the link's own.
    assert set(METHODS) == set(COMMANDS.values()) - {Resume}
    for device_class, driver in DRIVERS.items():
        names = {
            name
            for command in of_class(device_class, COMMANDS) - {Resume}
            for name in METHODS[command].split()
        }
        methods = {
            name
            for name, _ in inspect.getmembers(driver, inspect.iscoroutinefunction)
            if not name.startswith("_") and name != "work"
        }
        assert names == methods


def test_what_may_be_asked_when() -> None:
    """While nothing can be kept, nothing is done that makes events."""
    opens, locks = Lock(LockState.OPEN), Lock(LockState.LOCKED)
    arms = Arm(1, ButtonMask.HIT, 1, 1000)
    safe = {Info(), locks, Abort(), Reread(1, 1)}
    unsafe = {opens, arms, Start(6, 0, DeckKind.FULL_52), Eject()}
    off = {Arm(1, ButtonMask.HIT, 1, 0), Arm(1, ButtonMask(0), 1, 1000)}
    some = {
        LinkState.READY: safe | unsafe | off,
        LinkState.UNKEPT: safe | off,
        LinkState.RESUMING: {Reread(1, 1), Info()},
    }
    for state in LinkState:
        accepted = {one for one in safe | unsafe | off if commands.accepts(state, one)}
        assert accepted == some.get(state, set()), state


@pytest.mark.parametrize("device_class", DRIVERS)
def test_a_driver_takes_only_its_own_class(device_class: DeviceClass) -> None:
    for other in set(DRIVERS) - {device_class}:
        with pytest.raises(ValueError, match="is not driven by"):
            DRIVERS[device_class](FakeLine(other))


def test_all_classes_share_the_common_events() -> None:
    for module in (shoe, shuffler, station):
        assert COMMON.items() <= module.EVENTS.items()
