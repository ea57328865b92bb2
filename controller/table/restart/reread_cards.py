"""Rereads face-down cards from the shoe after a restart.

The shoe sends its record again, which is verified against the chain and the commitment in the
table's record. If the shoe no longer has it, or has a different card, the device has a fault: the
table is held, and surveillance can open the sealed copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from controller.audit.format.hole_cards import SealProblem
from controller.audit.format.records import CONTROLLER, RecordEntry
from controller.table.memory import CardVault
from controller.table.restart.restore import FaceDownCard
from drivers.devices import (
    CommandRefusedError,
    CommandUnansweredError,
    NotReady,
    RereadProblem,
    Sealed,
)
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages import CardRead, Refusal
from firmware_protocol.tablelink import EventRecord

RETRY: Final = 0.5
"""Seconds between two requests to a shoe that could not answer."""
_LATER: Final = (Refusal.NOT_NOW, Refusal.BUSY, Refusal.NOT_RESUMED)

_log: Final = structlog.get_logger("table.relearning")


class RereadingShoe(Protocol):
    """The shoe's driver."""

    async def reread(self, epoch: int, seq: int) -> Sealed[EventRecord]: ...


class CardUnavailable(Exception):
    """The card cannot be read from this shoe. The text does not name the card."""


class CardRereader:
    """Requests each card until it is in the vault or known to be unavailable."""

    def __init__(
        self,
        vault: CardVault,
        shoe: RereadingShoe,
        serial: str,
        hidden: tuple[FaceDownCard, ...],
        *,
        lies: Callable[[str], bool],
    ) -> None:
        """`lies`: whether the card of a commitment still lies face down."""
        self._vault = vault
        self._shoe = shoe
        self._serial = serial
        self._hidden = hidden
        self._lies = lies

    async def run(self) -> tuple[RecordEntry, ...]:
        """Reread all cards. Returns the fault entries for those that are unavailable."""
        faults = []
        for one in self._hidden:
            try:
                await self._reread(one)
            except CardUnavailable as problem:
                _log.warning("a card face down is not known", seq=one.seq, why=str(problem))
                detail = f"{problem}; surveillance can open the sealed copy at seq {one.seq}"
                data = {"what": "hidden card", "detail": detail}
                faults.append(RecordEntry("fault", CONTROLLER, data, cause=one.seq))
        return tuple(faults)

    async def _reread(self, one: FaceDownCard) -> None:
        while self._lies(one.commitment):
            try:
                await self._ask(one)
            except (NotReady, LinkBusy, CommandUnansweredError):
                await asyncio.sleep(RETRY)
            except CommandRefusedError as refused:
                if refused.why not in _LATER:
                    why = f"the shoe does not have it any more: {refused.why.name.lower()}"
                    raise CardUnavailable(why) from None
                await asyncio.sleep(RETRY)
            else:
                return

    async def _ask(self, one: FaceDownCard) -> None:
        at = one.cursor
        if at is None:
            raise CardUnavailable("the record does not say which card of the shoe it is")
        if at.device != self._serial:
            raise CardUnavailable(f"it came from the shoe {at.device}, and this is {self._serial}")
        try:
            record = await self._shoe.reread(at.epoch, at.seq)
        except RereadProblem as problem:
            raise CardUnavailable(str(problem)) from None
        if record.open().chain.hex() != at.chain:
            raise CardUnavailable("the shoe has another record in its place")
        event = record.open().event
        if not isinstance(event, CardRead):
            raise CardUnavailable("the shoe has no card in its place")
        try:
            self._vault.put_again(at, Sealed(event), one.commitment, one.wrong)
        except SealProblem as problem:
            raise CardUnavailable(str(problem)) from None
