"""What hands can do at a simulated device, besides the wire: one line of JSON each.

Whoever stands at the device draws cards, presses buttons, pulls the plug and switches faults on.
These are the verbs of the control socket (`hil/CONTROL.md` is drawn from this module and from
`answers`): `do` names the verb, the other fields are its arguments, and unknown fields are refused.
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
CardName = Annotated[str, Meta(pattern=r"^([2-9TJQKA][cdhs]|cut)\Z")]
Moment = Literal["before_commit", "in_commit", "after_commit", "before_reply", "before_ack"]


class _Hand(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do"):
    pass


# --- any device -------------------------------------------------------------------------------


class Describe(_Hand, frozen=True, tag="describe"):
    """What the device is and how it stands. It changes nothing."""


class ServiceSwitch(_Hand, frozen=True, tag="service"):
    """Turn the service switch, which allows pairing."""

    on: bool


class CutPower(_Hand, frozen=True, tag="power"):
    """Cut the power now, or at the next such moment, once, and give it back `off_ms` later; `cause`
    is what the start after it tells. Answered at once: with `at` other than now, the cut comes in
    the middle of something that happens later, and a hand that runs into it is answered
    `{"power": "cut", "at": ...}`.

    before_commit: a record is about to be written, and nothing of it is. in_commit: half of its
    bytes are written. after_commit: it is committed; it is not sent, and no card that it holds is
    released. before_reply: a command was carried out and its records are committed; its reply is
    not sent. before_ack: an acknowledgement has come that moves on, and nothing is done about it.
    What was sent before arrives."""

    cause: Literal["power_on", "brown_out", "watchdog", "reset_pin", "software"] = "power_on"
    at: Moment | Literal["now"] = "now"
    off_ms: Millis = 0


class Plug(_Hand, frozen=True, tag="plug"):
    """Pull the cable, or put it back. `other_port`: it comes back under another name. A serial
    port PORT comes back as PORT-2, then PORT-3; `describe` tells. On USB it is another port of the
    bus, and the serial number tells who it is. `port_number` puts it into the port of that number:
    1 is the first one, under its first name. Without both it comes back where it was last."""

    connected: bool
    other_port: bool = False
    port_number: Annotated[int, Meta(ge=1, le=255)] | None = None


class Freeze(_Hand, frozen=True, tag="freeze"):
    """The firmware hangs: nothing is read, nothing is sent, time stands still for it; or it goes
    on. A power cut ends it."""

    on: bool


class LineNoise(_Hand, frozen=True, tag="line"):
    """Noise on the cable, in both directions; shares of all frames-worth of bytes. All zero: a
    clean line."""

    flip: Share = 0.0
    drop: Share = 0.0
    double: Share = 0.0
    splice: Share = 0.0
    cut: Share = 0.0
    delay_ms: Millis = 0
    seed: int = 1


class Break(_Hand, frozen=True, tag="break"):
    """Switch a deliberate defect on or off (`holecard sim breaks` lists them)."""

    name: str
    on: bool = True


class RingMemory(_Hand, frozen=True, tag="ring"):
    """The maker's way to the ring: save a copy of it, restore the copy (a roll-back), fill it until
    it is full up to its spare slots, or replace its memory (a new epoch). After restore and replace
    the device starts. It is filled with COVER 0, DOOR 0 or LAMP_FAULT of lamp 0, by class; anything
    harmless will do."""

    what: Literal["save", "restore", "fill", "replace"]


class TamperWith(_Hand, frozen=True, tag="tamper"):
    """Someone is at the device."""

    source: Literal["case", "seal", "reader", "magnet", "debug_port", "keys", "cable"]
    active: bool = True


class InjectDefect(_Hand, frozen=True, tag="defect"):
    """Something stops working, or works again. FAULT is recorded when it begins, and by each
    SELFTEST that finds it. It stays broken over power cuts. A reader that is broken makes READ_FAIL
    READER. With `memory` the device finds its keys damaged: HELLO is answered with ALERT DEFECT
    alone and nobody is paired, until it is whole again; what runs goes on. The others are only
    found."""

    code: Literal[
        "reader", "motor", "sensor", "gate", "lamps", "clock", "random", "temperature", "memory"
    ]
    on: bool = True
    arg: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0


class Firmware(_Hand, frozen=True, tag="firmware"):
    """Put other firmware in: another digest at the next start, and it starts at once."""

    version: Annotated[str, Meta(min_length=1, max_length=32)]


# --- shoe -------------------------------------------------------------------------------------


class Load(_Hand, frozen=True, tag="load"):
    """Open the cover, put cards in, close it: COVER 1 (not if it is open), COVER 0, LOADED. What
    was inside is taken out. The order is `cards` from the top, or `decks` decks shuffled with
    `seed` in the maker's own way (0: as they come from the box); `remove` and `add` make a wrong
    number; the cut card goes in after `cut_at` cards. LOADED tells `decks` and `shuffle` as they
    are here. At a full ring its records wait. A new device is empty.

    `back` is the maker's number of the cards' backs. A house deals two batches in turn, so with
    null they are 1 in the first loading, and 1 and 2 by turns after a loading of which a card came
    out; what was loaded and not dealt is the same batch again."""

    decks: Annotated[int, Meta(ge=0, le=12)] = 6
    seed: int = 0
    cards: tuple[CardName, ...] = ()
    remove: tuple[CardName, ...] = ()
    add: tuple[CardName, ...] = ()
    cut_at: Annotated[int, Meta(ge=1, le=1000)] | None = None
    shuffle: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0
    back: Back | None = None


class Draw(_Hand, frozen=True, tag="draw"):
    """Pull cards, `count` times one card, or two with `double`. `read`: how the reader fares. A
    locked shoe lets none out unless `force`. It is refused when no card can come: locked, empty,
    jammed, cover open, or records wait for room in the ring. When there are fewer cards than asked
    for, those that there are come; a lock, jam, cover or full ring on the way ends it too, and the
    wire tells how far it came.

    Answered at once. Each pull takes `dwell_ms` and then 12 ms to be recognised, and the next one
    begins 60 ms later; a maker's own may be quicker, and CARD_READ.dwell is `dwell_ms` all the
    same. `confidence` null: 99, or 55 with `read` low. `wrong` reads another card. `reversed`
    shows in a model with ORIENTATION only."""

    count: Count = 1
    dwell_ms: Annotated[int, Meta(ge=0, le=65_535)] = 40
    read: Literal["well", "low", "wrong", "unreadable", "no_index", "too_fast", "foreign"] = "well"
    confidence: Percent | None = None
    double: bool = False
    reversed: bool = False
    force: bool = False


class Retract(_Hand, frozen=True, tag="retract"):
    """Push the last card that came out back in, locked or not. One card each time; refused while
    cards are being drawn."""


class CoverHand(_Hand, frozen=True, tag="cover"):
    """Open or close the cover."""

    open: bool


class JamHand(_Hand, frozen=True, tag="jam"):
    """Cards get stuck, or `code: null` frees them. Shoe and shuffler."""

    code: Jam | None


# --- shuffler ---------------------------------------------------------------------------------


class Put(_Hand, frozen=True, tag="put"):
    """Put a batch in through the door: `decks` of 52, less `remove`, plus `add`. `left_inside`:
    cards of the batch that will stay in the machine. `sorted`: the shuffle will leave it sorted
    (its generator's own test fails)."""

    decks: Annotated[int, Meta(ge=1, le=12)]
    remove: tuple[CardName, ...] = ()
    add: tuple[CardName, ...] = ()
    left_inside: Annotated[int, Meta(ge=0, le=52)] = 0
    sorted: bool = False


class DoorHand(_Hand, frozen=True, tag="door"):
    """Open or close the door."""

    open: bool


class ShufflePace(_Hand, frozen=True, tag="pace"):
    """How long a shuffle takes from now on."""

    shuffle_ms: Millis


# --- station ----------------------------------------------------------------------------------


class Press(_Hand, frozen=True, tag="press"):
    """Press a button and let it go after `held_ms`; `held_ms: null` keeps it down. `bounces`: the
    contact bounces so often at each edge, within the debounce time. Answered at once."""

    seat: Seat
    button: ButtonName
    held_ms: Millis | None = 80
    bounces: Annotated[int, Meta(ge=0, le=20)] = 0


class LetGo(_Hand, frozen=True, tag="let_go"):
    """Let a button go."""

    seat: Seat
    button: ButtonName
    bounces: Annotated[int, Meta(ge=0, le=20)] = 0


class Chord(_Hand, frozen=True, tag="chord"):
    """Several buttons of a seat at once, in this order."""

    seat: Seat
    buttons: tuple[ButtonName, ...]
    held_ms: Millis = 80


class LampHand(_Hand, frozen=True, tag="lamp"):
    """A lamp breaks, or is whole again."""

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
AtShoe: TypeAlias = Load | Draw | Retract | CoverHand | JamHand
AtShuffler: TypeAlias = Put | DoorHand | ShufflePace | JamHand
AtStation: TypeAlias = Press | LetGo | Chord | LampHand
ControlRequest: TypeAlias = (
    Anywhere
    | Load
    | Draw
    | Retract
    | CoverHand
    | JamHand
    | Put
    | DoorHand
    | ShufflePace
    | Press
    | LetGo
    | Chord
    | LampHand
)
