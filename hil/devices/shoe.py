"""A card-reading shoe: cards, cover, gate, lock and reader.

The duration of a pull does not depend on the card: `dwell_ms` over the reader, as requested, then
RECOGNISE_MS, the time for the slowest card. The next pull follows after GAP_MS. With GATE the card
waits at the gate until its record is committed; without, it is out before.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final

from msgspec.structs import replace

from firmware_protocol.device import (
    Answer,
    CannotDo,
    CommandRefusal,
    Describe,
    Draw,
    InjectDefect,
    Load,
    MoveCover,
    Retract,
    SetJam,
)
from firmware_protocol.messages import (
    CARD_CUT,
    Capabilities,
    CardFlags,
    CardRetracted,
    Cover,
    DeckKind,
    DeviceClass,
    DeviceState,
    Event,
    JamCode,
    Loaded,
    Lock,
    LockReply,
    LockState,
    ReadFail,
    Refusal,
    Reread,
    RereadReply,
    ShoeJam,
)
from firmware_protocol.tablelink import NO_CHAIN, EventRecord, chained, decode_plaintext
from hil.devices import card_names, shoe_cards
from hil.devices.mechanism import CommandTable, RequestTable, SimulatedMechanism, flag_set
from hil.devices.shoe_cards import (
    FIXED_SALT,
    CardPull,
    ReaderFeatures,
    ShoeContents,
    kind_of,
    order_of,
)

RECOGNISE_MS: Final = 12
GAP_MS: Final = 60
SALT_SIZE: Final = 11
SLOW_PICTURE_MS: Final = 3


class SimulatedShoe(SimulatedMechanism):
    device_class = DeviceClass.SHOE
    STATE = "shoe"
    CONTENTS = ShoeContents
    JAM = ShoeJam
    _contents: ShoeContents

    def __init__(
        self,
        *,
        gate: bool = True,
        lock: bool = True,
        backs: bool = True,
        orientation: bool = True,
        orders_doubles: bool = True,
        gateway: bool = False,
        gap_ms: int = GAP_MS,
    ) -> None:
        self.capabilities = flag_set(
            Capabilities,
            {
                Capabilities.GATE: gate,
                Capabilities.LOCK: lock,
                Capabilities.BACKS: backs,
                Capabilities.ORIENTATION: orientation,
                Capabilities.GATEWAY: gateway,
            },
        )
        self._reader = ReaderFeatures(backs, orientation, orders_doubles=orders_doubles)
        self._gap_us = gap_ms * 1000
        self._reset(0)

    def _reset(self, now: int) -> None:
        self._locked = Capabilities.LOCK in self.capabilities
        self._contents = ShoeContents()
        self._pulls: deque[Draw] = deque()
        self._undrawn = 0
        """Pulls that were cancelled, and the cause of the last cancellation."""
        self._undrawn_why: str | None = None
        self._next_at = 0
        """When the next pull starts, if any is queued."""
        self._over: CardPull | None = None
        self._read_at: int | None = None
        """When the cards over the reader are recognised; None while they are stuck there."""
        self._remaining = 0
        """Time until then, when they got stuck."""

    def _flushed(self) -> None:
        self._contents.release()

    # --- for the core ---------------------------------------------------------------------

    def safe(self, now: int) -> None:
        if not self._core.broken("open-without-host") or self._core.full():
            self._shut("safe state")

    def state(self) -> DeviceState:
        return flag_set(
            DeviceState,
            {
                DeviceState.LOCKED: self._locked,
                DeviceState.OPEN: self._contents.cover_open,
                DeviceState.JAMMED: self._contents.jam != JamCode.CLEARED,
            },
        )

    def wake(self, now: int) -> None:
        self._poll(now)
        if self._read_at is not None and self._read_at <= now:
            self._recognised(now)
        self._pull(now)

    def due(self) -> int | None:
        times = self._poll_due()
        if self._read_at is not None:
            times.append(self._read_at)
        elif self._pulls and self._is_free():
            times.append(self._next_at)
        return min(times, default=None)

    # --- commands -------------------------------------------------------------------------

    def _lock(self, command: Lock, now: int) -> LockReply:
        if Capabilities.LOCK not in self.capabilities:
            raise CommandRefusal(Refusal.UNSUPPORTED)
        if command.state is LockState.LOCKED:
            self._shut("lock")
        elif self._core.full():
            raise CommandRefusal(Refusal.NOT_NOW)
        else:
            self._locked = False
        return LockReply(command.state)

    def _shut(self, why: str) -> None:
        """Lock. A card over the reader still comes out; the queued pulls are cancelled."""
        if Capabilities.LOCK in self.capabilities:
            self._locked = True
            self._cancel_pulls(why, keep_forced=True)

    def _cancel_pulls(self, why: str, *, keep_forced: bool = False) -> None:
        kept = deque(pull for pull in self._pulls if keep_forced and pull.force)
        if len(kept) < len(self._pulls):
            self._undrawn += len(self._pulls) - len(kept)
            self._undrawn_why = why
        self._pulls = kept

    def _reread(self, command: Reread, now: int) -> RereadReply:
        record = self._core.reread(command.epoch, command.seq)
        if self._core.broken("reread-rebuilt"):
            record = _rebuilt(record, now)
        return RereadReply(record)

    # --- pulling a card -------------------------------------------------------------------

    def _draw(self, request: Draw, now: int) -> Answer:
        self._require_movable()
        if self._locked and not request.force:
            raise CannotDo("the shoe is locked", "LOCK OPEN, or force")
        each = _cards_in(request)
        taken = sum(map(_cards_in, self._pulls))
        taken += len(self._over.cards) if self._over is not None else 0
        possible = (len(self._contents.cards) - taken) // each
        if possible < 1:
            raise CannotDo("there are not enough cards left", f"a pull takes {each}")
        pulls = [request] * min(request.count, possible)
        if not self._pulls and self._over is None:
            self._next_at = max(self._next_at, now)
        self._pulls.extend(pulls)
        self._pull(now)
        return {"queued": len(pulls), "ms": self._until_all_out(now) // 1000}

    def _until_all_out(self, now: int) -> int:
        at = self._next_at
        if self._read_at is not None:
            at = self._read_at + (self._gap_us if self._pulls else 0)
        gaps = max(0, len(self._pulls) - 1) * self._gap_us
        return at + sum(map(_pull_us, self._pulls)) + gaps - now

    def _is_free(self) -> bool:
        """Whether the next card can be moved over the reader."""
        contents = self._contents
        stuck = contents.cover_open or contents.jam != JamCode.CLEARED
        return self._over is None and not self._pending.events and not stuck

    def _pull(self, now: int) -> None:
        """Move the next card over the reader, if its time has come."""
        if not self._pulls or self._next_at > now or not self._is_free():
            return
        draw = self._pulls.popleft()
        cards = self._contents.cards[: _cards_in(draw)]
        self._over = CardPull(draw, tuple(cards), now)
        self._read_at = now + _pull_us(draw)
        if self._core.broken("pictures-slow") and card_names.is_picture(cards[0]):
            self._read_at += SLOW_PICTURE_MS * 1000

    def _recognised(self, now: int) -> None:
        assert self._over is not None
        pull, self._over, self._read_at = self._over, None, None
        # The whole time, a jam's too, without what recognising takes.
        dwell_ms = (now - pull.since) // 1000 - RECOGNISE_MS
        contents, core = self._contents, self._core
        reader = self._reader
        if core.broken("dirty-blinds"):
            reader = replace(reader, blind=reader.blind or reader.dirty)
        found = shoe_cards.report(pull, contents, reader, self._salt, dwell_ms)
        events = [self._double(event) for event, _ in found]
        if core.broken("double-read-first"):
            events.sort(key=lambda event: isinstance(event, ReadFail))
        contents.cards = contents.cards[len(pull.cards) :]
        contents.held = [drawn for _, drawn in found]
        uncounted = (ReadFail,) if core.broken("unread-uncounted") else ()
        contents.pos += sum(not isinstance(event, uncounted) for event in events)
        self._next_at = now + self._gap_us
        if Capabilities.GATE in self.capabilities and not core.broken("gate-early"):
            self._report(now, *events)
            return
        contents.release()
        self._store()  # the card is out before its event is pending: a power cut may lose it
        self._pending.add(core, *events)
        self._flush(now)

    def _double(self, event: Event) -> Event:
        """The event of a card; without its flags with the break double-unflagged."""
        if isinstance(event, ReadFail) and self._core.broken("double-unflagged"):
            return ReadFail(event.pos, event.why, CardFlags(0))
        return event

    def _salt(self) -> bytes:
        return FIXED_SALT if self._core.broken("salt-fixed") else self._core.draw(SALT_SIZE)

    # --- requests -------------------------------------------------------------------------

    def _require_movable(self) -> None:
        """Raises CannotDo while no card can be moved at the shoe's mouth."""
        if self._contents.cover_open:
            raise CannotDo("the cover is open", "close it first")
        self._require_unstuck()

    def _require_unstuck(self) -> None:
        if self._contents.jam != JamCode.CLEARED:
            raise CannotDo("cards are stuck", "jam with code null frees them")
        if self._pending.events:
            raise CannotDo("records wait until the ring has space", "cover, jam, describe")

    def _require_still(self) -> None:
        if self._over is not None or self._pulls:
            raise CannotDo("cards are being drawn", "wait until they are out")

    def _load(self, request: Load, now: int) -> Answer:
        self._require_still()
        self._require_unstuck()
        order = order_of(request)
        opening = [] if self._contents.cover_open else [Cover(open=True)]
        self._contents.cover_open = False
        loading = self._core.next_number("loading")
        self._contents.load(loading, request, order)
        count = sum(card != CARD_CUT for card in order)
        fixed = self._core.broken("deck-kind-fixed")
        kind = DeckKind.FULL_52 if fixed else kind_of(request.kind)
        loaded = Loaded(loading, request.decks, count, request.shuffle, kind)
        self._report(now, *opening, Cover(open=False), loaded)
        return {"shoe": loading, "count": count}

    def _retract(self, request: Retract, now: int) -> Answer:
        self._require_still()
        self._require_movable()
        if not self._contents.out:
            raise CannotDo("no card of this loading is out", "draw one first")
        back = self._contents.retract()
        self._report(now, CardRetracted(back.pos))
        return {"pos": back.pos}

    def _cover(self, request: MoveCover, now: int) -> Answer:
        if request.open == self._contents.cover_open:
            return {"changed": False}
        self._pending.require_capacity(1)
        self._contents.cover_open = request.open
        if request.open:
            self._cancel_pulls("cover")
        self._report(now, Cover(open=request.open))
        return {"changed": True}

    def _stick(self, code: JamCode, now: int) -> None:
        if self._read_at is not None:
            self._remaining, self._read_at = self._read_at - now, None
        elif self._over is not None and code is JamCode.CLEARED:
            self._read_at = now + self._remaining
        if code is not JamCode.CLEARED:
            self._cancel_pulls("jam")

    def _defect(self, request: InjectDefect, now: int) -> Answer:
        if request.code == "reader":
            self._reader = replace(self._reader, blind=request.on)
        elif request.code == "reader_dirty":
            self._reader = replace(self._reader, dirty=request.on)
        return {}

    def _describe(self, request: Describe, now: int) -> Answer:
        contents = self._contents
        over = self._over.cards if self._over is not None else ()
        inside = contents.cards[len(over) :]
        return {
            "loading": contents.loading,
            "decks": contents.decks,
            "kind": DeckKind(contents.kind).name.lower(),
            "back": contents.back,
            "position": contents.pos,
            "left": len(inside),
            "cards": card_names.names_of(inside),
            "out": card_names.names_of(drawn.card for drawn in contents.out),
            "held": card_names.names_of(drawn.card for drawn in contents.held),
            "over_reader": card_names.names_of(over),
            "queued": len(self._pulls),
            "undrawn": self._undrawn,
            "undrawn_why": self._undrawn_why,
            "lock": "locked" if self._locked else "open",
            "cover": "open" if contents.cover_open else "closed",
            "jam": JamCode(contents.jam).name.lower(),
            "owed": len(self._pending.events),
        }

    COMMANDS: ClassVar[CommandTable] = {Lock: _lock, Reread: _reread}
    REQUESTS: ClassVar[RequestTable] = {
        Load: _load,
        Draw: _draw,
        Retract: _retract,
        MoveCover: _cover,
        SetJam: SimulatedMechanism._jam,
        InjectDefect: _defect,
        Describe: _describe,
    }


def _cards_in(draw: Draw) -> int:
    return 2 if draw.double else 1


def _pull_us(draw: Draw) -> int:
    """The time from a card's arrival over the reader until it is recognised."""
    return (draw.dwell_ms + RECOGNISE_MS) * 1000


def _rebuilt(record: bytes, now: int) -> bytes:
    """The answer of the break reread-rebuilt: the same event in a new record."""
    old = decode_plaintext(record, sender="device")
    assert isinstance(old, EventRecord)
    return chained(
        NO_CHAIN,
        epoch=old.epoch,
        seq=old.seq,
        boot=old.boot,
        t_us=now,
        event=old.event,
    ).encode()
