"""What holds for every test: nothing stays open behind it, and nothing is skipped in silence."""

import gc
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from multiprocessing import resource_tracker

import pytest
import structlog
import usb.backend.libusb1
from hypothesis import settings

# pytest-timeout bounds a test; a bound per example would only measure how busy the machine is.
# A test fails because of a change, not because of the day: `make explore` is what leaves to chance.
settings.register_profile("house", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("house")

GRACE_SECONDS = 2.0
"""How long a thread or child that was told to end may take to be gone."""


for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    # Who starts us in the background may have us ignore them, and our children too.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )


def require(condition: object, reason: str) -> None:
    """Skip the test where the machine lacks something; with HOLECARD_REQUIRE_ALL=1, fail it."""
    if condition:
        return
    if os.environ.get("HOLECARD_REQUIRE_ALL") == "1":
        pytest.fail(f"required here: {reason}", pytrace=False)
    pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests have counted with record_property, summed up."""
    counted: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties if report.when == "call" else ():
            counted[name] += value
    for name, value in sorted(counted.items()):
        terminalreporter.write_line(f"{name} tried: {value:,}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without the garbage collector, and keep them out of its later runs.

    It would go through all of them again and again, and at each call in `leaked`.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def held() -> set[str]:
    """What this process holds now: its threads, child processes and file descriptors, in words."""
    return {
        *(f"thread {thread.ident} {thread.name}" for thread in threading.enumerate()),
        *_children(),
        *_descriptors(),
    }


# Called twice for each test, so in plain calls of the system and not with pathlib.
def _children() -> Iterator[str]:
    for task in os.listdir("/proc/self/task"):
        with suppress(OSError), open(f"/proc/self/task/{task}/children", "rb") as children:
            for pid in children.read().split():
                yield f"child process {int(pid)}"


def _descriptors() -> Iterator[str]:
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the one that listed the folder is closed by now
            yield f"file descriptor {descriptor} {os.readlink(f'/proc/self/fd/{descriptor}')}"


def leaked(before: set[str], grace: float = GRACE_SECONDS) -> list[str]:
    """What is held now and was not before, after giving it the time to go."""
    deadline = time.monotonic() + grace
    while rest := held() - before:
        if time.monotonic() >= deadline:
            return sorted(rest)
        gc.collect()  # what only waits for the collector is not held by anybody
        time.sleep(0.01)
    return []


@pytest.fixture(scope="session", autouse=True)
def _helper_process() -> None:
    # multiprocessing starts its tracker, and pyusb its libusb, once for the life of the process.
    # Started here, they are no leaks of the first test that uses them.
    resource_tracker.ensure_running()
    usb.backend.libusb1.get_backend()


@pytest.fixture(autouse=True)
def _lines_for_engineers() -> Iterator[None]:
    """Where they go, and how many of them, is one setting of the whole process."""
    former = structlog.get_config()
    yield
    structlog.configure(**former)


@pytest.fixture(autouse=True)
def _leaves_nothing_behind(_helper_process: None) -> Iterator[None]:
    before = held()
    yield
    rest = leaked(before)
    if rest:
        pytest.fail("left behind: " + "; ".join(rest), pytrace=False)
