"""Checks of the paths of a simulated device, before anything is created."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from controller.errors import UsageProblem
from firmware_protocol.device import DeviceFolder
from hil.ports import check_link, check_path
from hil.simulator.run import LOCK, DeviceSetup

_SUFFIX: Final = re.compile(r"(-[0-9]+)?(\.[0-9]+)?(\.new)?$")
"""What follows a name in the temporary files of a killed device, or in its other ports."""


def check_paths(setup: DeviceSetup) -> None:
    """Raises UsageProblem, PathTaken or LinkTaken if the files of a device cannot be created."""
    for option, folder in (("--dir", setup.place), ("--usb", setup.usb)):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise UsageProblem(option, f"{folder} is no folder", "a folder, or a name that is free")
    for option, path in (("--port", setup.port), ("--control", setup.control)):
        if path is not None and path.parent != setup.place and not path.parent.is_dir():
            what = f"there is no folder {path.parent}"
            raise UsageProblem(option, what, "a name in a folder that exists")
    _check_distinct(setup)
    check_path(setup.control)
    if setup.port is not None:
        check_link(setup.port)


def _check_distinct(setup: DeviceSetup) -> None:
    """The port, the control socket and the folders have different paths."""
    taken = {_real(setup.place): "--dir"}
    if setup.usb is not None:
        taken[_real(setup.usb)] = "--usb"
    for option, path in (("--port", setup.port), ("--control", setup.control)):
        other = option if path is None else taken.setdefault(_real(path), option)
        if other != option:
            raise UsageProblem(option, f"{path} is what {other} names", "another path")


def _real(path: Path) -> Path:
    """The path with a normalised folder."""
    return Path(os.path.realpath(path.parent), path.name)


def foreign_files(setup: DeviceSetup) -> list[str]:
    """The files in the folder that no device has created, not even one that was killed."""
    place = setup.place
    if not place.exists():
        return []
    paths = (path for path in (setup.control, setup.port, setup.usb) if path is not None)
    own = {path.name for path in (*DeviceFolder(place).all, *paths)} | {LOCK, "control", "port"}
    names = sorted(path.name for path in place.iterdir())
    return [name for name in names if not {name, _SUFFIX.sub("", name).removeprefix(".")} & own]
