"""A table file's devices, record, keys, people, control ports and screens: parsed, not opened.

Addresses of ports and pairing are validated when they are opened. A table without equipment can be
checked, explained and simulated; it cannot be served.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.config import values
from controller.config.files import TableKey, read_table, read_value, refuse_unknown
from controller.config.values import ValueCheck, invalid
from controller.errors import UsageProblem, printable, refuse, shown
from controller.rules.option_constraints import BETS, MAX_MONEY, Range
from controller.rules.options import Limit, Options

LOOPBACK: Final = "127.0.0.1"
T = TypeVar("T")


class ScreensPlace(Struct, frozen=True):
    """The file's [screens]."""

    port: int
    """0: any free port, reported once it is bound."""
    listen: str = LOOPBACK
    certificate: Path | None = None
    key: Path | None = None
    texts: Path | None = None
    """A translation of the pages' texts; None: English."""


_NAMED: Final = values.whole_number(Range(1024, 65_535))


def _read_port(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return value
    return _NAMED.read(value)


def line_of(place: ScreensPlace) -> str:
    """Returns the place as text."""
    host = f"[{place.listen}]" if ":" in place.listen else place.listen
    at = f"{host}:{place.port}" if place.port else f"any free port of {host}"
    return f"screens at {at}{'' if place.certificate is None else ', behind a certificate'}"


_SERIAL: Final = "serial:"
_PATH: Final = re.compile(rf"({_SERIAL}|(?!usb\+))([^:/][^:/]*/(?:.*[^/]))")
"""A relative path of a serial port, as drivers parse it."""


def absolute_port(folder: Path, port: str) -> str:
    """Returns the port with its path relative to `folder`, not to the working directory."""
    found = _PATH.fullmatch(port)
    return port if found is None else f"{found[1]}{folder.absolute() / found[2]}"


def normalized_port(port: str) -> str:
    """Returns one spelling for all spellings of a serial port's path."""
    path = port.removeprefix(_SERIAL)
    return os.path.normpath(path) if path.startswith("/") else port


MAX_STATIONS: Final = 7
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


class DevicePlace(Struct, frozen=True):
    """A device of the table."""

    serial: str
    port: str = ""
    """Its address; empty: it is found by its serial number."""
    seats: tuple[int, ...] = ()
    """The seats of a station."""


class CardBatch(Struct, frozen=True):
    """How the shoe must read this table's cards."""

    min_confidence: int = 80
    """Percent. A card read with less confidence is entered by the dealer."""
    backs: tuple[int, ...] = ()
    """The makers' numbers of the backs of alternating batches; empty: any back."""


class DevicePlaces(Struct, frozen=True):
    """The file's [devices]."""

    shoe: DevicePlace
    shuffler: DevicePlace | None
    stations: tuple[DevicePlace, ...]
    batch: CardBatch
    standing: dict[int, dict[str, int]]
    """The amounts that a seat's bet button places, by bet."""


class RecordPlace(Struct, frozen=True):
    """The file's [record]."""

    directory: Path
    day_starts: int = 0
    """Minutes after midnight, by UTC, at which the gaming day begins."""
    segment_mib: int = 8
    unwitnessed_hours: int = 24
    """After so many hours without a witness the table shows a warning."""


class ControlPlace(Struct, frozen=True):
    """The file's [control]: the endpoints of a served table's API, on this machine only."""

    socket: Path
    port: int | None = None
    """The API's port on 127.0.0.1; None: the socket only."""
    metrics_port: int | None = None
    """The port of the metrics on 127.0.0.1; None: no metrics."""


class Equipment(Struct, frozen=True):
    """All equipment; parts that the file leaves out are None."""

    devices: DevicePlaces | None = None
    record: RecordPlace | None = None
    keys: Path | None = None
    """The directory of the keys."""
    people: Path | None = None
    """The file of the people."""
    control: ControlPlace | None = None
    screens: ScreensPlace | None = None
    """None: no pages are served."""


NO_EQUIPMENT: Final = Equipment()
TABLES: Final = ("devices", "record", "keys", "people", "control", "screens")

# --- what the values may be -------------------------------------------------------------------


def _read_time(value: object) -> int:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise invalid(value)
    return int(found[1]) * 60 + int(found[2])


_SERIAL_NUMBER: Final = values.matching(
    "[A-Za-z0-9._-]{1,20}",
    "a serial number of 1 to 20 letters, digits, dots, dashes and underscores",
)
_DEVICE: Final = {
    "serial": TableKey(_SERIAL_NUMBER, required=True),
    "port": TableKey(values.text(200)),
}
_BATCH: Final = {
    "min_confidence": TableKey(values.whole_number(Range(0, 100))),
    "backs": TableKey(values.list_of(values.whole_number(Range(1, 255)), max_length=8)),
}
_TEXT: Final = values.text(400)
_PARTS: Final = ("shoe", "shuffler", "stations", "standing")
_AMOUNT: Final = values.whole_number(Range(1, MAX_MONEY))


def _schemas(folder: Path) -> dict[str, dict[str, TableKey]]:
    """The keys of the tables; paths are relative to `folder`."""
    path = ValueCheck(_TEXT.allowed, lambda value: folder / _TEXT.read(value))
    return {
        "record": {
            "directory": TableKey(path, required=True),
            "day_starts": TableKey(
                ValueCheck('a time of the day, by UTC, such as "06:00"', _read_time)
            ),
            "segment_mib": TableKey(values.whole_number(Range(1, 1024))),
            "unwitnessed_hours": TableKey(values.whole_number(Range(1, 720))),
        },
        "keys": {"directory": TableKey(path, required=True)},
        "people": {"file": TableKey(path, required=True)},
        "control": {
            "socket": TableKey(path, required=True),
            "port": TableKey(_NAMED),
            "metrics_port": TableKey(_NAMED),
        },
        "screens": {
            "port": TableKey(
                ValueCheck(f"{_NAMED.allowed}; 0: any free one", _read_port), required=True
            ),
            "listen": TableKey(values.text(45)),
            "certificate": TableKey(path),
            "key": TableKey(path),
            "texts": TableKey(path),
        },
    }


# --- reading ----------------------------------------------------------------------------------


def read_equipment(
    content: Mapping[str, Any], file: str, folder: Path | None, seats: int
) -> tuple[Equipment, list[UsageProblem]]:
    """Parse all equipment. Returns it and the errors. Paths are relative to the file's folder."""
    problems: list[UsageProblem] = []
    # A value that is no table was rejected when the document was opened.
    content = {name: raw for name, raw in content.items() if isinstance(raw, Mapping)}
    beside = folder or Path()
    schemas = _schemas(beside)

    def table(name: str, shape: type[T]) -> T | None:
        if name not in content:
            return None
        return read_table(content[name], shape, schemas[name], f"{file}: {name}", problems)

    devices = None
    if "devices" in content:
        devices = _Reading(f"{file}: devices", beside, seats, problems).devices(content["devices"])
    record = table("record", RecordPlace)
    keys = table("keys", dict[str, Path])
    people = table("people", dict[str, Path])
    control = table("control", ControlPlace)
    screens = table("screens", ScreensPlace)
    if control is not None and control.port is not None and control.port == control.metrics_port:
        what = f"{control.port} is the control port already"
        problems.append(UsageProblem(f"{file}: control.metrics_port", what, "another port"))
    if screens is not None and control is not None:
        _check_port(screens.port, control, f"{file}: screens.port", problems)
    equipment = Equipment(
        devices,
        record,
        None if keys is None else keys["directory"],
        None if people is None else people["file"],
        control,
        screens,
    )
    return equipment, problems


def _check_port(port: int, control: ControlPlace, where: str, problems: list[UsageProblem]) -> None:
    if port in (control.port, control.metrics_port):
        which = "control port" if port == control.port else "port for metrics"
        problems.append(UsageProblem(where, f"{port} is the {which} already", "another port"))


class _Reading:
    """A parser of one [devices]."""

    def __init__(self, where: str, folder: Path, seats: int, problems: list[UsageProblem]) -> None:
        self._where = where
        self._folder = folder
        self._seats = seats
        self._problems = problems

    def devices(self, raw: Mapping[str, Any]) -> DevicePlaces | None:
        where, problems = self._where, self._problems
        before = len(problems)
        refuse_unknown(raw, (*_PARTS, *_BATCH), f"{where}.", problems)
        plain = {name: raw[name] for name in _BATCH if name in raw}
        batch = read_table(plain, CardBatch, _BATCH, where, problems)
        if "shoe" not in raw:
            self._say("shoe", "is missing", 'a table with serial = "..."')
        shoe = self._device(raw, "shoe")
        shuffler = self._device(raw, "shuffler")
        stations = self._stations(raw.get("stations", []))
        standing = self._standing(raw.get("standing", {}))
        self._once([one for one in (shoe, shuffler, *stations) if one is not None])
        if len(problems) > before or shoe is None or batch is None:
            return None
        return DevicePlaces(shoe, shuffler, stations, batch, standing)

    def _say(self, part: str, what: str, allowed: str) -> None:
        at = f"{self._where}.{part}" if part else self._where
        self._problems.append(UsageProblem(at, what, allowed))

    def _device(self, raw: Mapping[str, Any], name: str) -> DevicePlace | None:
        if name not in raw:
            return None
        where = f"{self._where}.{name}"
        return self._placed(read_table(raw[name], DevicePlace, _DEVICE, where, self._problems))

    def _placed(self, one: DevicePlace | None) -> DevicePlace | None:
        return None if one is None else replace(one, port=absolute_port(self._folder, one.port))

    def _stations(self, raw: Any) -> tuple[DevicePlace, ...]:
        if not isinstance(raw, Sequence) or isinstance(raw, str):
            self._say(
                "stations",
                f"{shown(raw)} is not a list",
                "[[devices.stations]]",
            )
            return ()
        if len(raw) > MAX_STATIONS:
            self._say("stations", f"it has {len(raw)} entries", f"at most {MAX_STATIONS}")
        seats = values.list_of(values.whole_number(Range(1, self._seats)), min_length=1)
        keys = {**_DEVICE, "seats": TableKey(seats, required=True)}
        read = (
            read_table(one, DevicePlace, keys, f"{self._where}.stations[{at}]", self._problems)
            for at, one in enumerate(raw)
        )
        stations = tuple(one for one in map(self._placed, read) if one is not None)
        for seat, count in Counter(seat for one in stations for seat in one.seats).items():
            if count > 1:
                self._say("stations", f"seat {seat} has {count} stations", "one for each seat")
        return stations

    def _once(self, devices: Sequence[DevicePlace]) -> None:
        for serial, count in Counter(one.serial for one in devices).items():
            if count > 1:
                self._say("", f"{count} devices have the serial number {serial}", "one for each")
        for port, count in Counter(
            normalized_port(one.port) for one in devices if one.port
        ).items():
            if count > 1:
                self._say("", f"{count} devices have the port {printable(port)}", "one for each")

    # --- standing wagers ------------------------------------------------------------------

    def _standing(self, raw: Any) -> dict[int, dict[str, int]]:
        if not isinstance(raw, Mapping):
            self._say(
                "standing",
                f"{shown(raw)} is not a table",
                "1 = { main = 1000 }",
            )
            return {}
        found: dict[int, dict[str, int]] = {}
        for key, bets in raw.items():
            seat = int(key) if re.fullmatch("[1-9]", str(key)) else 0
            if not 1 <= seat <= self._seats:
                self._say(f"standing.{printable(key)}", "is no seat", f"1 to {self._seats}")
            else:
                found[seat] = dict(self._bets(f"standing.{seat}", bets))
        return dict(sorted(found.items()))

    def _bets(self, part: str, raw: Any) -> Iterator[tuple[str, int]]:
        """Returns the valid bets, in the order of the procedure."""
        if not isinstance(raw, Mapping):
            self._say(part, f"{shown(raw)} is not a table", "{ main = 1000 }")
            return
        refuse_unknown(raw, BETS, f"{self._where}.{part}.", self._problems)
        if "main" not in raw:
            self._say(part, "has no main wager", "main, with or without others")
        for bet in BETS:
            if bet not in raw:
                continue
            where = f"{self._where}.{part}.{bet}"
            amount = read_value(_AMOUNT, raw[bet], where, self._problems)
            if amount is not None:
                yield bet, amount


def check_standing(equipment: Equipment, options: Options, file: str) -> None:
    """Raises UsageProblem if the table's limits do not allow a standing wager."""
    if equipment.devices is None:
        return
    refuse(
        [
            UsageProblem(f"{file}: devices.standing.{seat}.{bet}", f"{amount} is not taken", why)
            for seat, bets in equipment.devices.standing.items()
            for bet, amount in bets.items()
            if (why := _beyond(options, bet, amount))
        ]
    )


def _beyond(options: Options, bet: str, amount: int) -> str:
    """Returns the limit that the wager breaks, as allowed value; empty if none."""
    limit: Limit = getattr(options.limits, bet)
    unit = options.money.unit
    if amount % unit:
        return f"multiples of {unit}"
    if limit.min is not None and amount < limit.min:
        return f"{limit.min} or more"
    if limit.max is not None and amount > limit.max:
        return f"{limit.max} or less"
    if limit.step is not None and amount % limit.step:
        return f"multiples of {limit.step}"
    return ""


# --- as text and JSON -------------------------------------------------------------------------


def lines(equipment: Equipment) -> Iterator[str]:
    """Yields the equipment as text, one part a line."""
    devices, record = equipment.devices, equipment.record
    if devices is not None:
        named = (("shoe", devices.shoe), ("shuffler", devices.shuffler))
        for name, one in (*named, *(("station", one) for one in devices.stations)):
            if one is not None:
                seats = f", seats {', '.join(map(str, one.seats))}" if one.seats else ""
                port = f" at {one.port}" if one.port else ""
                yield f"{name} {one.serial}{port}{seats}"
        backs = ", ".join(map(str, devices.batch.backs)) or "any"
        yield f"cards read with {devices.batch.min_confidence} % or more; backs: {backs}"
        for seat, bets in devices.standing.items():
            wagers = ", ".join(f"{bet} {amount}" for bet, amount in bets.items())
            yield f"seat {seat} stands for {wagers}"
    if record is not None:
        starts = f"{record.day_starts // 60:02}:{record.day_starts % 60:02}"
        yield f"record {record.directory}; the day starts at {starts} UTC"
        yield f"unwitnessed after {record.unwitnessed_hours} h"
    if equipment.keys is not None:
        yield f"keys {equipment.keys}"
    if equipment.people is not None:
        yield f"people {equipment.people}"
    control = equipment.control
    if control is not None:
        port = "" if control.port is None else f" and at 127.0.0.1:{control.port}"
        yield f"control at {control.socket}{port}"
        if control.metrics_port is not None:
            yield f"metrics at 127.0.0.1:{control.metrics_port}"
    if equipment.screens is not None:
        yield line_of(equipment.screens)


def as_json(equipment: Equipment) -> dict[str, object]:
    """Returns the equipment for JSON output; missing parts are null."""
    found: dict[str, object] = msgspec.to_builtins(
        equipment, enc_hook=str, builtin_types=(), str_keys=True
    )
    return found
