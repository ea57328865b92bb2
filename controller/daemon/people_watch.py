"""Signs people out when the people file changes, the table opens, or a session expires."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from controller.audit.format.records import Moment
from controller.people import AT_CLOSED, Denied, PeopleDesk, PeopleFile
from controller.table.loop import InputRejected, QueueFull, TableStopped

CHECK_INTERVAL: Final = 2.0
"""Seconds between two checks of the file."""
RETRY_AFTER: Final = 60.0
"""Seconds until an unchanged file that could not be read is tried again."""
END_WAIT: Final = 3.0
"""Timeout in seconds for signing all people out at the end."""
_PAUSE: Final = 0.05

_log: Final = structlog.get_logger("daemon.people")


class PeopleWatch:
    """The watch of one table."""

    def __init__(self, desk: PeopleDesk, file: PeopleFile, moment: Callable[[], Moment]) -> None:
        self._desk = desk
        self._file = file
        self._moment = moment
        self._seen: object = ""
        self._retry_at: float | None = None
        """Time of the next try to read an unreadable file."""

    async def run(self) -> None:
        """Run until cancelled. The first check signs out people who were disabled before the
        start."""
        while True:
            await self.check_file()
            await self.check_table()
            self.check_sessions()
            await asyncio.sleep(CHECK_INTERVAL)

    async def check_file(self) -> None:
        """Sign out people who were disabled or lost their role, if the file has changed."""
        metadata, now = self._file.metadata(), asyncio.get_running_loop().time()
        if metadata == self._seen and (self._retry_at is None or now < self._retry_at):
            return
        try:
            signed_out = await self._desk.refresh(self._moment())
        except (TableStopped, QueueFull, InputRejected) as problem:
            _log.info("people not looked at again", why=str(problem))
            return
        if isinstance(signed_out, Denied):
            if signed_out.why == "unreadable":  # recorded; tried again when the file changes
                self._seen, self._retry_at = metadata, now + RETRY_AFTER
            return
        self._seen, self._retry_at = metadata, None
        if signed_out:
            _log.info("signed out", people=signed_out)

    async def check_table(self) -> None:
        """Sign out roles that are allowed only at a closed table, when it is open. Failures are
        retried at the next check."""
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

    def check_sessions(self) -> None:
        """Remove expired sessions, also without any request."""
        for one in self._desk.expire(self._moment()):
            _log.info("no longer signed in", role=one.role, screen=one.screen)

    async def sign_all_out(self) -> None:
        """Sign all people out, because the table is closing."""
        try:
            async with asyncio.timeout(END_WAIT):
                for one in self._desk.standing.sessions:
                    while isinstance(
                        await self._desk.sign_out(
                            one.screen, self._moment(), role=one.role, why="closed"
                        ),
                        Denied,
                    ):
                        await asyncio.sleep(_PAUSE)  # a PIN is being checked at that screen
        except (TableStopped, QueueFull, InputRejected, TimeoutError) as problem:
            _log.warning("not signed out", why=str(problem))
