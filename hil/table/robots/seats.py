"""Where people have taken over from robots at a simulated table: seats, and who deals.

Told by the bench page, read by the robots. Nothing of it is known to the controller, which sees
badges at its screens and presses of buttons, as at any table.
"""

from __future__ import annotations

import asyncio
from typing import Final

from firmware_protocol.device.control import Draw
from hil.table.robots.text import PlayerChoice

SEATS: Final = range(1, 8)


class SeatClaims:
    """Who is at the table besides robots."""

    def __init__(self, robots: int = 0) -> None:
        self.robots = frozenset(range(1, robots + 1))
        """Where robots play unless somebody sits there."""
        self.seats: set[int] = set()
        """Where people sit."""
        self.out: set[int] = set()
        """Who of them sits this round out."""
        self.said: dict[int, PlayerChoice] = {}
        """What people have told the robot dealer, by seat; it is heard once."""
        self.signals: dict[int, str] = {}
        """What robots tell a dealer who is none, by seat: it is for the dealer to enter."""
        self.next_pull: Draw | None = None
        """How the next card is pulled, whoever pulls it; None: as usual."""
        self.touched = False
        """Whether anybody has done anything here: then robots wait, and do not give up."""
        self.trouble = ""
        """What the robots wait for, in words; empty while they go on."""
        self.next_game = False
        """Somebody wants another game."""
        self._news = asyncio.Event()

    def take(self, seat: int) -> None:
        self.seats.add(seat)
        self.signals.pop(seat, None)
        self.change()

    def leave(self, seat: int) -> None:
        self.seats.discard(seat)
        self.out.discard(seat)
        self.said.pop(seat, None)
        self.change()

    def sit_out(self, seat: int) -> None:
        self.out.add(seat)
        self.change()

    def says(self, seat: int, said: PlayerChoice) -> None:
        self.said[seat] = said
        self.change()

    def pulled(self, usual: Draw) -> Draw:
        """How a card is pulled now: as somebody wanted the next one to be, once."""
        wanted, self.next_pull = self.next_pull, None
        return usual if wanted is None else wanted

    # --- news -----------------------------------------------------------------------------

    def change(self) -> None:
        """Somebody has done something at the bench."""
        self.touched = True
        self.look()

    def look(self) -> None:
        """Whoever waits in `news` looks again."""
        self._news.set()
        self._news = asyncio.Event()

    async def news(self, within: float | None = None) -> None:
        """Returns when there is something new, or that many seconds have gone by."""
        try:
            async with asyncio.timeout(within):
                await self._news.wait()
        except TimeoutError:
            return
