"""The answers of the control socket's verbs: the names and types of their fields.

`hil/CONTROL.md` is generated from these tables. A test compares the simulated devices with them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    Break,
    Chord,
    CutPower,
    Describe,
    Draw,
    Firmware,
    Freeze,
    InjectDefect,
    LetGo,
    LineNoise,
    Load,
    MoveCover,
    MoveDoor,
    Plug,
    Press,
    Put,
    Retract,
    RingMemory,
    ServiceSwitch,
    SetJam,
    SetLamp,
    ShufflePace,
    TamperWith,
)

FLAG: Final = "true or false"
NUMBER: Final = "whole number"
TEXT: Final = "text"
TEXTS: Final = "list of texts"
NUMBERS: Final = "list of whole numbers"
CARDS: Final = "list of cards"
OBJECT: Final = "object"
KINDS: Final = (FLAG, NUMBER, TEXT, TEXTS, NUMBERS, CARDS, OBJECT)
OR_NULL: Final = " or null"


class ReplyField(NamedTuple):
    """One field of an answer."""

    name: str
    kind: str
    text: str


_CHANGED: Final = (ReplyField("changed", FLAG, "whether the state has changed"),)
_RECORDED: Final = (ReplyField("recorded", FLAG, "whether it was recorded"),)
ANSWERS: Final[dict[type[Any], tuple[ReplyField, ...]]] = {
    Describe: (
        ReplyField("class", TEXT, "shoe, shuffler or station"),
        ReplyField("maker", TEXT, "as in HELLO_RSP"),
        ReplyField("model", TEXT, "as in HELLO_RSP"),
        ReplyField("serial", TEXT, "as in HELLO_RSP"),
        ReplyField("firmware", TEXT, "its version"),
        ReplyField("label", TEXT, "the code on the label: 36 hexadecimal digits in groups of four"),
        ReplyField("key", TEXT, "the device's public key, 64 hexadecimal digits"),
        ReplyField("fingerprint", TEXT, "of that key"),
        ReplyField("host", TEXT + OR_NULL, "fingerprint of the paired host's key"),
        ReplyField("state", TEXTS, "the names of the device_state flags that are set"),
        ReplyField("epoch", NUMBER, "the ring"),
        ReplyField("oldest", NUMBER, "lowest seq in the ring; head + 1 when it is empty"),
        ReplyField("head", NUMBER, "highest seq in the ring"),
        ReplyField("acked", NUMBER, "highest seq that is acknowledged"),
        ReplyField("boot", NUMBER, "starts so far"),
        ReplyField("cause", TEXT, "name of the power_cause of this start"),
        ReplyField("session", NUMBER + OR_NULL, "id of the running session"),
        ReplyField("resumed", FLAG, "whether its last RESUME was answered with OK"),
        ReplyField("defects", TEXTS, "defects that are injected and not repaired"),
        ReplyField("breaks", TEXTS, "the breaks that are on"),
        ReplyField("mechanism", OBJECT, "fields of its class, below"),
        ReplyField(
            "powered",
            FLAG,
            "whether it has power; without it, only this and the following fields are present",
        ),
        ReplyField("frozen", FLAG, "whether the firmware hangs"),
        ReplyField("plugged", FLAG, "whether the cable is in"),
        ReplyField(
            "line", OBJECT, "the fields of `line`; to_device, to_host: frames that noise struck"
        ),
        ReplyField("lost", OBJECT, "bytes that were dropped: unplugged, unpowered, frozen, full"),
        ReplyField("port", TEXT + OR_NULL, "serial: its path; null with the cable out"),
        ReplyField(
            "usb_address", NUMBER + OR_NULL, "USB: on its bus; null if it is not plugged in"
        ),
    ),
    ServiceSwitch: (ReplyField("service", FLAG, "the state of the switch"),),
    CutPower: (
        ReplyField("power", TEXT, "cut; on until the moment of the cut"),
        ReplyField("at", TEXT, "as requested"),
    ),
    Plug: (
        ReplyField("plugged", FLAG, "whether the cable is in"),
        ReplyField("port_number", NUMBER, "of its current or last port; 1 is the first"),
    ),
    Freeze: (ReplyField("frozen", FLAG, "whether the firmware hangs"),),
    LineNoise: (ReplyField("line", OBJECT, "the fields as they are now"),),
    Break: (ReplyField("breaks", TEXTS, "the breaks that are on"),),
    RingMemory: (
        ReplyField("epoch", NUMBER, "the ring as it is now"),
        ReplyField("oldest", NUMBER, "lowest seq"),
        ReplyField("head", NUMBER, "highest seq"),
    ),
    TamperWith: _RECORDED,
    InjectDefect: _RECORDED,
    Firmware: (
        ReplyField("firmware", TEXT, "digest that INFO reports, 64 hexadecimal digits"),
        ReplyField("boot", NUMBER, "starts so far"),
    ),
    Load: (
        ReplyField("shoe", NUMBER, "number of the loading, as in LOADED"),
        ReplyField("count", NUMBER, "cards without the cut card, as in LOADED"),
    ),
    Draw: (
        ReplyField("queued", NUMBER, "pulls that are now being made, or wait for the one before"),
        ReplyField("ms", NUMBER, "until the last of them is recognised"),
    ),
    Retract: (ReplyField("pos", NUMBER, "position of the card"),),
    MoveCover: _CHANGED,
    SetJam: _CHANGED,
    Put: (ReplyField("count", NUMBER, "cards of the batch"),),
    MoveDoor: _CHANGED,
    ShufflePace: (),
    Press: (),
    LetGo: (),
    Chord: (),
    SetLamp: (),
}
_OWED: Final = ReplyField("owed", NUMBER, "events that wait for space in the ring")
_JAM: Final = ReplyField("jam", TEXT, "name of the jam_code, in small letters")
MECHANISM: Final[dict[Profile, tuple[ReplyField, ...]]] = {
    "shoe": (
        ReplyField("loading", NUMBER, "number of the loading; 0 before the first"),
        ReplyField("decks", NUMBER, "as set at the shoe"),
        ReplyField("back", NUMBER, "of the cards of this loading"),
        ReplyField("position", NUMBER, "the last position that was taken"),
        ReplyField("left", NUMBER, "cards inside"),
        ReplyField("cards", CARDS, "these, from the top"),
        ReplyField("out", CARDS, "cards that have come out since the loading, in order"),
        ReplyField("held", CARDS, "at the gate, until their records are committed"),
        ReplyField("over_reader", CARDS, "being recognised"),
        ReplyField("queued", NUMBER, "pulls that wait"),
        ReplyField("undrawn", NUMBER, "requested pulls that were cancelled since the start"),
        ReplyField(
            "undrawn_why", TEXT + OR_NULL, "cause of the last one: lock, safe state, cover, jam"
        ),
        ReplyField("lock", TEXT, "open or locked"),
        ReplyField("cover", TEXT, "open or closed"),
        _JAM,
        _OWED,
    ),
    "shuffler": (
        ReplyField("running", NUMBER, "number of the shuffle that runs; 0 for none"),
        ReplyField("percent", NUMBER, "progress"),
        ReplyField("decks", NUMBER, "of the last START"),
        ReplyField("count", NUMBER, "cards of the batch"),
        ReplyField("cards", CARDS, "these, from the top"),
        ReplyField("left_inside", CARDS, "that stayed in the machine"),
        ReplyField("handed_out", CARDS, "that EJECT gave last"),
        ReplyField("door", TEXT, "open or closed"),
        _JAM,
        _OWED,
    ),
    "station": (
        ReplyField("seats", OBJECT, "one object by seat number as text: the next table"),
        ReplyField("presses", NUMBER, "presses that counted since the start"),
        ReplyField("buzz", TEXT, "name of the buzz_pattern that plays now, in small letters"),
        ReplyField("buzzes", NUMBER, "BUZZ commands that were carried out since the start"),
    ),
}
SEAT: Final = (
    ReplyField("armed", TEXTS, "buttons that are armed"),
    ReplyField("token", NUMBER, "of the ARM in force"),
    ReplyField("ttl_ms", NUMBER + OR_NULL, "remaining time; null: no end, which is a defect"),
    ReplyField("down", TEXTS, "buttons that are down"),
    ReplyField("stuck", TEXTS, "those that are stuck"),
    ReplyField("lamps", OBJECT, "the next table"),
)
LAMPS: Final = (
    ReplyField("rgb", NUMBERS, "colour, three of 0 to 255"),
    ReplyField("pattern", TEXT, "name of the lamp_pattern, in small letters"),
    ReplyField("period_ms", NUMBER, "of the pattern"),
    ReplyField("lit", FLAG, "whether any lamp is bright at this moment"),
    ReplyField("percent", NUMBERS, "brightness of each lamp at this moment"),
    ReplyField("lease_ms", NUMBER + OR_NULL, "remaining time; null: no end, which is a defect"),
    ReplyField("broken", NUMBERS, "lamps that are broken"),
)
READ_BY_CONFORM: Final = (
    "label",
    "serial",
    "fingerprint",
    "powered",
    "frozen",
    "mechanism.out",
    "mechanism.buzzes",
    "mechanism.seats.N.lamps.lit",
)
"""The fields that the conformance run reads; it observes everything else on the wire."""
