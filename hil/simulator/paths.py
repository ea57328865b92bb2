"""Where a simulated device is to live and to be plugged in: is there room for it?

Looked at before anything is made: what is refused leaves nothing behind.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from controller.errors import UsageProblem
from firmware_protocol.device.storage import DeviceFolder
from hil.ports import check_link, check_path

if TYPE_CHECKING:
    from hil.simulator import run as sim

_LEFT: Final = re.compile(r"(-[0-9]+)?(\.[0-9]+)?(\.new)?$")
"""How the name goes on of a file that a killed device has left, or of its other port."""


def check_paths(setup: sim.DeviceSetup) -> None:
    """What is to be made there can be. UsageProblem, PathTaken, LinkTaken."""
    for option, folder in (("--dir", setup.place), ("--usb", setup.usb)):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise UsageProblem(option, f"{folder} is no folder", "a folder, or a name that is free")
    for option, path in (("--port", setup.port), ("--control", setup.control)):
        if path is None:
            continue
        if path.parent != setup.place and not path.parent.is_dir():
            what = f"there is no folder {path.parent}"
            raise UsageProblem(option, what, "a name in a folder that is there")
    _look_apart(setup)
    # What others have put there stays, and no device is made in vain.
    check_path(setup.control)
    if setup.port is not None:
        check_link(setup.port)


def _look_apart(setup: sim.DeviceSetup) -> None:
    """The port and the control socket are two things, and neither is a folder."""
    taken = {_real(setup.place): "--dir"}
    if setup.usb is not None:
        taken[_real(setup.usb)] = "--usb"
    for option, path in (("--port", setup.port), ("--control", setup.control)):
        other = option if path is None else taken.setdefault(_real(path), option)
        if other != option:
            raise UsageProblem(option, f"{path} is what {other} names", "another path")


def _real(path: Path) -> Path:
    """Where it is to be made, however the way there is written."""
    return Path(os.path.realpath(path.parent), path.name)


def foreign_files(setup: sim.DeviceSetup) -> list[str]:
    """What lies in the folder and belongs to no device, not even to one that was killed."""
    from hil.simulator import run as sim

    place = setup.place
    if not place.exists():
        return []
    ways = (path for path in (setup.control, setup.port, setup.usb) if path is not None)
    own = {path.name for path in (*DeviceFolder(place).all, *ways)} | {sim.LOCK, "control", "port"}
    names = sorted(path.name for path in place.iterdir())
    return [name for name in names if not {name, _LEFT.sub("", name).removeprefix(".")} & own]
