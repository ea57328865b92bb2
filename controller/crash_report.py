"""Reports of defects of this software: one line for the user, and the traceback in a file.

A traceback on stderr helps no dealer, and a fault under load may never come again: so the file is
written at once. With HOLECARD_TRACEBACK=1 the traceback is printed instead. It contains lines of
the source and no values of variables, which may be a card or a key.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final

from controller.errors import printable

VARIABLE: Final = "HOLECARD_TRACEBACK"
_MAX_WORDS: Final = 300
_WANTED: Final = f"{VARIABLE}=1 prints the traceback"


def report_defect(problem: BaseException) -> str:
    """Write the report. Returns the line for the user."""
    first = _first_leaf(problem)
    what = f"internal error: {_words(first)}{_place(first)}"
    text = "".join(traceback.format_exception(problem))
    if os.environ.get(VARIABLE):
        return f"{what}\n{text.rstrip()}"
    try:
        file = _written(text)
    except OSError as failed:
        why = (failed.strerror or str(failed)).lower()
        return f"{what}; no report can be written ({why}); {_WANTED}"
    return f"{what}; please send us the report: {file}"


def no_tracebacks() -> None:
    """Report errors of threads and of destructors in one line too."""
    threading.excepthook = lambda args: _unraised(args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: _unraised(args.exc_value, args.exc_traceback)


def complain(line: str) -> None:
    """Print a line on stderr; it is dropped if stderr is closed or full."""
    try:
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        return


def _unraised(problem: BaseException | None, trace: TracebackType | None) -> None:
    if isinstance(problem, BrokenPipeError | KeyboardInterrupt | SystemExit | None):
        return
    if problem.__traceback__ is None:
        problem = problem.with_traceback(trace)
    complain(f"holecard: {report_defect(problem)}")


def _first_leaf(problem: BaseException) -> BaseException:
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return problem


def _words(problem: BaseException) -> str:
    text = printable(str(problem))
    name = type(problem).__name__
    return f"{name}: {text[:_MAX_WORDS]}" if text else name


def _place(problem: BaseException) -> str:
    """The file and the line where it was raised."""
    frames = traceback.extract_tb(problem.__traceback__)
    if not frames:
        return ""
    path = Path(frames[-1].filename)
    return f" ({'/'.join(path.parts[-2:])}:{frames[-1].lineno})"


def _written(text: str) -> str:
    """Write a file that only this user can read. Raises OSError."""
    now = datetime.now(UTC)
    head = (
        f"{now:%Y-%m-%d %H:%M:%S} UTC",
        f"command: {printable(' '.join(sys.argv))}",
        f"Python {sys.version}",
        "",
    )
    descriptor, name = tempfile.mkstemp(prefix=f"holecard-{now:%Y%m%d-%H%M%S}-", suffix=".txt")
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write("\n".join((*head, text)))
    return name
