"""Log lines of a served table on stderr: JSON unless that is a terminal.

Each line has the table, the round, the device and the record's last sequence number. They contain
no face-down cards, and may be dropped.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias, cast

import structlog
from structlog.contextvars import bound_contextvars, merge_contextvars

from controller.procedure.model.row import Decision
from controller.table.devices import data_of
from controller.table.loop import RequestResult
from controller.table.running import RunningTable
from drivers.events import AnyHappening, Happening
from drivers.logging import Stderr

_log: Final = structlog.get_logger("daemon")

Line: TypeAlias = MutableMapping[str, Any]

_position: Final[ContextVar[Callable[[], Mapping[str, int]] | None]] = ContextVar(
    "position", default=None
)
"""Returns round and last sequence number of the current table."""


def to_stderr(least: int = logging.INFO, *, terminal: bool | None = None) -> None:
    """Configure logging to stderr from this level on, and warnings of libraries."""
    console = _is_terminal() if terminal is None else terminal
    structlog.configure(
        processors=[
            merge_contextvars,
            _add_position,
            _expand_happening,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(_console() if console else _json()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=Stderr,
    )
    root = logging.getLogger()
    if not any(isinstance(one, LibraryHandler) for one in root.handlers):
        root.addHandler(LibraryHandler(logging.WARNING))


@contextmanager
def log_context(name: str, running: RunningTable) -> Iterator[None]:
    """Bind the table's name to all log lines, with its round and sequence number once it is
    open."""

    def position() -> Mapping[str, int]:
        table = getattr(running, "table", None)  # missing before the record is open
        return {} if table is None else {"round": table.state.round, "audit_seq": table.seq}

    token = _position.set(position)
    try:
        with bound_contextvars(table=name):
            yield
    finally:
        _position.reset(token)


def log_result(done: RequestResult) -> None:
    """Log the procedure's answers by name, without cards, seats and people."""
    for one in done.answered:
        what = type(one.event).__name__
        if isinstance(one.answer, Decision):
            _log.info("taken", what=what, rows=one.answer.rows)
        else:
            _log.info("refused", what=what, id=one.answer.id)


# --- processors -------------------------------------------------------------------------------


def _add_position(_: Any, __: str, line: Line) -> Line:
    position = _position.get()
    if position is not None:
        line.update(position())
    return line


def _expand_happening(_: Any, __: str, line: Line) -> Line:
    """Replace a device event by the fields under which it is recorded."""
    happening = line.get("happening")
    if isinstance(happening, Happening):
        del line["happening"]
        data = data_of(cast(AnyHappening, happening))
        line["event"] = data.pop("what")
        line.update(data)
    return line


def _json() -> list[Any]:
    return [
        # Without local variables, which may contain a card or a key.
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(default=str),
    ]


def _console() -> list[Any]:
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=True, exception_formatter=plain)]


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class LibraryHandler(logging.Handler):
    """Passes records of the standard logging module on to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger()
        log.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)
