"""Where the lines for engineers go: to stderr. Stdout is data, and structlog's own beginning would
write there.

Whoever runs drivers says so, once, before it does. What happened stands in the record; a line here
that cannot be written is dropped, and no device waits or fails for it.
"""

from __future__ import annotations

import logging
import select
import sys
from contextlib import suppress
from typing import Final, TextIO

import structlog

_PIECE: Final = 1000
"""Characters that a pipe has room for if it has any: 4096 bytes at least."""


def to_stderr(least: int = logging.INFO) -> None:
    """From now on, and nothing below this level."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Plain: the other kind shows local variables, which may hold a card or a key.
            structlog.dev.ConsoleRenderer(
                colors=False, exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=Stderr,
    )


def takes(stream: TextIO) -> bool:
    """Whether there is room for a piece. What is no file of the system's always has."""
    try:
        descriptor = stream.fileno()
    except OSError:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))


class Stderr:
    """What stderr is when the line is written."""

    def __init__(self, *_: object) -> None:
        """structlog hands over the names that a logger was asked for by; they say nothing here."""

    def msg(self, line: str) -> None:
        # Its reader may have gone, its disk may be full, and it may be closed, or None.
        with suppress(OSError, ValueError, AttributeError):
            text = f"{line}\n"
            for at in range(0, len(text), _PIECE):
                if not takes(sys.stderr):
                    return  # its reader stands still, and nobody here waits for it
                sys.stderr.write(text[at : at + _PIECE])
                sys.stderr.flush()

    debug = info = warning = error = critical = exception = msg
