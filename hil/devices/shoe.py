"""A card-reading shoe: cards, cover, gate, lock and reader.

A pull takes the same time whatever the card is: `dwell_ms` over the reader, as the hand says, then
RECOGNISE_MS, which is how long the slowest card takes to be recognised; the next one follows after
GAP_MS. With GATE the card waits at the gate for its record; without, it is out before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from firmware_protocol.device.control import (
    ControlRequest,
    CoverHand,
    Describe,
    Draw,
    InjectDefect,
    JamHand,
    Load,
    Retract,
)
from firmware_protocol.device.interfaces import Answer, CannotDo, CommandRefusal, CoreServices
from firmware_protocol.messages.codec import Command, Event, Reply
from firmware_protocol.messages.enums import (
    Capabilities,
    DeviceClass,
    DeviceState,
    FaultCode,
    JamCode,
    LockState,
    Refusal,
)
from firmware_protocol.messages.limits import CARD_CUT
from firmware_protocol.messages.shoe import (
    CardRetracted,
    Cover,
    Loaded,
    Lock,
    LockReply,
    ReadFail,
    Reread,
    RereadReply,
    ShoeJam,
)
from firmware_protocol.tablelink import plaintext
from hil.devices import card_names, shoe_reader
from hil.devices.pending_events import POLL_US
from hil.devices.request_table import dispatch
from hil.devices.shoe_cards import ShoeContents, order_of
from hil.devices.shoe_reader import FIXED_SALT, CardPull, ReaderFeatures

RECOGNISE_MS: Final = 12
GAP_MS: Final = 60
SALT_SIZE: Final = 11
SLOW_PICTURE_MS: Final = 3
_KEPT: Final = "shoe"


class SimulatedShoe:
    device_class = DeviceClass.SHOE

    def __init__(
        self,
        *,
        gate: bool = True,
        lock: bool = True,
        backs: bool = True,
        orientation: bool = True,
        gap_ms: int = GAP_MS,
    ) -> None:
        flags = (
            (gate, Capabilities.GATE),
            (lock, Capabilities.LOCK),
            (backs, Capabilities.BACKS),
            (orientation, Capabilities.ORIENTATION),
        )
        self.capabilities = Capabilities(sum(flag for has, flag in flags if has))
        self._has_lock = lock
        self._has_gate = gate
        self._eye = ReaderFeatures(backs, orientation)
        self._gap_us = gap_ms * 1000
        self._forget()

    def _forget(self) -> None:
        """All that is in RAM, as a start finds it."""
        self._locked = self._has_lock
        self._inside = ShoeContents()
        self._written = b""
        self._pulls: deque[Draw] = deque()
        self._undrawn = 0
        """How many were not made ..."""
        self._undrawn_why: str | None = None
        """... and what ended the last of them."""
        self._next_at = 0
        """When the hand pulls the next card, if pulls wait."""
        self._over: CardPull | None = None
        self._read_at: int | None = None
        """When what is over the reader has been recognised; None while it is stuck there."""
        self._left = 0
        """How long that had still to go when it got stuck."""
        self._poll_at = 0

    # --- what the core asks ---------------------------------------------------------------

    def start(self, desk: CoreServices, now: int) -> None:
        self._desk = desk
        self._forget()
        self._inside = ShoeContents.read(desk.load(_KEPT))
        self._inside.owed.recall(desk)
        self._settle(now)

    def command(self, command: Command, now: int) -> Reply:
        if isinstance(command, Lock):
            return self._lock(command)
        if isinstance(command, Reread):
            return self._reread(command, now)
        raise CommandRefusal(Refusal.UNKNOWN)

    def safe(self, now: int) -> None:
        if self._desk.broken("open-without-host") and not self._desk.full():
            return
        self._shut("safe state")

    def state(self) -> DeviceState:
        flags = (
            (self._locked, DeviceState.LOCKED),
            (self._inside.cover_open, DeviceState.OPEN),
            (self._inside.jam != JamCode.CLEARED, DeviceState.JAMMED),
        )
        return DeviceState(sum(flag for on, flag in flags if on))

    def selftest(self, now: int) -> tuple[tuple[FaultCode, int], ...]:
        return ()  # what a Defect broke is known to the core

    def hand(self, hand: ControlRequest, now: int) -> Answer:
        return dispatch(self, _REQUESTS, hand, now)

    def wake(self, now: int) -> None:
        if self._inside.owed.events and self._poll_at <= now:
            self._settle(now)
        if self._read_at is not None and self._read_at <= now:
            self._recognised(now)
        self._pull(now)

    def due(self) -> int | None:
        times = []
        if self._inside.owed.events:
            times.append(self._poll_at)
        if self._read_at is not None:
            times.append(self._read_at)
        elif self._pulls and self._free():
            times.append(self._next_at)
        return min(times) if times else None

    # --- commands -------------------------------------------------------------------------

    def _lock(self, command: Lock) -> LockReply:
        if not self._has_lock:
            raise CommandRefusal(Refusal.UNSUPPORTED)
        if command.state is LockState.LOCKED:
            self._shut("lock")
        elif self._desk.full():
            raise CommandRefusal(Refusal.NOT_NOW)
        else:
            self._locked = False
        return LockReply(command.state)

    def _shut(self, why: str) -> None:
        """Lock. What is over the reader comes out; what is behind it stays inside."""
        self._locked = self._has_lock
        if self._locked:
            self._end_pulls(why, deque(pull for pull in self._pulls if pull.force))

    def _end_pulls(self, why: str, left: deque[Draw]) -> None:
        """The hand stops: only those that are left are still made."""
        if len(left) < len(self._pulls):
            self._undrawn += len(self._pulls) - len(left)
            self._undrawn_why = why
        self._pulls = left

    def _reread(self, command: Reread, now: int) -> RereadReply:
        record = self._desk.reread(command.epoch, command.seq)
        if self._desk.broken("reread-rebuilt"):
            record = _rebuilt(record, now)
        return RereadReply(record)

    # --- pulling a card -------------------------------------------------------------------

    def _draw(self, hand: Draw, now: int) -> Answer:
        self._movable()
        if self._locked and not hand.force:
            raise CannotDo("the shoe is locked", "LOCK OPEN, or force")
        each = 2 if hand.double else 1
        waiting = sum(2 if pull.double else 1 for pull in self._pulls)
        waiting += len(self._over.cards) if self._over is not None else 0
        can = (len(self._inside.cards) - waiting) // each
        if can < 1:
            raise CannotDo("there are not so many cards left", f"a pull takes {each}")
        pulls = [hand] * min(hand.count, can)
        if not self._pulls and self._over is None:
            self._next_at = max(self._next_at, now)
        self._pulls.extend(pulls)
        self._pull(now)
        return {"queued": len(pulls), "ms": self._until_all_out(now) // 1000}

    def _until_all_out(self, now: int) -> int:
        pulls = list(self._pulls)
        at = self._next_at
        if self._read_at is not None:
            at = self._read_at + (self._gap_us if pulls else 0)
        for number, pull in enumerate(pulls):
            at += _pull_us(pull) + (self._gap_us if number else 0)
        return at - now

    def _free(self) -> bool:
        """Whether the way is free for the next card."""
        inside = self._inside
        stuck = inside.cover_open or inside.jam != JamCode.CLEARED
        return self._over is None and not inside.owed.events and not stuck

    def _pull(self, now: int) -> None:
        """The hand pulls the next card, if it is time: it comes over the reader."""
        if not self._pulls or self._next_at > now or not self._free():
            return
        draw = self._pulls.popleft()
        count = 2 if draw.double else 1
        pulled = self._inside.cards[:count]
        self._over = CardPull(draw, tuple(pulled), now)
        self._read_at = now + _pull_us(draw)
        if self._desk.broken("pictures-slow") and card_names.is_picture(pulled[0]):
            self._read_at += SLOW_PICTURE_MS * 1000

    def _recognised(self, now: int) -> None:
        assert self._over is not None
        pulled, self._over, self._read_at = self._over, None, None
        # All of the time, a jam's too, but not what recognising takes.
        dwell_ms = (now - pulled.since) // 1000 - RECOGNISE_MS
        found = shoe_reader.report(pulled, self._inside, self._eye, self._salt, dwell_ms)
        inside, events = self._inside, [event for event, _ in found]
        inside.cards = inside.cards[len(pulled.cards) :]
        inside.held = [drawn for _, drawn in found]
        inside.pos = self._position(events)
        if not self._has_gate or self._desk.broken("gate-early"):
            inside.release()
            self._keep()
            inside.owed.add(self._desk, *events)
        else:
            inside.owed.add(self._desk, *events)
            self._keep()
        self._next_at = now + self._gap_us
        self._settle(now)

    def _position(self, events: list[Event]) -> int:
        uncounted = (ReadFail,) if self._desk.broken("unread-uncounted") else ()
        return self._inside.pos + sum(not isinstance(event, uncounted) for event in events)

    def _salt(self) -> bytes:
        return FIXED_SALT if self._desk.broken("salt-fixed") else self._desk.draw(SALT_SIZE)

    def _settle(self, now: int) -> None:
        """Record what is owed; then the gate lets go."""
        self._poll_at = now + POLL_US
        if self._inside.owed.settle(self._desk, now):
            self._inside.release()
        self._keep()

    def _keep(self) -> None:
        """Durably, unless nothing is new."""
        fresh = self._inside.write()
        if fresh != self._written:
            self._desk.save(_KEPT, fresh)
            self._written = fresh

    # --- hands ----------------------------------------------------------------------------

    def _movable(self) -> None:
        """CannotDo while nothing can be moved at the shoe's mouth."""
        if self._inside.cover_open:
            raise CannotDo("the cover is open", "close it first")
        self._unstuck()

    def _unstuck(self) -> None:
        if self._inside.jam != JamCode.CLEARED:
            raise CannotDo("cards are stuck", "jam with code null frees them")
        if self._inside.owed.events:
            raise CannotDo("records wait until the ring has room", "cover, jam, describe")

    def _still(self) -> None:
        """CannotDo while cards are on their way."""
        if self._over is not None or self._pulls:
            raise CannotDo("cards are being drawn", "wait until they are out")

    def _report(self, now: int, *events: Event) -> None:
        self._inside.owed.add(self._desk, *events)
        self._keep()
        self._settle(now)

    def _load(self, hand: Load, now: int) -> Answer:
        self._still()
        self._unstuck()
        order = order_of(hand)
        opening = [] if self._inside.cover_open else [Cover(open=True)]
        self._inside.cover_open = False
        loading = self._desk.next_number("loading")
        self._inside.load(loading, hand.decks, order, hand.back)
        count = sum(card != CARD_CUT for card in order)
        loaded = Loaded(loading, hand.decks, count, hand.shuffle)
        self._report(now, *opening, Cover(open=False), loaded)
        return {"shoe": loading, "count": count}

    def _retract(self, hand: Retract, now: int) -> Answer:
        self._still()
        self._movable()
        if not self._inside.out:
            raise CannotDo("no card of this loading is out", "draw one first")
        back = self._inside.retract()
        self._report(now, CardRetracted(back.pos))
        return {"pos": back.pos}

    def _cover(self, hand: CoverHand, now: int) -> Answer:
        if hand.open == self._inside.cover_open:
            return {"changed": False}
        self._inside.owed.room_for(1)
        self._inside.cover_open = hand.open
        if hand.open:
            self._end_pulls("cover", deque())
        self._report(now, Cover(open=hand.open))
        return {"changed": True}

    def _jam(self, hand: JamHand, now: int) -> Answer:
        code = JamCode.CLEARED if hand.code is None else JamCode[hand.code.upper()]
        if code == self._inside.jam:
            return {"changed": False}
        self._inside.owed.room_for(1)
        if self._read_at is not None:
            self._left, self._read_at = self._read_at - now, None
        elif self._over is not None and code is JamCode.CLEARED:
            self._read_at = now + self._left
        if code is not JamCode.CLEARED:
            self._end_pulls("jam", deque())
        self._inside.jam = code
        self._report(now, ShoeJam(code))
        return {"changed": True}

    def _defect(self, hand: InjectDefect, now: int) -> Answer:
        if hand.code == "reader":
            self._eye = ReaderFeatures(self._eye.backs, self._eye.orientation, blind=hand.on)
        return {}

    def _describe(self, hand: Describe, now: int) -> Answer:
        inside = self._inside
        over = self._over.cards if self._over is not None else ()
        return {
            "loading": inside.loading,
            "decks": inside.decks,
            "back": inside.back,
            "position": inside.pos,
            "left": len(inside.cards) - len(over),
            "cards": card_names.names_of(inside.cards[len(over) :]),
            "out": card_names.names_of(drawn.card for drawn in inside.out),
            "held": card_names.names_of(drawn.card for drawn in inside.held),
            "over_reader": card_names.names_of(over),
            "queued": len(self._pulls),
            "undrawn": self._undrawn,
            "undrawn_why": self._undrawn_why,
            "lock": (LockState.LOCKED if self._locked else LockState.OPEN).name.lower(),
            "cover": "open" if inside.cover_open else "closed",
            "jam": JamCode(inside.jam).name.lower(),
            "owed": len(inside.owed.events),
        }


_REQUESTS: Final[dict[type[Any], Callable[[SimulatedShoe, Any, int], Answer]]] = {
    Load: SimulatedShoe._load,
    Draw: SimulatedShoe._draw,
    Retract: SimulatedShoe._retract,
    CoverHand: SimulatedShoe._cover,
    JamHand: SimulatedShoe._jam,
    InjectDefect: SimulatedShoe._defect,
    Describe: SimulatedShoe._describe,
}


def _pull_us(draw: Draw) -> int:
    """How long a pull takes, from the card's coming over the reader until it is recognised."""
    return (draw.dwell_ms + RECOGNISE_MS) * 1000


def _rebuilt(record: bytes, now: int) -> bytes:
    """What reread-rebuilt answers: the same event, recorded anew."""
    old = plaintext.decode(record, sender="device")
    assert isinstance(old, plaintext.EventRecord)
    return plaintext.chained(
        plaintext.NO_CHAIN,
        epoch=old.epoch,
        seq=old.seq,
        boot=old.boot,
        t_us=now,
        event=old.event,
    ).encode()
