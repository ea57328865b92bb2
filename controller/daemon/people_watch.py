"""Who may be signed in can change while a table runs: the file of the people is looked at again,
whether the table is open, and whose time is up."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

import structlog

from controller.audit.format.records import Moment
from controller.people import AT_CLOSED, Denied, PeopleDesk
from controller.table.loop import InputRejected, QueueFull, TableStopped

CHECK_INTERVAL: Final = 2.0
"""Seconds between two looks at whether the file is another one."""
RETRY_AFTER: Final = 60.0
"""Seconds until a file is looked at anew that could not be read, though it is the same one: what
stood in the way may have been the disk."""
END_WAIT: Final = 3.0
"""Seconds for everybody to be signed out at the end."""
_PAUSE: Final = 0.05

_log: Final = structlog.get_logger("daemon.people")

Print: TypeAlias = tuple[int, ...] | None


class PeopleWatch:
    """One table's."""

    def __init__(self, desk: PeopleDesk, file: Path, moment: Callable[[], Moment]) -> None:
        self._desk = desk
        self._file = file
        self._moment = moment
        self._seen: Print | str = ""
        self._anew: float | None = None
        """When a file that could not be read is looked at once more."""

    async def run(self) -> None:
        """Until it is cancelled. The first look is for whoever lost their place meanwhile."""
        while True:
            await self.look()
            await self.look_at_the_table()
            self.look_at_the_clock()
            await asyncio.sleep(CHECK_INTERVAL)

    async def look(self) -> None:
        """Whoever was disabled, or lost the role, is signed out, if the file is another one."""
        print_, now = _print(self._file), asyncio.get_running_loop().time()
        if print_ == self._seen and (self._anew is None or now < self._anew):
            return
        try:
            gone = await self._desk.refresh(self._moment())
        except (TableStopped, QueueFull, InputRejected) as problem:
            _log.info("people not looked at again", why=str(problem))
            return
        if isinstance(gone, Denied):
            if gone.why == "unreadable":  # that stands in the record now, until it is another file
                self._seen, self._anew = print_, now + RETRY_AFTER
            return
        self._seen, self._anew = print_, None
        if gone:
            _log.info("signed out", people=gone)

    async def look_at_the_table(self) -> None:
        """Whoever may be here only while it is closed is signed out once it is open. What stands in
        the way now, the next look tries again."""
        if self._desk.shut():
            return
        try:
            for one in self._desk.standing.sessions:
                if one.role in AT_CLOSED:
                    await self._desk.sign_out(
                        one.screen, self._moment(), role=one.role, why="opened"
                    )
        except (TableStopped, QueueFull, InputRejected) as problem:
            _log.info("not signed out of an open table", why=str(problem))

    def look_at_the_clock(self) -> None:
        """Nobody stays signed in because nobody asks."""
        for one in self._desk.expire(self._moment()):
            _log.info("no longer signed in", role=one.role, screen=one.screen)

    async def everybody_out(self) -> None:
        """The table is closing."""
        try:
            async with asyncio.timeout(END_WAIT):
                for one in self._desk.standing.sessions:
                    while isinstance(
                        await self._desk.sign_out(
                            one.screen, self._moment(), role=one.role, why="closed"
                        ),
                        Denied,
                    ):
                        await asyncio.sleep(_PAUSE)  # a PIN is being looked at there
        except (TableStopped, QueueFull, InputRejected, TimeoutError) as problem:
            _log.warning("not signed out", why=str(problem))


def _print(file: Path) -> Print:
    """By which a file that was changed is told from what it was; None: it cannot be looked at."""
    with suppress(OSError):
        found = os.stat(file)
        return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode, found.st_uid)
    return None
