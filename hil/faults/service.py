"""What hands do at any device: the service switch, breaks, the ring's memory, tampering."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from msgspec import convert
from msgspec.structs import replace

from firmware_protocol.device import identity
from firmware_protocol.device.control import (
    Break,
    ControlRequest,
    CutPower,
    Describe,
    Firmware,
    Freeze,
    InjectDefect,
    LineNoise,
    Plug,
    RingMemory,
    ServiceSwitch,
    TamperWith,
)
from firmware_protocol.device.core import Device
from firmware_protocol.device.interfaces import Answer, CannotDo
from firmware_protocol.device.storage import read_file, write_atomic
from firmware_protocol.messages.codec import Event
from firmware_protocol.messages.common import Tamper as TamperEvent
from firmware_protocol.messages.enums import DeviceClass, FaultCode, PowerCause, TamperSource
from firmware_protocol.messages.shoe import Cover
from firmware_protocol.messages.shuffler import Door
from firmware_protocol.messages.station import LampFault
from firmware_protocol.tablelink.fingerprints import fingerprint, fingerprint_text
from hil.faults.catalogue import BY_NAME

_FILLING: Final[dict[DeviceClass, Event]] = {
    DeviceClass.SHOE: Cover(False),
    DeviceClass.SHUFFLER: Door(False),
    DeviceClass.STATION: LampFault(1, 0),
}
"""What a ring is filled with: nothing that a table acts on."""


class FaultService:
    """Carries out the requests that any device takes, whatever its class."""

    def __init__(self, device: Device, breaks: set[str]) -> None:
        """`breaks`: those that are switched on; it is changed by requests."""
        self._device = device
        self._breaks = breaks

    def started(self, now: int) -> None:
        """Apply the stored defects to the mechanism. They are not reported again."""
        for code, arg in self._device.defects.items():
            hand = convert({"code": code.name.lower(), "arg": arg}, InjectDefect)
            with suppress(CannotDo):
                self._device.mechanism.hand(hand, now)

    def handle(self, hand: ControlRequest, now: int) -> Answer | None:
        method = _HANDS.get(type(hand))
        return None if method is None else method(self, hand, now)

    def _describe(self, hand: Describe, now: int) -> Answer:
        own, ring, session = self._device.identity, self._device.ring, self._device.running
        answer: Answer = {
            "class": own.device_class.name.lower(),
            "maker": own.maker,
            "model": own.model,
            "serial": own.serial,
            "firmware": own.firmware,
            "label": own.label_text,
            "key": own.public.hex(),
            "fingerprint": fingerprint_text(own.fingerprint),
            "host": None
            if self._device.host is None
            else fingerprint_text(fingerprint(self._device.host)),
            "state": [flag.name for flag in self._device.state()],
            "epoch": ring.epoch,
            "oldest": ring.oldest,
            "head": ring.head,
            "acked": self._device.records.room.acked,
            "boot": self._device.boot,
            "cause": self._device.cause.name,
            "session": None if session is None else session.id,
            "resumed": session is not None and session.resumed,
            "defects": sorted(code.name.lower() for code in self._device.defects),
            "breaks": sorted(self._breaks),
            "mechanism": {},
        }
        with suppress(CannotDo):
            answer["mechanism"] = self._device.mechanism.hand(hand, now)
        return answer

    def _service(self, hand: ServiceSwitch, now: int) -> Answer:
        self._device.pairing.turn_service(hand.on, now)
        return {"service": hand.on}

    def _break(self, hand: Break, now: int) -> Answer:
        broken = BY_NAME.get(hand.name)
        if broken is None:
            raise CannotDo(f"{hand.name!r} is no break", ", ".join(sorted(BY_NAME)))
        profile = self._device.identity.device_class.name.lower()
        if broken.profiles and profile not in broken.profiles:
            raise CannotDo(f"{hand.name} is for a {broken.profiles[0]}", f"a {profile}'s, or any's")
        if hand.on:
            self._breaks.add(hand.name)
        else:
            self._breaks.discard(hand.name)
        return {"breaks": sorted(self._breaks)}

    def _tamper(self, hand: TamperWith, now: int) -> Answer:
        recorded = self._device.record(
            TamperEvent(TamperSource[hand.source.upper()], hand.active), now
        )
        return {"recorded": recorded}

    def _defect(self, hand: InjectDefect, now: int) -> Answer:
        code = FaultCode[hand.code.upper()]
        begins = hand.on and code not in self._device.defects
        if hand.on:
            self._device.defects[code] = hand.arg
        else:
            self._device.defects.pop(code, None)
        self._device.save_defects()
        with suppress(CannotDo):  # a mechanism need not feel it
            self._device.mechanism.hand(hand, now)
        return {"recorded": begins and self._device.report(code, hand.arg, now)}

    def _firmware(self, hand: Firmware, now: int) -> Answer:
        identity.save(
            self._device.place.folder, replace(self._device.identity, firmware=hand.version)
        )
        self._device.start(now, PowerCause.SOFTWARE)
        return {"firmware": self._device.identity.digest.hex(), "boot": self._device.boot}

    def _ring(self, hand: RingMemory, now: int) -> Answer:
        _RING[hand.what](self, now)
        ring = self._device.ring
        return {"epoch": ring.epoch, "oldest": ring.oldest, "head": ring.head}

    def _save_ring(self, now: int) -> None:
        write_atomic(self._device.place.ring_copy, read_file(self._device.place.ring), sync=False)

    def _restore_ring(self, now: int) -> None:
        if not self._device.place.ring_copy.exists():
            raise CannotDo("no copy of the ring was kept", "save one first")
        write_atomic(self._device.place.ring, read_file(self._device.place.ring_copy), sync=False)
        self._device.start(now, PowerCause.POWER_ON)

    def _replace_ring(self, now: int) -> None:
        self._device.new_ring()
        self._device.start(now, PowerCause.POWER_ON)

    def _fill_ring(self, now: int) -> None:
        # A device that overwrites is never full: one lap shows it.
        for _ in range(self._device.ring.capacity):
            if self._device.full() or not self._device.record(
                _FILLING[self._device.identity.device_class], now
            ):
                return

    def _outside(self, hand: ControlRequest, now: int) -> Answer:
        raise CannotDo(
            f"{hand.__struct_config__.tag} is no part of the device", "it is the stand's"
        )


_RING: Final = {
    "save": FaultService._save_ring,
    "restore": FaultService._restore_ring,
    "fill": FaultService._fill_ring,
    "replace": FaultService._replace_ring,
}

_HANDS: Final[dict[type, Callable[[FaultService, Any, int], Answer]]] = {
    Describe: FaultService._describe,
    ServiceSwitch: FaultService._service,
    Break: FaultService._break,
    RingMemory: FaultService._ring,
    TamperWith: FaultService._tamper,
    InjectDefect: FaultService._defect,
    Firmware: FaultService._firmware,
    CutPower: FaultService._outside,
    Plug: FaultService._outside,
    Freeze: FaultService._outside,
    LineNoise: FaultService._outside,
}
