"""`serve` is told to stop while it is still loaded: from its first line on that is no fault."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from controller import early_signals
from tests.support.daemon.rig import PATIENCE
from tests.support.paths import ROOT

FIRST = """
import builtins, os, signal, sys
loads = builtins.__import__
def told(name, *more):
    if name == sys.argv[3]:
        os.kill(os.getpid(), int(sys.argv[4]))
    return loads(name, *more)
builtins.__import__ = told
from controller.cli import main
sys.exit(main([]))
"""
"""The entry point, which gets a signal when it begins to load this module."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("module", ["argparse", "controller.commands"])
def test_while_the_first_modules_are_loaded(number: signal.Signals, module: str) -> None:
    for command, code in (("serve", 0), ("doctor", -number)):
        done = subprocess.run(
            [sys.executable, "-c", FIRST, command, "table.toml", module, str(int(number))],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == code, done.stderr
        if command == "serve":
            assert (done.stdout, done.stderr) == ("", "")


def test_who_ignores_a_signal_goes_on_doing_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_signals, "REPLACED", {})
    former = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        early_signals.watch(["holecard", "doctor"])
        assert signal.getsignal(signal.SIGINT) is former[signal.SIGINT]
        early_signals.watch(["holecard", "serve"])
        early_signals.watch(["holecard", "serve"])
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        taken = signal.getsignal(signal.SIGINT)
        assert taken is not former[signal.SIGINT]
        assert early_signals.before(signal.SIGINT, taken) is former[signal.SIGINT]
        assert early_signals.before(signal.SIGTERM, signal.SIG_IGN) is signal.SIG_IGN
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
