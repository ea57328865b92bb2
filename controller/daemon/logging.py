"""Lines for engineers of a served table: JSON where no terminal is, each with table, round, device
and the record's last entry. They go to stderr, hold no card that is not face up, and may be lost.
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

_stands: Final[ContextVar[Callable[[], Mapping[str, int]] | None]] = ContextVar(
    "stands", default=None
)
"""Where the table stands to which the line belongs."""


def to_stderr(least: int = logging.INFO, *, terminal: bool | None = None) -> None:
    """From now on, and nothing below this level; what libraries say as well, from warnings up."""
    console = _is_terminal() if terminal is None else terminal
    structlog.configure(
        processors=[
            merge_contextvars,
            _standing,
            _happening,
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
    """What is said meanwhile is said of this table, and of where it stands once it does."""

    def stands() -> Mapping[str, int]:
        table = getattr(running, "table", None)  # not before its record is open
        return {} if table is None else {"round": table.state.round, "audit_seq": table.seq}

    token = _stands.set(stands)
    try:
        with bound_contextvars(table=name):
            yield
    finally:
        _stands.reset(token)


def log_result(done: RequestResult) -> None:
    """What the procedure made of something: by name only, without cards, seats and people."""
    for one in done.answered:
        what = type(one.event).__name__
        if isinstance(one.answer, Decision):
            _log.info("taken", what=what, rows=one.answer.rows)
        else:
            _log.info("refused", what=what, id=one.answer.id)


# --- how a line is made -----------------------------------------------------------------------


def _standing(_: Any, __: str, line: Line) -> Line:
    stands = _stands.get()
    if stands is not None:
        line.update(stands())
    return line


def _happening(_: Any, __: str, line: Line) -> Line:
    """What happens around a device, in the words that the record has for it."""
    happening = line.get("happening")
    if isinstance(happening, Happening):
        del line["happening"]
        data = data_of(cast(AnyHappening, happening))
        line["event"] = data.pop("what")
        line.update(data)
    return line


def _json() -> list[Any]:
    return [
        # Plain: the other kind shows local variables, which may hold a card or a key.
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(default=str),
    ]


def _console() -> list[Any]:
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=True, exception_formatter=plain)]


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class LibraryHandler(logging.Handler):
    """What libraries say, as lines like ours."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger()
        log.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)
