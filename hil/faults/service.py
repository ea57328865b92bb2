"""Requests to any device: the service switch, breaks, the ring's memory, tampering, defects."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from msgspec import convert
from msgspec.structs import replace

from firmware_protocol.device import (
    Answer,
    Break,
    CannotDo,
    ControlRequest,
    CutPower,
    Describe,
    Device,
    Firmware,
    Freeze,
    InjectDefect,
    LineNoise,
    Plug,
    RingMemory,
    ServiceSwitch,
    TamperWith,
    read_file,
    save_identity,
    write_atomic,
)
from firmware_protocol.messages import FaultCode, PowerCause, TamperSource
from firmware_protocol.messages import Tamper as TamperEvent
from firmware_protocol.tablelink import fingerprint, fingerprint_text
from hil.devices import class_of
from hil.faults.catalogue import BY_NAME


class FaultService:
    """Handles the requests that are common to all classes of devices."""

    def __init__(self, device: Device, breaks: set[str]) -> None:
        """`breaks`: those that are switched on; requests change the set."""
        self._device = device
        self._breaks = breaks

    def started(self, now: int) -> None:
        """Apply the stored defects to the mechanism. They are not reported again."""
        for code, arg in self._device.defects.items():
            request = convert({"code": code.name.lower(), "arg": arg}, InjectDefect)
            with suppress(CannotDo):
                self._device.mechanism.request(request, now)

    def handle(self, request: ControlRequest, now: int) -> Answer | None:
        method = _REQUESTS.get(type(request))
        return None if method is None else method(self, request, now)

    def _describe(self, request: Describe, now: int) -> Answer:
        device = self._device
        own, ring, session = device.identity, device.ring, device.running
        host = device.host
        answer: Answer = {
            "class": own.device_class.name.lower(),
            "maker": own.maker,
            "model": own.model,
            "serial": own.serial,
            "firmware": own.firmware,
            "label": own.label_text,
            "key": own.public.hex(),
            "fingerprint": fingerprint_text(own.fingerprint),
            "host": None if host is None else fingerprint_text(fingerprint(host)),
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
            "breaks": sorted(self._breaks),
            "mechanism": {},
        }
        with suppress(CannotDo):
            answer["mechanism"] = device.mechanism.request(request, now)
        return answer

    def _service(self, request: ServiceSwitch, now: int) -> Answer:
        self._device.pairing.turn_service(request.on, now)
        return {"service": request.on}

    def _break(self, request: Break, now: int) -> Answer:
        broken = BY_NAME.get(request.name)
        if broken is None:
            raise CannotDo(f"{request.name!r} is no break", ", ".join(sorted(BY_NAME)))
        profile = self._device.identity.device_class.name.lower()
        if broken.profiles and profile not in broken.profiles:
            raise CannotDo(
                f"{request.name} is for a {broken.profiles[0]}", f"a {profile}'s, or any's"
            )
        if request.on:
            self._breaks.add(request.name)
        else:
            self._breaks.discard(request.name)
        return {"breaks": sorted(self._breaks)}

    def _tamper(self, request: TamperWith, now: int) -> Answer:
        event = TamperEvent(TamperSource[request.source.upper()], request.active)
        return {"recorded": self._device.record(event, now)}

    def _defect(self, request: InjectDefect, now: int) -> Answer:
        device, code = self._device, FaultCode[request.code.upper()]
        is_new = request.on and code not in device.defects
        if request.on:
            device.defects[code] = request.arg
        else:
            device.defects.pop(code, None)
        device.save_defects()
        with suppress(CannotDo):  # not every mechanism has such a part
            device.mechanism.request(request, now)
        return {"recorded": is_new and device.report(code, request.arg, now)}

    def _firmware(self, request: Firmware, now: int) -> Answer:
        device = self._device
        save_identity(device.place.folder, replace(device.identity, firmware=request.version))
        device.start(now, PowerCause.SOFTWARE)
        return {"firmware": device.identity.digest.hex(), "boot": device.boot}

    def _ring(self, request: RingMemory, now: int) -> Answer:
        _RING[request.what](self, now)
        ring = self._device.ring
        return {"epoch": ring.epoch, "oldest": ring.oldest, "head": ring.head}

    def _save_ring(self, now: int) -> None:
        place = self._device.place
        write_atomic(place.ring_copy, read_file(place.ring), sync=False)

    def _restore_ring(self, now: int) -> None:
        place = self._device.place
        if not place.ring_copy.exists():
            raise CannotDo("no copy of the ring was stored", "save one first")
        write_atomic(place.ring, read_file(place.ring_copy), sync=False)
        self._device.start(now, PowerCause.POWER_ON)

    def _replace_ring(self, now: int) -> None:
        self._device.new_ring()
        self._device.start(now, PowerCause.POWER_ON)

    def _fill_ring(self, now: int) -> None:
        device = self._device
        filler = class_of(device.identity.device_class).filler
        for _ in range(device.ring.capacity):  # a device that overwrites is never full
            if device.full() or not device.record(filler, now):
                return

    def _outside(self, request: ControlRequest, now: int) -> Answer:
        verb = request.__struct_config__.tag
        raise CannotDo(f"{verb} is not done by the device", "the simulator that it runs in")


_RING: Final = {
    "save": FaultService._save_ring,
    "restore": FaultService._restore_ring,
    "fill": FaultService._fill_ring,
    "replace": FaultService._replace_ring,
}

_REQUESTS: Final[dict[type, Callable[[FaultService, Any, int], Answer]]] = {
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
