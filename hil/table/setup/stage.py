"""A whole table: simulated devices in this process, the daemon as a child process.

    async with staged(folder, fitted=SEVEN) as stage:
        await stage.serve(example("mega-1"))
        async with open_console(stage.control) as screen:
            await Robot(stage, screen, players).play(lambda shown: ...)
        await stage.daemon.stop()

The devices run in this process's event loop, behind real ptys and a simulated USB bus that the
daemon opens as any other. Each has a control socket, so that other processes can operate it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from controller.config import TAKEN_AWAY, TableConfig, flat, load_table, read_named
from controller.errors import UsageProblem
from controller.sim.scripts import Script
from firmware_protocol.device import FolderProblem, ShufflePace
from hil.ports import LinkTaken, PathTaken
from hil.simulator import LiveDevice, device_in_loop
from hil.table.setup.daemon import Daemon
from hil.table.setup.house import SEVEN, STAFF, FittedDevice, House, RobotBadge, private

NO_BURN: Final[Mapping[str, object]] = {"burn.on_shuffle": 0, "burn.on_dealer": 0}
"""A script's shoe holds dealt cards only."""


class TableContent(Struct, frozen=True):
    """The game, options and wagers of a table file."""

    head: Mapping[str, object]
    """The file's [table], but its name."""
    currency: Mapping[str, object] = {}
    options: Mapping[str, object] = {}
    """By dotted path."""
    standing: Mapping[str, Mapping[str, int]] = {}
    """What the bet button of a seat places."""
    screens: int | None = None
    """The port of its pages, 0 for any free one; None: it serves none."""


def example(table: str) -> TableContent:
    """Returns the content of a table of configs/tables, without devices and paths."""
    content: Mapping[str, Any] = read_named("table", table, "table").content
    head = {key: value for key, value in content["table"].items() if key != "name"}
    options = dict(flat(content["options"]))
    standing = content["devices"]["standing"]
    return TableContent(head, content["currency"], options, standing)


def scripted(script: Script) -> TableContent:
    """Returns the content for a script's rounds."""
    head = {"game": script.game, "title": "Scripts"}
    return TableContent(head, {}, {**dict(flat(script.config)), **NO_BURN})


def table_text(house: House, deals: TableContent, name: str, control: Path) -> str:
    """Returns the file's text, with absolute paths."""
    return "".join(f"{line}\n" for line in _lines(house, deals, name, control))


def _lines(house: House, deals: TableContent, name: str, control: Path) -> Iterator[str]:
    yield "# Made for a simulated table."
    yield "schema = 1"
    yield from _table("table", {"name": name, **deals.head})
    yield from _table("currency", deals.currency)
    yield from _table("options", deals.options)
    for device in house.config:
        fields: dict[str, object] = {"serial": device.serial, "port": house.address(device)}
        if device.profile == "station":
            yield from _table("[devices.stations]", {**fields, "seats": device.seats})
        else:
            yield from _table(f"devices.{device.profile}", fields)
    yield from _table("devices.standing", deals.standing)
    yield from _table("record", {"directory": str(house.record)})
    yield from _table("keys", {"directory": str(house.keys)})
    yield from _table("people", {"file": str(house.people)})
    yield from _table("control", {"socket": str(control)})
    if deals.screens is not None:
        yield from _table("screens", {"port": deals.screens})


def _table(name: str, fields: Mapping[str, object]) -> Iterator[str]:
    if fields:
        yield from ("", f"[{name}]")
        yield from (f"{_text(key)} = {toml(value)}" for key, value in fields.items())


def toml(value: object) -> str:
    """Returns a value in TOML. Raises TypeError for other types."""
    match value:
        case None:
            return _text(TAKEN_AWAY)
        case str():
            return _text(value)
        case bool() | int() | float():
            return json.dumps(value)
        case Mapping():
            pairs = (f"{_text(str(key))} = {toml(one)}" for key, one in value.items())
            return f"{{ {', '.join(pairs)} }}"
        case list() | tuple():
            return f"[{', '.join(map(toml, value))}]"
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a table file")


def _text(value: str) -> str:
    """JSON's way is TOML's, but for characters that either escapes and the other does not."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


NAME: Final = "demo-1"
SHUFFLE_MS: Final = 20
"""Simulated shuffles are short."""
_LONGEST_SOCKET: Final = 100
"""Bytes; the kernel takes a few more."""


class Stage:
    """The devices of a table and the daemon that serves it; made by `staged`."""

    def __init__(
        self, house: House, lives: dict[str, LiveDevice], daemon: Daemon, control: Path, name: str
    ) -> None:
        self.house = house
        self.daemon = daemon
        self.control = control
        self.name = name
        self._lives = lives
        self._of = {device.profile: lives[device.serial] for device in house.config}
        self._table: TableConfig | None = None

    # --- devices --------------------------------------------------------------------------

    @property
    def table(self) -> TableConfig:
        """The table that was written or served last."""
        assert self._table is not None, "nothing was served yet"
        return self._table

    @property
    def decks(self) -> int:
        return self.table.sheet.options.decks

    @property
    def shoe(self) -> LiveDevice:
        return self._of["shoe"]

    @property
    def shuffler(self) -> LiveDevice:
        return self._of["shuffler"]

    def station_of(self, seat: int) -> LiveDevice | None:
        for device in self.house.config:
            if seat in device.seats:
                return self._lives[device.serial]
        return None

    @property
    def devices(self) -> tuple[tuple[FittedDevice, LiveDevice], ...]:
        """All devices with their configuration."""
        return tuple((device, self._lives[device.serial]) for device in self.house.config)

    # --- the daemon -----------------------------------------------------------------------

    async def serve(self, deals: TableContent) -> None:
        """Write the table file and start the daemon, which must not run. Raises DidNotServe and
        UsageProblem."""
        self.write(deals)
        await self.daemon.start()

    def write(self, deals: TableContent) -> None:
        """Write the table file. Raises UsageProblem if it is not valid."""
        text = table_text(self.house, deals, self.name, self.control)
        file = self.daemon.file
        fresh = file.with_name(f".{file.name}")
        fresh.write_text(text, encoding="utf-8")
        self._table = load_table(fresh)
        fresh.replace(file)


def _unusable(where: str, why: str = "") -> UsageProblem:
    what = f"{why}no device can be simulated there"
    return UsageProblem(where, what, "a folder that nobody else uses")


@asynccontextmanager
async def staged(
    folder: Path,
    fitted: tuple[FittedDevice, ...] = SEVEN,
    *,
    name: str = NAME,
    gap_ms: int | None = None,
    people: tuple[RobotBadge, ...] = STAFF,
) -> AsyncIterator[Stage]:
    """Yields a stage in this folder, which is created if needed; no process or port remains.

    `gap_ms` is the minimum time between two cards of the shoe. Raises UsageProblem."""
    house = House(private(folder).resolve(), fitted, people)
    house.make()
    async with AsyncExitStack() as stack:
        lives = {}
        for device in fitted:
            try:
                live = device_in_loop(
                    device.profile,
                    house.place(device),
                    usb=house.bus if device.usb else None,
                    seats=device.seats,
                    gap_ms=gap_ms,
                )
                lives[device.serial] = await stack.enter_async_context(live)
            except FolderProblem as problem:
                raise _unusable(problem.where, f"{problem.what}: ") from None
            except (LinkTaken, PathTaken) as problem:
                raise _unusable(str(problem)) from None
        control = house.folder / "control.sock"
        if len(os.fsencode(control)) > _LONGEST_SOCKET:
            short = stack.enter_context(tempfile.TemporaryDirectory(prefix="holecard-"))
            control = Path(short) / control.name
        log = house.folder / "daemon.log"
        daemon = await stack.enter_async_context(Daemon(house.folder / "table.toml", log))
        stage = Stage(house, lives, daemon, control, name)
        stage.shuffler.request(ShufflePace(shuffle_ms=SHUFFLE_MS))
        yield stage
