"""Runs `holecard conform` with its parsed arguments."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.commands import print_json, real_path, say
from controller.errors import UsageProblem
from drivers.keys import keys_directory
from drivers.ports import AddressProblem, parse_placed
from firmware_protocol import conformance
from firmware_protocol.conformance import ConformanceItem, Profile
from hil.conform.runs import run, runner
from hil.conform.runs.run import Keyring, RunPlan
from hil.conform.runs.runner import ItemOutcome
from hil.conform.tester import Operator, RemoteOperator, TerminalOperator
from hil.control import ControlClient, ControlLost


def conform(args: argparse.Namespace) -> int:
    plan = _plan(args)
    with _operator(args) as operator:
        ran = asyncio.run(run.run(plan, operator, None if args.json else _print_outcome))
    if args.json:
        print_json(runner.as_json(ran.setting, ran.result, ran.notices))
    else:
        print(runner.summary(ran.result))
    sys.stdout.flush()
    for notice in ran.notices:
        say(notice)
    if args.junit is not None:
        _write(args.junit, runner.as_junit(ran.setting, ran.result))
    return runner.exit_code(ran.result)


def _plan(args: argparse.Namespace) -> RunPlan:
    items = chosen(args.profile, args.only)
    if not args.port:  # an empty path would be the current folder
        raise UsageProblem("--port", "is empty", "an address of a port")
    if args.junit is not None:
        _check_target(args.junit, args)
    try:
        # A path need not be absolute.
        path = Path(args.port)
        address = parse_placed(str(path.absolute()) if path.exists() else args.port)
    except AddressProblem as problem:
        raise UsageProblem("--port", problem.what, problem.allowed) from None
    seed = secrets.randbits(32) if args.seed is None else args.seed
    return RunPlan(args.profile, args.port, address, Keyring(args), items, seed)


def chosen(profile: Profile, only: list[str]) -> tuple[ConformanceItem, ...]:
    """The items of the profile, or the selected ones."""
    items = [item for item in conformance.load_items() if item.concerns(profile)]
    known = {item.id for item in items}
    for name in only:
        if name not in known:
            what = f"there is no item {name} for a {profile}"
            raise UsageProblem("--only", what, ", ".join(item.id for item in items))
    return tuple(item for item in items if not only or item.id in only)


@contextmanager
def _operator(args: argparse.Namespace) -> Iterator[Operator]:
    if args.control is not None and args.ask:
        raise UsageProblem("--ask", "there is one operator", "--control or --ask")
    if args.control is None:
        yield TerminalOperator() if args.ask else Operator()
        return
    try:
        control = ControlClient(args.control)
    except ControlLost as lost:
        allowed = "the control socket of a simulated device that runs"
        raise UsageProblem("--control", str(lost), allowed) from None
    with control:
        yield RemoteOperator(control)


def _print_outcome(outcome: ItemOutcome) -> None:
    for line in runner.lines(outcome):
        print(line, flush=True)
    if outcome.result == "FAIL":
        print(flush=True)


# --- the file of the report -------------------------------------------------------------------


def _check_target(file: Path, args: argparse.Namespace) -> None:
    """Check the file of the report before the run, which takes minutes."""
    for option in ("port", "host_key", "control"):
        other = getattr(args, option)
        if other is not None and _same(file, Path(other)):
            name = "--" + option.replace("_", "-")
            raise UsageProblem("--junit", f"{file} is what {name} names", "another file")
    if real_path(keys_directory(args.keys)) in real_path(file).parents:
        raise UsageProblem("--junit", f"{file} is in the key store", "another folder")
    if not file.parent.is_dir():
        what = f"there is no folder {file.parent}"
        raise UsageProblem("--junit", what, "a file in a folder that exists")
    try:
        _try_to_write(file)
    except OSError as problem:
        raise _unwritable(file, problem) from None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return False


def _try_to_write(file: Path) -> None:
    """Open the file for writing, and leave it unchanged."""
    exists = os.path.lexists(file)
    if exists and not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "it is a directory" if file.is_dir() else "it is no file")
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666))
    if not exists:
        file.unlink()


def _write(file: Path, data: bytes) -> None:
    try:
        file.write_bytes(data)
    except OSError as problem:
        raise _unwritable(file, problem) from None


def _unwritable(file: Path, problem: OSError) -> UsageProblem:
    allowed = "a writable file in a folder that exists"
    return UsageProblem("--junit", f"{file}: {problem.strerror}", allowed)
