"""Runs `holecard` many times a second: each command in a fork of a process that has all modules.

A child has its own standard streams, limits, working directory and environment, and leaves through
Python's own exit, as a command does that is typed.

    with commands() as run:
        ended = run(["config", "check", "x.toml"], stdout="full")
        ended.code, ended.err
"""

import contextlib
import importlib
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from controller import cli
from controller.commands import load_handler, parse
from tests.support.paths import ROOT
from tests.support.system.every_command import every_command, required

TIMEOUT: Final = 60.0


class Ended(NamedTuple):
    """How a command ended. `code` is negative for a signal."""

    code: int
    out: str
    err: str
    seconds: float
    late: bool
    """It did not end within the limit, even though it was interrupted."""


Run: TypeAlias = Callable[..., Ended]


@contextmanager
def commands() -> Iterator[Run]:
    """Yields a function that runs a command: see `_child` for its options."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.system.forked_commands"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    requests, answers = process.stdin, process.stdout

    def run(words: Sequence[str], **options: Any) -> Ended:
        requests.write(json.dumps({"words": list(words), **options}) + "\n")
        requests.flush()
        return Ended(**json.loads(answers.readline()))

    try:
        yield run
    finally:
        requests.close()
        process.wait(timeout=TIMEOUT)
        answers.close()


# --- in the process that forks ----------------------------------------------------------------


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    _import_all()
    for line in sys.stdin:
        request = json.loads(line)
        folder = Path(tempfile.mkdtemp())  # removed by this process only, not by the child
        out, err = folder / "out", folder / "err"
        out.touch()
        err.touch()
        begun = time.monotonic()
        child = os.fork()
        if child == 0:
            _child(out, err, **request)
        code, late = _wait(child, request)
        took = time.monotonic() - begun
        ended = Ended(code, out.read_text("latin-1"), err.read_text("latin-1"), took, late)
        shutil.rmtree(folder)
        answers.write(json.dumps(ended._asdict()) + "\n")
        answers.flush()


def _import_all() -> None:
    for command in every_command():
        with contextlib.suppress(SystemExit):
            load_handler(parse([*command.path, *required(command.parser)], command.register))
    for name in ("uvicorn", "starlette.applications", "controller.screens.app"):
        importlib.import_module(name)


def _wait(child: int, request: dict[str, Any]) -> tuple[int, bool]:
    """Wait for the end. Interrupt it when that is asked for, and at the limit."""
    end = os.pidfd_open(child)
    try:
        waits = [(request.get("interrupt_after"), signal.SIGINT)]
        waits += [(request.get("limit", 20.0), signal.SIGINT), (10.0, signal.SIGKILL)]
        for seconds, number in waits:
            if seconds is None:
                continue
            if select.select([end], [], [], seconds)[0]:
                break
            os.kill(child, number)
        else:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), True
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), False
    finally:
        os.close(end)


def _child(  # noqa: PLR0913 - the options of a process
    out: Path,
    err: Path,
    words: list[str],
    *,
    cwd: str,
    stdin: str = "null",
    stdout: str = "file",
    stderr: str = "file",
    environment: dict[str, str | None] | None = None,
    encoding: str = "utf-8",
    file_bytes: int | None = None,
    remove_cwd: bool = False,
    interrupt_after: float | None = None,
    limit: float = 0.0,
) -> None:
    """Become the command. Streams are "file", "null", "closed", "full", or "gone": a pipe without
    a reader."""
    del interrupt_after, limit
    os.chdir(cwd)
    if remove_cwd:
        gone = tempfile.mkdtemp()
        os.chdir(gone)
        os.rmdir(gone)
    for name, value in (environment or {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    places = {"null": os.devnull, "full": "/dev/full"}
    for number, where, file in ((0, stdin, ""), (1, stdout, out), (2, stderr, err)):
        _direct(number, where, str(places.get(where, file)))
    if file_bytes is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        errors = "backslashreplace" if number == 2 else "strict"
        mode = "w" if number else "r"
        try:
            stream = open(number, mode, encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
        except OSError:
            setattr(sys, name, None)
        else:
            setattr(sys, name, stream)
    random.seed()
    sys.argv = ["holecard", *words]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as before the first line of `holecard`
    sys.exit(cli.main())


def _direct(number: int, where: str, file: str) -> None:
    if where == "closed":
        os.close(number)
        return
    if where == "gone":
        reads, found = os.pipe()
        os.close(reads)
    else:
        found = os.open(file, os.O_WRONLY if number else os.O_RDONLY)
    os.dup2(found, number)
    os.close(found)


if __name__ == "__main__":
    _serve()
