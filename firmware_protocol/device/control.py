"""Control requests to a simulated device, besides the wire: one line of JSON each.

They are the actions of a person at the device (draw cards, press buttons, pull the plug) and the
switches for faults. `do` names the verb, the other fields are its arguments; unknown fields are
rejected. `hil/CONTROL.md` is generated from this module.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1, le=10_000)]
Back = Annotated[int, Meta(ge=1, le=255)]
Percent = Annotated[int, Meta(ge=0, le=100)]
Share = Annotated[float, Meta(ge=0, le=1)]
Millis = Annotated[int, Meta(ge=0, le=3_600_000)]
Seat = Annotated[int, Meta(ge=1, le=15)]
Jam = Literal["stuck", "double_feed", "no_feed", "exit_blocked", "motor", "left_inside", "other"]
ButtonName = Literal["hit", "stand", "double", "split", "surrender", "yes", "no", "bet", "call"]
DeckName = Literal["full_52", "spanish_48"]
CardName = Annotated[str, Meta(pattern=r"^([2-9TJQKA][cdhs]|cut)\Z")]
Moment = Literal["before_commit", "in_commit", "after_commit", "before_reply", "before_ack"]


class _ControlRequest(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do"):
    pass


# --- any device -------------------------------------------------------------------------------


class Describe(_ControlRequest, frozen=True, tag="describe"):
    """Returns the identity and state of the device, without side effects."""


class ServiceSwitch(_ControlRequest, frozen=True, tag="service"):
    """Turn the service switch, which allows pairing."""

    on: bool


class CutPower(_ControlRequest, frozen=True, tag="power"):
    """Cut the power now, or at the next such moment, once, and restore it `off_ms` later; `cause`
    is reported by the start after it. The response is immediate: with `at` other than now, the cut
    happens during a later operation, and a request that runs into it returns `{"power": "cut",
    "at": ...}`.

    before_commit: nothing of the next record is written. in_commit: half of its bytes are written.
    after_commit: it is committed, but not sent, and its held card is not released. before_reply: a
    command was executed and its records are committed, but its reply is not sent. before_ack: an
    acknowledgement that advances has arrived, but is not handled. What was sent before arrives.
    """

    cause: Literal["power_on", "brown_out", "watchdog", "reset_pin", "software"] = "power_on"
    at: Moment | Literal["now"] = "now"
    off_ms: Millis = 0


class Plug(_ControlRequest, frozen=True, tag="plug"):
    """Disconnect the cable, or connect it. `other_port`: it is connected under another name. A
    serial port PORT becomes PORT-2, then PORT-3; `describe` returns it. On USB it is another
    port of the bus, and the serial number identifies the device. `port_number` connects it to
    the port of that number: 1 is the first one, under its first name. Without both, the last
    port is used."""

    connected: bool
    other_port: bool = False
    port_number: Annotated[int, Meta(ge=1, le=255)] | None = None


class Freeze(_ControlRequest, frozen=True, tag="freeze"):
    """Make the firmware hang, or let it continue: while it hangs, it does not read or send, and its
    clock stops. A power cut ends it."""

    on: bool


class LineNoise(_ControlRequest, frozen=True, tag="line"):
    """Set noise on the cable in both directions, as shares of all frames. All zero: no noise."""

    flip: Share = 0.0
    drop: Share = 0.0
    double: Share = 0.0
    splice: Share = 0.0
    cut: Share = 0.0
    delay_ms: Millis = 0
    seed: int = 1


class Break(_ControlRequest, frozen=True, tag="break"):
    """Switch a deliberate defect on or off (`holecard sim breaks` lists them)."""

    name: str
    on: bool = True


class RingMemory(_ControlRequest, frozen=True, tag="ring"):
    """Access to the memory of the ring: save a snapshot, restore it (a rollback), fill the ring up
    to its spare slots, or replace its memory (a new epoch). After restore and replace the device
    restarts. It is filled with COVER 0, DOOR 0 or LAMP_FAULT of lamp 0, by class; another simulator
    may use any harmless event."""

    what: Literal["save", "restore", "fill", "replace"]


class TamperWith(_ControlRequest, frozen=True, tag="tamper"):
    """Start or stop tampering with the device."""

    source: Literal["case", "seal", "reader", "magnet", "debug_port", "keys", "cable"]
    active: bool = True


class InjectDefect(_ControlRequest, frozen=True, tag="defect"):
    """Break or repair a part. FAULT is recorded when the defect starts, and by each SELFTEST that
    finds it. The defect outlasts power cuts. A defective reader causes READ_FAIL READER; a dirty
    one reads with 85 % confidence. With `memory` the keys are damaged: HELLO is only answered with
    ALERT DEFECT, and pairing is impossible until it is repaired; a running session continues. The
    other defects have no effect besides FAULT."""

    code: Literal[
        "reader",
        "reader_dirty",
        "motor",
        "sensor",
        "gate",
        "lamps",
        "clock",
        "random",
        "temperature",
        "memory",
    ]
    on: bool = True
    arg: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0


class Firmware(_ControlRequest, frozen=True, tag="firmware"):
    """Install another firmware: the device restarts at once with another digest."""

    version: Annotated[str, Meta(min_length=1, max_length=32)]


# --- shoe -------------------------------------------------------------------------------------


class Load(_ControlRequest, frozen=True, tag="load"):
    """Open the cover, replace the cards, close it: COVER 1 (unless it is open), COVER 0, LOADED.
    The order is `cards` from the top, or `decks` decks shuffled with `seed` by a method of the
    simulator (0: unshuffled); `remove` and `add` make a wrong number; the cut card is inserted
    after `cut_at` cards. LOADED contains these `decks`, `shuffle` and `kind`. At a full ring its
    records wait. A new device is empty.

    `back` is the maker's number of the card backs. A house alternates two batches, so with null it
    is 1 in the first loading, and alternates between 1 and 2 after each loading of which a card was
    drawn; without a drawn card it is the same batch again.
    """

    decks: Annotated[int, Meta(ge=0, le=12)] = 6
    seed: int = 0
    cards: tuple[CardName, ...] = ()
    remove: tuple[CardName, ...] = ()
    add: tuple[CardName, ...] = ()
    cut_at: Annotated[int, Meta(ge=1, le=1000)] | None = None
    shuffle: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0
    back: Back | None = None
    kind: DeckName = "full_52"


class Draw(_ControlRequest, frozen=True, tag="draw"):
    """Draw cards, `count` times one card, or two with `double`, of which the first is read and
    covers the other, or the second with `second_read`. `read` is the result of the reader.
    A locked shoe releases no card unless `force` is set. Refused if no card can be drawn: locked,
    empty, jammed, cover open, or records are waiting for the ring. If there are fewer cards than
    requested, all of them are drawn; a lock, jam, cover or full ring in between ends it too, and
    the events on the wire show how many were drawn.

    The response is immediate. Each draw takes `dwell_ms` and then 12 ms of recognition, and the
    next one starts 60 ms later; another simulator may be faster, but CARD_READ.dwell is still
    `dwell_ms`. `confidence` null: 99, or 55 with `read` low. `wrong` reads another card. `reversed`
    has an effect only in a model with ORIENTATION.
    """

    count: Count = 1
    dwell_ms: Annotated[int, Meta(ge=0, le=65_535)] = 40
    read: Literal["well", "low", "wrong", "unreadable", "no_index", "too_fast", "foreign"] = "well"
    confidence: Percent | None = None
    double: bool = False
    second_read: bool = False
    reversed: bool = False
    force: bool = False


class Retract(_ControlRequest, frozen=True, tag="retract"):
    """Push the last drawn card back in, locked or not. One card each time; refused while cards are
    being drawn."""


class MoveCover(_ControlRequest, frozen=True, tag="cover"):
    """Open or close the cover."""

    open: bool


class SetJam(_ControlRequest, frozen=True, tag="jam"):
    """Jam the cards, or clear the jam with `code: null`. Shoe and shuffler."""

    code: Jam | None


# --- shuffler ---------------------------------------------------------------------------------


class Put(_ControlRequest, frozen=True, tag="put"):
    """Insert a batch through the door: `decks` of this `kind`, less `remove`, plus `add`; with 0
    decks the machine is emptied. `left_inside`: cards of the batch that will remain in the machine.
    `sorted`: the shuffle will leave it sorted (the test of its generator fails)."""

    decks: Annotated[int, Meta(ge=0, le=12)]
    kind: DeckName = "full_52"
    remove: tuple[CardName, ...] = ()
    add: tuple[CardName, ...] = ()
    left_inside: Annotated[int, Meta(ge=0, le=52)] = 0
    sorted: bool = False


class MoveDoor(_ControlRequest, frozen=True, tag="door"):
    """Open or close the door."""

    open: bool


class ShufflePace(_ControlRequest, frozen=True, tag="pace"):
    """Set the duration of later shuffles."""

    shuffle_ms: Millis


# --- station ----------------------------------------------------------------------------------


class Press(_ControlRequest, frozen=True, tag="press"):
    """Press a button and release it after `held_ms`; `held_ms: null` keeps it pressed.
    `bounces`: the contact bounces so often at each edge, within the debounce time. The response
    is immediate."""

    seat: Seat
    button: ButtonName
    held_ms: Millis | None = 80
    bounces: Annotated[int, Meta(ge=0, le=20)] = 0


class LetGo(_ControlRequest, frozen=True, tag="let_go"):
    """Release a button."""

    seat: Seat
    button: ButtonName
    bounces: Annotated[int, Meta(ge=0, le=20)] = 0


class Chord(_ControlRequest, frozen=True, tag="chord"):
    """Press several buttons of a seat at once, in this order."""

    seat: Seat
    buttons: tuple[ButtonName, ...]
    held_ms: Millis = 80


class SetLamp(_ControlRequest, frozen=True, tag="lamp"):
    """Break or repair a lamp."""

    seat: Seat
    index: Annotated[int, Meta(ge=0, le=255)] = 0
    broken: bool = True


Anywhere: TypeAlias = (
    Describe
    | ServiceSwitch
    | CutPower
    | Plug
    | Freeze
    | LineNoise
    | Break
    | RingMemory
    | TamperWith
    | InjectDefect
    | Firmware
)
AtShoe: TypeAlias = Load | Draw | Retract | MoveCover | SetJam
AtShuffler: TypeAlias = Put | MoveDoor | ShufflePace | SetJam
AtStation: TypeAlias = Press | LetGo | Chord | SetLamp
ControlRequest: TypeAlias = (
    Anywhere
    | Load
    | Draw
    | Retract
    | MoveCover
    | SetJam
    | Put
    | MoveDoor
    | ShufflePace
    | Press
    | LetGo
    | Chord
    | SetLamp
)
