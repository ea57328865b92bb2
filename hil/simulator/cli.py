"""run a simulated shoe, shuffler or station behind a real port"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from controller.errors import UsageProblem
from firmware_protocol.conformance import Profile
from firmware_protocol.device import identity
from firmware_protocol.device.interfaces import Answer
from firmware_protocol.device.storage import FolderProblem
from firmware_protocol.messages.enums import DeviceClass
from firmware_protocol.messages.limits import MAX_SEAT
from hil.control import cli
from hil.faults import BREAKS, BY_NAME
from hil.ports import UsbStatus
from hil.simulator.paths import check_paths, foreign_files

if TYPE_CHECKING:
    from hil.simulator import run as sim

CLASSES: Final = {
    "shoe": DeviceClass.SHOE,
    "shuffler": DeviceClass.SHUFFLER,
    "station": DeviceClass.STATION,
}
_SERIALS: Final = {"shoe": "SH-0001", "shuffler": "SF-0001", "station": "ST-0001"}
_GONE: Final = {"ENODEV": UsbStatus.NO_DEVICE, "EIO": UsbStatus.IO}
_MEND: Final = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there, or have the quota raised",
    errno.EFBIG: "have the limit raised that this user's files have",
    errno.EIO: "the disk fails: move the folder to another one",
    errno.EROFS: "have it mounted for writing",
    errno.EMFILE: "end what holds so many",
    errno.ENFILE: "end what holds so many",
}
"""What is to be done about what the system says."""
_CHOICE: Final = (
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
"""What another choice of a folder would mend, as long as nothing runs there."""
EXIT_DISK: Final = 74
_EPILOG: Final = """\
examples:
  holecard sim shoe --dir run/shoe --create
  holecard sim do run/shoe/control service on=true
  holecard sim do run/shoe/control describe --get label
  holecard sim do run/shoe/control '{"do": "draw", "count": 3}'
  holecard sim station --dir run/station --create --seat 1 2 --usb run/bus
  holecard sim breaks --profile station

The verbs of the control socket are in hil/CONTROL.md. Exit codes: 0 done, or stopped by Ctrl-C or
SIGTERM; 1 the device says no; 2 wrong arguments; 74 the disk fails that the device lives on, or the
device goes before it has answered.
"""
_EXAMPLES: Final = """\
examples:
  holecard sim {name} --dir run/{name} --create
  holecard sim {name} --dir run/{name} --break nak-ignored
  holecard sim {name} --dir run/other --create --serial {serial} --usb run/bus

What is said when it begins names its port, its control socket and its label. Exit codes: 0 stopped
by Ctrl-C or SIGTERM; 2 wrong arguments; 74 the disk fails that it lives on.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "sim",
        help="run a simulated shoe, shuffler or station",
        description="Runs one simulated device behind a real port, or puts a hand to one.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="shoe|shuffler|station|do|breaks")
    for name in CLASSES:
        _add_device(commands, name)
    cli.register(commands)
    _add_breaks(commands)


def _add_device(commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str) -> None:
    one = commands.add_parser(
        name,
        help=f"run a {name} until Ctrl-C",
        description=f"Runs a simulated {name} until Ctrl-C or SIGTERM.",
        epilog=_EXAMPLES.format(name=name, serial=_SERIALS[name].replace("1", "2")),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    one.add_argument("--dir", required=True, help="the folder it lives in")
    one.add_argument("--create", action="store_true", help="make it, if there is none yet")
    one.add_argument("--serial", help=f"serial number; a new one gets {_SERIALS[name]}")
    one.add_argument("--port", metavar="LINK", help="its serial port; DIR/port")
    one.add_argument("--usb", metavar="BUSDIR", help="plug it into this bus instead")
    one.add_argument(
        "--gone",
        choices=tuple(_GONE),
        help="with --usb: what a read that waits gets when the cable is pulled; ENODEV",
    )
    one.add_argument("--control", metavar="SOCKET", help="DIR/control")
    one.add_argument(
        "--seed", type=int, metavar="N", help="keys and salts that come again: nothing is secret"
    )
    one.add_argument(
        "--break",
        dest="breaks",
        action="extend",
        nargs="+",
        default=[],
        metavar="NAME",
        help="deliberate defects",
    )
    one.add_argument(
        "--paired-with", metavar="HEX", help="the maker's bench way: a host's public key"
    )
    one.add_argument("--no-sync", action="store_true", help="do not wait for the disk")
    one.add_argument("--json", action="store_true", help="say what runs as one line of JSON")
    if name == "station":
        one.add_argument(
            "--seat", type=int, action="extend", nargs="+", metavar="N", help="its seats; 1"
        )
    one.set_defaults(func=_run, device=name, seat=[])


def _add_breaks(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    breaks = commands.add_parser("breaks", help="list the breaks", allow_abbrev=False)
    breaks.add_argument("--profile", choices=get_args(Profile))
    breaks.add_argument("--json", action="store_true", help="print JSON")
    breaks.set_defaults(func=_list)


# --- running one ----------------------------------------------------------------------------------


def _run(args: argparse.Namespace) -> int:
    from hil.ports import BusFull, LinkTaken, PathTaken
    from hil.simulator import run as sim

    setup = _setup(args)
    runs = False

    def ready(told: Answer) -> None:
        nonlocal runs
        runs = True
        _say(args, setup, told)

    try:
        check_paths(setup)
        _settle(args, setup)
        with sim.exclusive_use(setup.place):
            _own(args, setup)
            asyncio.run(sim.run(setup, ready))
    except FolderProblem as problem:
        raise UsageProblem(problem.where, problem.what, problem.allowed) from None
    except LinkTaken as problem:
        raise UsageProblem("--port", str(problem), "a name that is free") from None
    except PathTaken as problem:
        raise UsageProblem("--control", str(problem), "a path that is free") from None
    except BusFull as problem:
        raise UsageProblem("--usb", str(problem), "a bus with room") from None
    except OSError as problem:
        if problem.filename is None:  # not of a file of the device: what it says went nowhere
            raise
        return _refused(problem, runs=runs)
    return 0


def _refused(problem: OSError, *, runs: bool) -> int:
    """What the system refused: the user's choice, or a disk that fails."""
    where, why = os.fsdecode(problem.filename), problem.strerror or str(problem)
    if (problem.errno or errno.ENAMETOOLONG) in _CHOICE and not runs:
        raise UsageProblem(where, why, "a folder that can be written to") from None
    mend = _MEND.get(problem.errno or 0, "see to it")
    print(f"holecard: {where}: {why}; {mend}, then start it again", file=sys.stderr)
    return EXIT_DISK


def _setup(args: argparse.Namespace) -> sim.DeviceSetup:
    from hil.simulator import run as sim

    for option in ("dir", "port", "usb", "control"):
        if getattr(args, option) == "":
            raise UsageProblem(f"--{option}", "is empty", "a path")
    if args.usb is not None and args.port is not None:
        raise UsageProblem("--usb", "a device has one cable", "--port or --usb")
    if args.gone is not None and args.usb is None:
        raise UsageProblem("--gone", "a serial port has no such reads", "--gone with --usb")
    place = Path(args.dir)
    return sim.DeviceSetup(
        device_class=CLASSES[args.device],
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
    for name in args.breaks:
        broken = BY_NAME.get(name)
        if broken is None or (broken.profiles and args.device not in broken.profiles):
            known = ", ".join(one["name"] for one in _listed(args.device))
            raise UsageProblem("--break", f"a {args.device} has no break {name!r}", known)
    return tuple(args.breaks)


def _seats(args: argparse.Namespace) -> tuple[int, ...]:
    seats: list[int] = args.seat
    for seat in seats:
        if not 1 <= seat <= MAX_SEAT:
            raise UsageProblem("--seat", f"{seat} is no seat", f"1 to {MAX_SEAT}")
    if len(set(seats)) != len(seats):
        raise UsageProblem("--seat", "a seat is named twice", "each seat once")
    return tuple(seats)


def _settle(args: argparse.Namespace, setup: sim.DeviceSetup) -> None:
    """A device lives in the folder, or a new one is made."""
    place = setup.place
    if args.serial is not None and not identity.is_serial(args.serial):
        raise UsageProblem(
            "--serial", f"{args.serial!r} is no serial number", identity.SERIAL_ALLOWED
        )
    if (place / "identity.toml").exists():
        return
    if not args.create:
        raise UsageProblem(f"--dir {place}", "no device lives there", "--create makes one")
    for name in foreign_files(setup):
        what = f"holds {shown(Path(name))}, which is nothing of a device's"
        raise UsageProblem(f"--dir {place}", what, "an empty folder, or a name that is free")
    _key(args.paired_with)
    serial = _SERIALS[args.device] if args.serial is None else args.serial
    identity.create(place, setup.device_class, serial, rng=setup.random("maker"))


def _own(args: argparse.Namespace, setup: sim.DeviceSetup) -> None:
    """The device that lives there is the one that is meant. It is not running: we are the sole."""
    place = setup.place
    own = identity.load(place)
    if own.device_class is not setup.device_class:
        name = own.device_class.name.lower()
        raise UsageProblem(f"--dir {place}", f"a {name} lives there", f"holecard sim {name}")
    if args.serial is not None and args.serial != own.serial:
        raise UsageProblem("--serial", f"the device has {own.serial}", "none, or that one")
    paired = _key(args.paired_with)
    if paired is not None:
        identity.pair_directly(place, paired)


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


def _say(args: argparse.Namespace, setup: sim.DeviceSetup, told: Answer) -> None:
    if args.json:
        print(json.dumps({**told, "control": str(setup.control)}), flush=True)
        return
    # In one piece: a reader that goes after the first line has got it all, and the device runs on.
    print("".join(f"{line}\n" for line in _words(setup, told)), end="", flush=True)


def shown(path: Path) -> str:
    """As text that any terminal takes: a folder's name need not be UTF-8."""
    return os.fsencode(path).decode(errors="replace")


def _words(setup: sim.DeviceSetup, told: Answer) -> Iterator[str]:
    yield f"{told['class']} {told['serial']} ({told['maker']} {told['model']})"
    control = shown(setup.control)
    if setup.usb is not None:
        port = f"usb+sim={shown(setup.usb)}:{told['serial']}"
        yield f"  usb       {shown(setup.usb)}, address {told['usb_address']}"
    else:
        port = told["port"] if "/" in told["port"] else f"./{told['port']}"
        yield f"  port      {told['port']}"
    yield f"  control   {control}"
    yield f"  label     {told['label']}"
    yield f"  key       {told['fingerprint']}"
    if told["breaks"]:
        yield f"  breaks    {', '.join(told['breaks'])}"
    if told["host"] is None:
        yield "  host      not paired. Turn the service switch on and pair with the label's code:"
        yield f"              holecard sim do {quote(control)} service on=true"
        yield f"              holecard devices pair {quote(port)}"
    else:
        yield f"  host      paired with {told['host']}"
    yield "runs until Ctrl-C"


# --- the breaks -----------------------------------------------------------------------------------


def _list(args: argparse.Namespace) -> int:
    listed = list(_listed(args.profile))
    if args.json:
        print(json.dumps(listed, indent=2))
        return 0
    width = max(len(one["name"]) for one in listed)
    for one in listed:
        for_whom = f" ({', '.join(one['profiles'])})" if one["profiles"] else ""
        print(f"{one['name']:<{width}}  {one['text']}{for_whom}; {', '.join(one['items'])}")
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
