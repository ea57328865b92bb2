"""Log lines go to stderr: stdout is for data, and structlog would write there by default.

A command that runs drivers calls to_stderr() first. The log is not the record: a line that cannot
be written is dropped, and no device is blocked by it.
"""

from __future__ import annotations

import logging
import select
import sys
from contextlib import suppress
from typing import Final, TextIO

import structlog

_PIECE: Final = 1000
"""Characters that fit into a pipe that is writable: it has 4096 bytes at least."""


def to_stderr(least: int = logging.INFO) -> None:
    """Configure structlog to write lines of at least this level."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Plain: the other formatter shows local variables, which may contain a card or a key.
            structlog.dev.ConsoleRenderer(
                colors=False, exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=Stderr,
    )


def is_writable(stream: TextIO) -> bool:
    """Whether the stream is writable now. One without a descriptor always is."""
    try:
        descriptor = stream.fileno()
    except OSError:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))


class Stderr:
    """Writes to the current value of sys.stderr."""

    def __init__(self, *_: object) -> None:
        """structlog passes the names of the logger, which are not used here."""

    def msg(self, line: str) -> None:
        # The reader may be gone, the disk full, and stderr closed or None.
        with suppress(OSError, ValueError, AttributeError):
            text = f"{line}\n"
            for at in range(0, len(text), _PIECE):
                if not is_writable(sys.stderr):
                    return  # its reader does not read: the line is dropped
                sys.stderr.write(text[at : at + _PIECE])
                sys.stderr.flush()

    debug = info = warning = error = critical = exception = msg
