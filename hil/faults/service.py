"""What hands do at any device: the service switch, breaks, the ring's memory, tampering."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert
from msgspec.structs import replace

from firmware_protocol.device import identity
from firmware_protocol.device.control import (
    Break,
    Defect,
    Describe,
    Firmware,
    Freeze,
    Hand,
    Line,
    Plug,
    Power,
    Ring,
    Service,
    Tamper,
)
from firmware_protocol.device.interfaces import Answer, CannotDo
from firmware_protocol.device.storage import Kept, read_whole, write_whole
from firmware_protocol.messages.codec import Event
from firmware_protocol.messages.common import Tamper as TamperEvent
from firmware_protocol.messages.enums import DeviceClass, FaultCode, PowerCause, TamperSource
from firmware_protocol.messages.shoe import Cover
from firmware_protocol.messages.shuffler import Door
from firmware_protocol.messages.station import LampFault
from firmware_protocol.tablelink.fingerprints import fingerprint, fingerprint_text
from hil.faults.catalogue import BY_NAME

if TYPE_CHECKING:
    from firmware_protocol.device.core import Device

_FILLING: Final[dict[DeviceClass, Event]] = {
    DeviceClass.SHOE: Cover(False),
    DeviceClass.SHUFFLER: Door(False),
    DeviceClass.STATION: LampFault(1, 0),
}
"""What a ring is filled with: nothing that a table acts on."""


def _describe(device: Device, hand: Describe, now: int) -> Answer:
    own, ring, session = device.identity, device.ring, device.sessions.running
    answer: Answer = {
        "class": own.device_class.name.lower(),
        "maker": own.maker,
        "model": own.model,
        "serial": own.serial,
        "firmware": own.firmware,
        "label": own.label_text,
        "key": own.public.hex(),
        "fingerprint": fingerprint_text(own.fingerprint),
        "host": None if device.host is None else fingerprint_text(fingerprint(device.host)),
        "state": [flag.name for flag in device.state()],
        "epoch": ring.epoch,
        "oldest": ring.oldest,
        "head": ring.head,
        "acked": device.records.room.acked,
        "boot": device.boot,
        "cause": device.cause.name,
        "session": None if session is None else session.id,
        "resumed": session is not None and session.resumed,
        "defects": sorted(code.name.lower() for code in device.defects),
        "breaks": sorted(device.breaks),
        "mechanism": {},
    }
    with suppress(CannotDo):
        answer["mechanism"] = device.mechanism.hand(hand, now)
    return answer


def _service(device: Device, hand: Service, now: int) -> Answer:
    device.pairing.turn_service(hand.on, now)
    return {"service": hand.on}


def _break(device: Device, hand: Break, now: int) -> Answer:
    broken = BY_NAME.get(hand.name)
    if broken is None:
        raise CannotDo(f"{hand.name!r} is no break", ", ".join(sorted(BY_NAME)))
    profile = device.identity.device_class.name.lower()
    if broken.profiles and profile not in broken.profiles:
        raise CannotDo(f"{hand.name} is for a {broken.profiles[0]}", f"a {profile}'s, or any's")
    if hand.on:
        device.breaks.add(hand.name)
    else:
        device.breaks.discard(hand.name)
    return {"breaks": sorted(device.breaks)}


def _tamper(device: Device, hand: Tamper, now: int) -> Answer:
    recorded = device.record(TamperEvent(TamperSource[hand.source.upper()], hand.active), now)
    return {"recorded": recorded}


def _defect(device: Device, hand: Defect, now: int) -> Answer:
    code = FaultCode[hand.code.upper()]
    begins = hand.on and code not in device.defects
    if hand.on:
        device.defects[code] = hand.arg
    else:
        device.defects.pop(code, None)
    device.keep_defects()
    with suppress(CannotDo):  # a mechanism need not feel it
        device.mechanism.hand(hand, now)
    return {"recorded": begins and device.report(code, hand.arg, now)}


def standing(kept: Kept) -> dict[FaultCode, int]:
    """What hands broke before the start, and nobody has mended since."""
    words = kept.kept("defects").decode().split()
    return {FaultCode[name]: int(arg) for name, arg in zip(words[::2], words[1::2], strict=True)}


def keep_standing(kept: Kept, defects: dict[FaultCode, int]) -> None:
    kept.keep("defects", "".join(f"{c.name} {arg}\n" for c, arg in defects.items()).encode())


def stand(device: Device, now: int) -> None:
    """After a start: the mechanism feels what is broken. It is not told anew."""
    for code, arg in device.defects.items():
        hand = convert({"code": code.name.lower(), "arg": arg}, Defect)
        with suppress(CannotDo):
            device.mechanism.hand(hand, now)


def _firmware(device: Device, hand: Firmware, now: int) -> Answer:
    identity.save(device.place.folder, replace(device.identity, firmware=hand.version))
    device.start(now, PowerCause.SOFTWARE)
    return {"firmware": device.identity.digest.hex(), "boot": device.boot}


# --- the ring's memory ----------------------------------------------------------------------


def _ring(device: Device, hand: Ring, now: int) -> Answer:
    _RING[hand.what](device, now)
    ring = device.ring
    return {"epoch": ring.epoch, "oldest": ring.oldest, "head": ring.head}


def _save_ring(device: Device, now: int) -> None:
    write_whole(device.place.ring_copy, read_whole(device.place.ring), sync=False)


def _restore_ring(device: Device, now: int) -> None:
    if not device.place.ring_copy.exists():
        raise CannotDo("no copy of the ring was kept", "save one first")
    write_whole(device.place.ring, read_whole(device.place.ring_copy), sync=False)
    device.start(now, PowerCause.POWER_ON)


def _replace_ring(device: Device, now: int) -> None:
    device.new_ring()
    device.start(now, PowerCause.POWER_ON)


def _fill_ring(device: Device, now: int) -> None:
    # A device that overwrites is never full: one lap shows it.
    for _ in range(device.ring.capacity):
        if device.full() or not device.record(_FILLING[device.identity.device_class], now):
            return


_RING: Final = {
    "save": _save_ring,
    "restore": _restore_ring,
    "fill": _fill_ring,
    "replace": _replace_ring,
}


def _outside(device: Device, hand: Hand, now: int) -> Answer:
    raise CannotDo(f"{type(hand).__name__.lower()} is no part of the device", "it is the stand's")


HANDS: Final[dict[type, Callable[[Device, Any, int], Answer]]] = {
    Describe: _describe,
    Service: _service,
    Break: _break,
    Ring: _ring,
    Tamper: _tamper,
    Defect: _defect,
    Firmware: _firmware,
    Power: _outside,
    Plug: _outside,
    Freeze: _outside,
    Line: _outside,
}
