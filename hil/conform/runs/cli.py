"""check a device against the items of PROTOCOL.md"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from controller.errors import UsageProblem
from firmware_protocol import conformance
from firmware_protocol.conformance import ConformanceItem, Profile

if TYPE_CHECKING:
    from hil.conform.runs.run import RunPlan
    from hil.conform.runs.runner import ItemOutcome
    from hil.conform.tester.operators import Operator

_EPILOG: Final = """\
examples:
  holecard conform --profile shoe --port /dev/ttyUSB0 --keys keys --ask
  holecard conform --profile shuffler --port usb:SF-0001 --keys keys --junit report.xml
  holecard conform --profile station --port run/station/port --control run/station/control

It is a host of its own, which breaks rules on purpose: nothing else may use the port meanwhile. It
acknowledges what the device has recorded, moves it as the items say, and pairs it anew where a hand
is at the service switch: not a device that a table counts on.

Items that need more than the cable are skipped unless somebody sees to it: a person (--ask), or the
control socket of a simulated device. That one is then also paired where it has to be, and brought
to rest first, whatever an earlier run has left: its power is cut, its service switch turned off,
a button let go, a shuffle ended, a full ring acknowledged.

While a device is not paired, the items of frames and of HELLO (FR, HE) and PA-1 are tried, and no
keys are needed for them; HE-3 ends where it would need some. The others are not tried.

TAP-1 compares lengths, not timing: at a port the line and this machine blur it. A card that shows
in less than 40 ms of timing is not found by this command, whatever it is run on.

Keys lie in the directory of --keys, else of $HOLECARD_KEYS, else in ~/.config/holecard/keys, as for
`holecard devices`.

Each item ends with PASS, FAIL, SKIP (nobody is there to do what it needs) or UNTRIED (something
stood in its way: the device is not paired, a hand could not do it, the cable was pulled).

Exit codes:
  0    all passed
  1    some failed
  2    wrong arguments, and nothing was tried; or the report cannot be written
  3    incomplete: none failed, but some were skipped or not tried, or all were
  130  interrupted
A rule about something that the model does not have (SH-5 without GATE) is skipped and leaves
nothing incomplete. Where nobody can see to all of it, --only names the items that are to pass.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "conform",
        help="check a device against the items of PROTOCOL.md",
        description="Tries the items of firmware_protocol/PROTOCOL.md on one device.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--profile", required=True, choices=get_args(Profile))
    parser.add_argument(
        "--port", required=True, help="/dev/..., adapter:SERIAL, usb:SERIAL or usb+sim=DIR:SERIAL"
    )
    parser.add_argument("--keys", type=Path, metavar="DIR", help="the host's key store")
    parser.add_argument("--host-key", type=Path, metavar="FILE", help="private key, 64 hex digits")
    parser.add_argument("--device-key", metavar="HEX", help="the device's public key")
    parser.add_argument("--control", type=Path, metavar="SOCKET", help="of a simulated device")
    parser.add_argument("--ask", action="store_true", help="have a person draw, press and look")
    parser.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="ID", help="these items alone"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the noise; else drawn")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML too")
    parser.set_defaults(func=conform)


def conform(args: argparse.Namespace) -> int:
    from hil.conform.runs import report, run

    plan = _plan(args)
    with _operator(args) as operator:
        ran = asyncio.run(run.run(plan, operator, None if args.json else _tell))
    if args.json:
        print(json.dumps(report.as_json(ran.setting, ran.result, ran.notices), indent=2))
    else:
        print(report.summary(ran.result))
    sys.stdout.flush()
    for notice in ran.notices:
        print(f"holecard: {notice}", file=sys.stderr)
    if args.junit is not None:
        _write(args.junit, report.as_junit(ran.setting, ran.result))
    return report.exit_code(ran.result)


def _plan(args: argparse.Namespace) -> RunPlan:
    from drivers.ports import AddressProblem, parse_placed
    from hil.conform.runs.keys import Keyring
    from hil.conform.runs.run import RunPlan

    items = chosen(args.profile, args.only)
    if not args.port:  # which is the path of the folder that one is in
        raise UsageProblem("--port", "is empty", "an address of a port")
    if args.junit is not None:
        _check_target(args.junit, args)
    try:
        # A path may be said as it is, also one that is not absolute.
        path = Path(args.port)
        address = parse_placed(str(path.absolute()) if path.exists() else args.port)
    except AddressProblem as problem:
        raise UsageProblem("--port", problem.what, problem.allowed) from None
    seed = secrets.randbits(32) if args.seed is None else args.seed
    return RunPlan(args.profile, args.port, address, Keyring(args), items, seed)


def chosen(profile: Profile, only: list[str]) -> tuple[ConformanceItem, ...]:
    """The items of the profile, or those of them that are named."""
    items = [item for item in conformance.load_items() if item.concerns(profile)]
    known = {item.id for item in items}
    for name in only:
        if name not in known:
            what = f"there is no item {name} for a {profile}"
            raise UsageProblem("--only", what, ", ".join(item.id for item in items))
    return tuple(item for item in items if not only or item.id in only)


@contextmanager
def _operator(args: argparse.Namespace) -> Iterator[Operator]:
    from hil.conform.runs.remote_operator import RemoteOperator
    from hil.conform.tester.operators import NoOperator, TerminalOperator
    from hil.control import ControlClient, ControlLost

    if args.control is not None and args.ask:
        raise UsageProblem("--ask", "one does what the items need", "--control or --ask")
    if args.control is None:
        yield TerminalOperator() if args.ask else NoOperator()
        return
    try:
        control = ControlClient(args.control)
    except ControlLost as lost:
        allowed = "the control socket of a simulated device that runs"
        raise UsageProblem("--control", str(lost), allowed) from None
    with control:
        yield RemoteOperator(control)


def _tell(outcome: ItemOutcome) -> None:
    from hil.conform.runs import report

    for line in report.lines(outcome):
        print(line, flush=True)
    if outcome.result == "FAIL":
        print(flush=True)


# --- the file of the report -------------------------------------------------------------------


def _check_target(file: Path, args: argparse.Namespace) -> None:
    """A run takes minutes: what can be known of its report's file is known before it."""
    from drivers.keys import keys_directory

    for option in ("port", "host_key", "control"):
        other = getattr(args, option)
        if other is not None and _same(file, Path(other)):
            name = "--" + option.replace("_", "-")
            raise UsageProblem("--junit", f"{file} is what {name} names", "another file")
    if keys_directory(args.keys).resolve() in file.resolve().parents:
        raise UsageProblem("--junit", f"{file} lies among the keys", "another folder")
    if not file.parent.is_dir():
        what = f"there is no folder {file.parent}"
        raise UsageProblem("--junit", what, "a file in a folder that is there")
    try:
        _try_to_write(file)
    except OSError as problem:
        raise _unwritable(file, problem) from None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False


def _try_to_write(file: Path) -> None:
    """Open it as the report will be, and leave it as it was."""
    there = os.path.lexists(file)
    if there and not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "it is a directory" if file.is_dir() else "it is no file")
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666))
    if not there:
        file.unlink()


def _write(file: Path, data: bytes) -> None:
    try:
        file.write_bytes(data)
    except OSError as problem:
        raise _unwritable(file, problem) from None


def _unwritable(file: Path, problem: OSError) -> UsageProblem:
    allowed = "a file that can be written, in a folder that is there"
    return UsageProblem("--junit", f"{file}: {problem.strerror}", allowed)
