"""run a simulated shoe, shuffler or station behind a real port"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any, Final, cast, get_args

from controller.commands import Subparsers, add_command, add_group, help_text, print_json, say
from controller.errors import EXIT_NO, EXIT_OUTPUT, UsageProblem
from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    SERIAL_ALLOWED,
    Answer,
    DeviceFolder,
    FolderProblem,
    create_identity,
    is_device_serial,
    load_identity,
    pair_directly,
)
from firmware_protocol.messages import MAX_SEAT
from hil.control import register_do
from hil.devices import CLASSES, SimulatedClass
from hil.faults import BREAKS, BY_NAME
from hil.ports import BusFull, LinkTaken, PathTaken, UsbStatus, check_link, check_path
from hil.simulator import run as simulator
from hil.simulator.run import LOCK, DeviceSetup, exclusive_use

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


_GONE: Final = {"ENODEV": UsbStatus.NO_DEVICE, "EIO": UsbStatus.IO}
_ADVICE: Final = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there, or have the quota raised",
    errno.EFBIG: "have the limit raised that this user's files have",
    errno.EIO: "the disk fails: move the folder to another one",
    errno.EROFS: "have it mounted for writing",
    errno.EMFILE: "close files or terminals of other programs",
    errno.ENFILE: "close files or terminals of other programs",
}
"""What to do about an error of the system."""
_PATH_ERRORS: Final = (
    errno.EACCES,
    errno.EEXIST,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
)
"""Errors that another path avoids, as long as the device does not run."""
_STOPPED: Final = "stopped by Ctrl-C or SIGTERM"


def register(subparsers: Subparsers) -> None:
    commands = add_group(
        subparsers,
        "sim",
        "run a simulated shoe, shuffler or station",
        description="Runs one simulated device behind a real port, or sends a request to one.",
        epilog=help_text(
            (
                "sim shoe --dir run/shoe --create",
                "sim do run/shoe/control service on=true",
                "sim do run/shoe/control describe --get label",
                """sim do run/shoe/control '{"do": "draw", "count": 3}'""",
                "sim station --dir run/station --create --seat 1 2 --usb run/bus",
                "sim breaks --profile station",
            ),
            "The verbs of the control socket are in hil/CONTROL.md.",
            {
                0: f"done, or {_STOPPED}",
                EXIT_NO: "the device refuses",
                2: "wrong arguments",
                EXIT_OUTPUT: "the device's disk fails, or the device stopped before it answered",
            },
        ),
        metavar="|".join((*CLASSES, "do", "breaks")),
        required=False,
    )
    for one in CLASSES.values():
        _add_device(commands, one)
    register_do(commands)
    breaks = add_command(commands, "breaks", "list the breaks", _list, json=True)
    breaks.add_argument("--profile", choices=get_args(Profile))


def _add_device(commands: Subparsers, one: SimulatedClass) -> None:
    name = one.profile
    other = one.serial.replace("1", "2")
    parser = add_command(
        commands,
        name,
        f"run a {name} until Ctrl-C",
        _run,
        description=f"Runs a simulated {name} until Ctrl-C or SIGTERM.",
        epilog=help_text(
            (
                f"sim {name} --dir run/{name} --create",
                f"sim {name} --dir run/{name} --break nak-ignored",
                f"sim {name} --dir run/other --create --serial {other} --usb run/bus",
            ),
            "It prints its port, its control socket and its label when it starts.",
            {0: _STOPPED, 2: "wrong arguments", EXIT_OUTPUT: "the device's disk fails"},
        ),
    )
    parser.add_argument("--dir", required=True, help="the folder of the device")
    parser.add_argument("--create", action="store_true", help="create it if the folder has none")
    parser.add_argument("--serial", help=f"serial number; a new one gets {one.serial}")
    parser.add_argument("--port", metavar="LINK", help="its serial port; DIR/port")
    parser.add_argument("--usb", metavar="BUSDIR", help="plug it into this bus instead")
    parser.add_argument(
        "--gone",
        choices=tuple(_GONE),
        help="with --usb: error of a pending read when the cable is pulled; ENODEV",
    )
    parser.add_argument("--control", metavar="SOCKET", help="DIR/control")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="reproducible keys and salts, which are not secret"
    )
    parser.add_argument(
        "--break",
        dest="breaks",
        action="extend",
        nargs="+",
        default=[],
        metavar="NAME",
        help="deliberate defects",
    )
    parser.add_argument("--paired-with", metavar="HEX", help="pair with this host's public key")
    parser.add_argument("--no-sync", action="store_true", help="do not sync files to the disk")
    parser.add_argument("--json", action="store_true", help="print what runs as one line of JSON")
    if one.profile == "station":
        parser.add_argument(
            "--seat", type=int, action="extend", nargs="+", metavar="N", help="its seats; 1"
        )
    parser.set_defaults(device=one, seat=[])


# --- running a device -----------------------------------------------------------------------------


def _run(args: argparse.Namespace) -> int:
    setup = _setup(args)
    runs = False

    def on_ready(described: Answer) -> None:
        nonlocal runs
        runs = True
        announce(args, setup, described)

    try:
        check_paths(setup)
        create_device(args, setup)
        with exclusive_use(setup.place):
            _check_identity(args, setup)
            asyncio.run(simulator.run(setup, on_ready))
    except FolderProblem as problem:
        raise UsageProblem(problem.where, problem.what, problem.allowed) from None
    except LinkTaken as problem:
        raise UsageProblem("--port", str(problem), "a name that is free") from None
    except PathTaken as problem:
        raise UsageProblem("--control", str(problem), "a path that is free") from None
    except BusFull as problem:
        raise UsageProblem("--usb", str(problem), "a bus with a free address") from None
    except OSError as problem:
        if problem.filename is None:  # stdout, not a file of the device
            raise
        return _report_disk(problem, runs=runs)
    return 0


def _report_disk(problem: OSError, *, runs: bool) -> int:
    """Report an error of the system: as a wrong argument, or as a failing disk."""
    where, why = os.fsdecode(problem.filename), problem.strerror or str(problem)
    if (problem.errno or errno.ENAMETOOLONG) in _PATH_ERRORS and not runs:
        raise UsageProblem(where, why, "a folder that can be written to") from None
    advice = _ADVICE.get(problem.errno or 0, "correct it")
    say(f"{where}: {why}; {advice}, then start it again")
    return EXIT_OUTPUT


def _setup(args: argparse.Namespace) -> DeviceSetup:
    for option in ("dir", "port", "usb", "control"):
        if getattr(args, option) == "":
            raise UsageProblem(f"--{option}", "is empty", "a path")
    if args.usb is not None and args.port is not None:
        raise UsageProblem("--usb", "a device has one cable", "--port or --usb")
    if args.gone is not None and args.usb is None:
        raise UsageProblem("--gone", "a serial port has no such reads", "--gone with --usb")
    place = Path(args.dir)
    return DeviceSetup(
        device_class=args.device.device_class,
        place=place,
        control=Path(args.control or place / "control"),
        port=None if args.usb is not None else Path(args.port or place / "port"),
        usb=None if args.usb is None else Path(args.usb),
        gone=_GONE[args.gone or "ENODEV"],
        breaks=_breaks(args),
        seats=_seats(args),
        seed=args.seed,
        sync=not args.no_sync,
    )


def _breaks(args: argparse.Namespace) -> tuple[str, ...]:
    profile = args.device.profile
    for name in args.breaks:
        found = BY_NAME.get(name)
        if found is None or (found.profiles and profile not in found.profiles):
            known = ", ".join(one["name"] for one in _listed(profile))
            raise UsageProblem("--break", f"a {profile} has no break {name!r}", known)
    return tuple(args.breaks)


def _seats(args: argparse.Namespace) -> tuple[int, ...]:
    seats: list[int] = args.seat
    for seat in seats:
        if not 1 <= seat <= MAX_SEAT:
            raise UsageProblem("--seat", f"{seat} is no seat", f"1 to {MAX_SEAT}")
    if len(set(seats)) != len(seats):
        raise UsageProblem("--seat", "a seat is named twice", "each seat once")
    return tuple(seats)


def create_device(args: argparse.Namespace, setup: DeviceSetup) -> None:
    """Create the device, with --create and unless the folder has one."""
    place = setup.place
    if args.serial is not None and not is_device_serial(args.serial):
        raise UsageProblem("--serial", f"{args.serial!r} is no serial number", SERIAL_ALLOWED)
    if (place / "identity.toml").exists():
        return
    if not args.create:
        raise UsageProblem(f"--dir {place}", "has no device", "--create makes one")
    for name in foreign_files(setup):
        what = f"has {_printable(Path(name))}, which is no file of a device"
        raise UsageProblem(f"--dir {place}", what, "an empty folder, or a name that is free")
    _key(args.paired_with)
    serial = args.device.serial if args.serial is None else args.serial
    create_identity(place, setup.device_class, serial, rng=setup.random("maker"))


def _check_identity(args: argparse.Namespace, setup: DeviceSetup) -> None:
    """Check that the device is the requested one, and pair it. The folder is locked."""
    place = setup.place
    own = load_identity(place)
    if own.device_class is not setup.device_class:
        name = own.device_class.name.lower()
        raise UsageProblem(f"--dir {place}", f"has a {name}", f"holecard sim {name}")
    if args.serial is not None and args.serial != own.serial:
        raise UsageProblem("--serial", f"the device has {own.serial}", "none, or that one")
    paired = _key(args.paired_with)
    if paired is not None:
        pair_directly(place, paired)


def _key(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise UsageProblem("--paired-with", "no public key", "64 hexadecimal digits")
    return key


def announce(args: argparse.Namespace, setup: DeviceSetup, described: Answer) -> None:
    """Print what runs, once it does."""
    if args.json:
        print(json.dumps({**described, "control": str(setup.control)}), flush=True)
        return
    # In one write: the reader may close the pipe after the first line.
    lines = _ready_lines(setup, described)
    print("".join(f"{line}\n" for line in lines), end="", flush=True)


def _printable(path: Path) -> str:
    """The path as text for a terminal: its name need not be UTF-8."""
    return os.fsencode(path).decode(errors="replace")


def _ready_lines(setup: DeviceSetup, described: Answer) -> Iterator[str]:
    serial = described["serial"]
    yield f"{described['class']} {serial} ({described['maker']} {described['model']})"
    control = _printable(setup.control)
    if setup.usb is not None:
        address = f"usb+sim={_printable(setup.usb)}:{serial}"
        yield f"  usb       {_printable(setup.usb)}, address {described['usb_address']}"
    else:
        port = described["port"]
        address = port if "/" in port else f"./{port}"
        yield f"  port      {port}"
    yield f"  control   {control}"
    yield f"  label     {described['label']}"
    yield f"  key       {described['fingerprint']}"
    if described["breaks"]:
        yield f"  breaks    {', '.join(described['breaks'])}"
    if described["host"] is None:
        yield "  host      not paired. Turn the service switch on and pair with the label's code:"
        yield f"              holecard sim do {quote(control)} service on=true"
        yield f"              holecard devices pair {quote(address)}"
    else:
        yield f"  host      paired with {described['host']}"
    yield "runs until Ctrl-C"


# --- the breaks -----------------------------------------------------------------------------------


def _list(args: argparse.Namespace) -> int:
    listed = _listed(args.profile)
    if args.json:
        print_json(listed)
        return 0
    width = max(len(one["name"]) for one in listed)
    for one in listed:
        of_classes = f" ({', '.join(one['profiles'])})" if one["profiles"] else ""
        print(f"{one['name']:<{width}}  {one['text']}{of_classes}; {', '.join(one['items'])}")
    return 0


def _listed(profile: str | None) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "text": one.text,
            "profiles": list(one.profiles),
            "items": list(one.items),
        }
        for one in BREAKS
        if profile is None or not one.profiles or cast(Profile, profile) in one.profiles
    ]
