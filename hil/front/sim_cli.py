"""run a simulated shoe, shuffler or station behind a real port"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from controller.rules.problem import UsageProblem
from firmware_protocol.conformance import Profile
from firmware_protocol.enums import DeviceClass
from firmware_protocol.limits import MAX_SEAT
from hil.device import identity
from hil.device.breaks import BREAKS, BY_NAME
from hil.device.place import PlaceProblem
from hil.front.usb_words import Status

if TYPE_CHECKING:
    from hil.front import sim

CLASSES: Final = {
    "shoe": DeviceClass.SHOE,
    "shuffler": DeviceClass.SHUFFLER,
    "station": DeviceClass.STATION,
}
_SERIALS: Final = {"shoe": "SH-0001", "shuffler": "SF-0001", "station": "ST-0001"}
_GONE: Final = {"ENODEV": Status.NO_DEVICE, "EIO": Status.IO}
_EPILOG: Final = """\
examples:
  holecard sim shoe --dir run/shoe --create
  holecard sim do run/shoe/control service on=true
  holecard sim do run/shoe/control describe --get label
  holecard sim do run/shoe/control '{"do": "draw", "count": 3}'
  holecard sim station --dir run/station --create --seat 1 2 --usb run/bus
  holecard sim breaks --profile station

The verbs of the control socket are in hil/CONTROL.md. Exit codes: 0 done, or stopped by Ctrl-C or
SIGTERM; 1 the device says no; 2 wrong arguments.
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
    _add_do(commands)
    _add_breaks(commands)


def _add_device(commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str) -> None:
    one = commands.add_parser(name, help=f"run a {name} until Ctrl-C", allow_abbrev=False)
    one.add_argument("--dir", required=True, type=Path, help="the folder it lives in")
    one.add_argument("--create", action="store_true", help="make it, if there is none yet")
    one.add_argument("--serial", help=f"serial number; a new one gets {_SERIALS[name]}")
    one.add_argument("--port", type=Path, metavar="LINK", help="its serial port; DIR/port")
    one.add_argument("--usb", type=Path, metavar="BUSDIR", help="plug it into this bus instead")
    one.add_argument(
        "--gone",
        choices=tuple(_GONE),
        default="ENODEV",
        help="what a USB read that waits gets when the cable is pulled",
    )
    one.add_argument("--control", type=Path, metavar="SOCKET", help="DIR/control")
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


def _add_do(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    do = commands.add_parser("do", help="put a hand to a device that runs", allow_abbrev=False)
    do.add_argument("socket", type=Path, help="its control socket")
    do.add_argument("hand", help="a verb, or the whole hand as JSON")
    do.add_argument("fields", nargs="*", metavar="field=value")
    do.add_argument("--get", metavar="NAME", help="print this field of the answer alone")
    do.set_defaults(func=_do)


def _add_breaks(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    breaks = commands.add_parser("breaks", help="list the breaks", allow_abbrev=False)
    breaks.add_argument("--profile", choices=get_args(Profile))
    breaks.add_argument("--json", action="store_true", help="print JSON")
    breaks.set_defaults(func=_list)


# --- running one ----------------------------------------------------------------------------------


def _run(args: argparse.Namespace) -> int:
    from hil.front import sim
    from hil.front.pty_port import LinkTaken
    from hil.front.unix_paths import PathTaken
    from hil.front.usb_bus import BusFull

    place: Path = args.dir
    control: Path = args.control or place / "control"
    setup = sim.Setup(
        device_class=CLASSES[args.device],
        place=place,
        control=control,
        port=_port(args),
        usb=args.usb,
        gone=_GONE[args.gone],
        breaks=_breaks(args),
        seats=_seats(args),
        seed=args.seed,
        sync=not args.no_sync,
    )
    try:
        _look_at_folders(args, setup)
        own = _identity(args, setup)
        asyncio.run(sim.run(setup, lambda told: _say(args, own.label_text, control, told)))
    except PlaceProblem as problem:
        raise UsageProblem(problem.where, problem.what, problem.allowed) from None
    except LinkTaken as problem:
        raise UsageProblem("--port", str(problem), "a name that is free") from None
    except PathTaken as problem:
        raise UsageProblem("--control", str(problem), "a path that is free") from None
    except BusFull as problem:
        raise UsageProblem("--usb", str(problem), "a bus with room") from None
    except (FileNotFoundError, NotADirectoryError, PermissionError) as problem:
        where = str(problem.filename or "path")
        raise UsageProblem(where, str(problem.strerror), "a folder to write to") from None
    return 0


def _port(args: argparse.Namespace) -> Path | None:
    if args.usb is not None and args.port is not None:
        raise UsageProblem("--usb", "a device has one cable", "--port or --usb")
    if args.usb is not None:
        return None
    port: Path = args.port or args.dir / "port"
    return port


def _look_at_folders(args: argparse.Namespace, setup: sim.Setup) -> None:
    for option, folder in (("--dir", setup.place), ("--usb", setup.usb)):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise UsageProblem(option, f"{folder} is no folder", "a folder, or a name that is free")
    for option, path in (("--port", args.port), ("--control", args.control)):
        if path is not None and not path.parent.is_dir():
            what = f"there is no folder {path.parent}"
            raise UsageProblem(option, what, "a name in a folder that is there")


def _breaks(args: argparse.Namespace) -> tuple[str, ...]:
    for name in args.breaks:
        broken = BY_NAME.get(name)
        if broken is None or (broken.profiles and args.device not in broken.profiles):
            known = ", ".join(one["name"] for one in _listed(args.device))
            raise UsageProblem("--break", f"a {args.device} has no break {name}", known)
    return tuple(args.breaks)


def _seats(args: argparse.Namespace) -> tuple[int, ...]:
    seats: list[int] = args.seat
    for seat in seats:
        if not 1 <= seat <= MAX_SEAT:
            raise UsageProblem("--seat", f"{seat} is no seat", f"1 to {MAX_SEAT}")
    if len(set(seats)) != len(seats):
        raise UsageProblem("--seat", "a seat is named twice", "each seat once")
    return tuple(seats)


def _identity(args: argparse.Namespace, setup: sim.Setup) -> identity.Identity:
    paired = _key(args.paired_with)
    place: Path = args.dir
    if not (place / "identity.toml").exists():
        if not args.create:
            raise UsageProblem(f"--dir {place}", "no device lives there", "--create makes one")
        serial = args.serial or _SERIALS[args.device]
        identity.create(place, setup.device_class, serial, rng=setup.random("maker"))
    own = identity.load(place)
    if own.device_class is not setup.device_class:
        name = own.device_class.name.lower()
        raise UsageProblem(f"--dir {place}", f"a {name} lives there", f"holecard sim {name}")
    if args.serial is not None and args.serial != own.serial:
        raise UsageProblem("--serial", f"the device has {own.serial}", "none, or that one")
    if paired is not None:
        identity.pair_directly(place, paired)
    return own


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


def _say(args: argparse.Namespace, label: str, control: Path, told: dict[str, Any]) -> None:
    if args.json:
        print(json.dumps({**told, "control": str(control)}), flush=True)
        return
    for line in _words(args, label, control, told):
        print(line, flush=True)


def _words(
    args: argparse.Namespace, label: str, control: Path, told: dict[str, Any]
) -> Iterator[str]:
    yield f"{told['class']} {told['serial']} ({told['maker']} {told['model']})"
    if args.usb is not None:
        yield f"  usb       {args.usb}, address {told['usb_address']}"
    else:
        yield f"  port      {told['port']}"
    yield f"  control   {control}"
    yield f"  label     {label}"
    yield f"  key       {told['fingerprint']}"
    if told["breaks"]:
        yield f"  breaks    {', '.join(told['breaks'])}"
    if told["host"] is None:
        yield "  host      not paired. Turn the service switch on and pair with the label's code:"
        yield f"              holecard sim do {control} service on=true"
        yield "              holecard devices pair"
    else:
        yield f"  host      paired with {told['host']}"
    yield "runs until Ctrl-C"


# --- a hand, and the breaks -----------------------------------------------------------------------


def _do(args: argparse.Namespace) -> int:
    from hil.front.control import Control, ControlLost, HandRefused
    from hil.front.hand_words import ALL, BadHand, read

    line = _as_line(args.hand, args.fields)
    try:
        hand = read(line, ALL)
    except BadHand as bad:
        raise UsageProblem(bad.where, bad.what, bad.allowed) from None
    try:
        with Control(args.socket) as control:
            answer = control.do(hand)
    except ControlLost as lost:
        raise UsageProblem(
            str(args.socket), str(lost), "the control socket of a device that runs"
        ) from None
    except HandRefused as refused:
        print(refused)
        return 1
    print(json.dumps(answer, indent=2) if args.get is None else _field(answer, args.get))
    return 0


def _field(answer: dict[str, Any], name: str) -> str:
    if name not in answer:
        allowed = ", ".join(sorted(answer)) or "none: it is empty"
        raise UsageProblem("--get", f"it is done, but the answer has no field {name}", allowed)
    value = answer[name]
    return value if isinstance(value, str) else json.dumps(value)


def _as_line(hand: str, fields: list[str]) -> bytes:
    if hand.lstrip().startswith("{"):
        if fields:
            raise UsageProblem(fields[0], "the hand is JSON already", "one or the other")
        return hand.encode()
    return json.dumps({"do": hand, **dict(_pair(hand, field) for field in fields)}).encode()


def _pair(verb: str, field: str) -> tuple[str, object]:
    """`count=3`, `read=low`, `cards=Ah,Td`: a value is JSON, or else text, or a list of texts."""
    from hil.front.hand_words import ALL, words

    name, equals, value = field.partition("=")
    if not equals:
        raise UsageProblem(field, "no field=value", f"{verb} field=value ...")
    of_verb = words(ALL[verb]) if verb in ALL else ()
    word = next((word for word in of_verb if word.name == name), None)
    if word is not None and word.textual:
        return name, value
    if word is not None and word.many and not value.startswith("["):
        return name, value.split(",") if value else []
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


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
