"""What each verb of the control socket answers: the names and kinds of its fields.

`hil/CONTROL.md` is drawn from here too. A test holds the simulated devices to it, field by field.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from firmware_protocol.conformance import Profile
from firmware_protocol.device import control

FLAG: Final = "true or false"
NUMBER: Final = "whole number"
TEXT: Final = "text"
TEXTS: Final = "list of texts"
NUMBERS: Final = "list of whole numbers"
CARDS: Final = "list of cards"
OBJECT: Final = "object"
KINDS: Final = (FLAG, NUMBER, TEXT, TEXTS, NUMBERS, CARDS, OBJECT)
OR_NULL: Final = " or null"


class Told(NamedTuple):
    """One field of an answer."""

    name: str
    kind: str
    text: str


_CHANGED: Final = (Told("changed", FLAG, "whether it was not so before"),)
_RECORDED: Final = (Told("recorded", FLAG, "whether a record of it was made"),)
ANSWERS: Final[dict[type[Any], tuple[Told, ...]]] = {
    control.Describe: (
        Told("class", TEXT, "shoe, shuffler or station"),
        Told("maker", TEXT, "as in HELLO_RSP"),
        Told("model", TEXT, "as in HELLO_RSP"),
        Told("serial", TEXT, "as in HELLO_RSP"),
        Told("firmware", TEXT, "its version"),
        Told("label", TEXT, "the code on the label: 36 hexadecimal digits in groups of four"),
        Told("key", TEXT, "the device's public key, 64 hexadecimal digits"),
        Told("fingerprint", TEXT, "of that key"),
        Told("host", TEXT + OR_NULL, "fingerprint of the paired host's key"),
        Told("state", TEXTS, "the names of the device_state flags that are set"),
        Told("epoch", NUMBER, "the ring"),
        Told("oldest", NUMBER, "lowest seq in the ring; head + 1 when it is empty"),
        Told("head", NUMBER, "highest seq in the ring"),
        Told("acked", NUMBER, "highest seq that is acknowledged"),
        Told("boot", NUMBER, "starts so far"),
        Told("cause", TEXT, "name of the power_cause of this start"),
        Told("session", NUMBER + OR_NULL, "id of the running session"),
        Told("resumed", FLAG, "whether its last RESUME was answered with OK"),
        Told("defects", TEXTS, "what `defect` broke and nobody has mended"),
        Told("breaks", TEXTS, "the breaks that are on"),
        Told("mechanism", OBJECT, "what its class has besides: below"),
        Told("powered", FLAG, "whether it has power; without it, only what follows is told"),
        Told("frozen", FLAG, "whether the firmware hangs"),
        Told("plugged", FLAG, "whether the cable is in"),
        Told("line", OBJECT, "the fields of `line`; to_device, to_host: frames that noise struck"),
        Told("lost", OBJECT, "bytes that fell off: unplugged, unpowered, frozen, full"),
        Told("port", TEXT + OR_NULL, "serial: where hosts find it; null with the cable out"),
        Told("usb_address", NUMBER + OR_NULL, "USB: on its bus; null when it is not there"),
    ),
    control.ServiceSwitch: (Told("service", FLAG, "how the switch stands"),),
    control.CutPower: (
        Told("power", TEXT, "cut; on while the moment is waited for"),
        Told("at", TEXT, "as asked"),
    ),
    control.Plug: (
        Told("plugged", FLAG, "whether the cable is in"),
        Told("port_number", NUMBER, "of the port that it is in or was in last; 1 is the first"),
    ),
    control.Freeze: (Told("frozen", FLAG, "whether the firmware hangs"),),
    control.LineNoise: (Told("line", OBJECT, "the fields as they are now"),),
    control.Break: (Told("breaks", TEXTS, "the breaks that are on"),),
    control.RingMemory: (
        Told("epoch", NUMBER, "the ring as it is now"),
        Told("oldest", NUMBER, "lowest seq"),
        Told("head", NUMBER, "highest seq"),
    ),
    control.TamperWith: _RECORDED,
    control.InjectDefect: _RECORDED,
    control.Firmware: (
        Told("firmware", TEXT, "digest that INFO names from now on, 64 hexadecimal digits"),
        Told("boot", NUMBER, "starts so far"),
    ),
    control.Load: (
        Told("shoe", NUMBER, "number of the loading, as in LOADED"),
        Told("count", NUMBER, "cards without the cut card, as in LOADED"),
    ),
    control.Draw: (
        Told("queued", NUMBER, "pulls that are now being made, or wait for the one before"),
        Told("ms", NUMBER, "until the last of them is recognised"),
    ),
    control.Retract: (Told("pos", NUMBER, "position of the card"),),
    control.CoverHand: _CHANGED,
    control.JamHand: _CHANGED,
    control.Put: (Told("count", NUMBER, "cards of the batch"),),
    control.DoorHand: _CHANGED,
    control.ShufflePace: (),
    control.Press: (),
    control.LetGo: (),
    control.Chord: (),
    control.LampHand: (),
}
_OWED: Final = Told("owed", NUMBER, "events that wait for room in the ring")
_JAM: Final = Told("jam", TEXT, "name of the jam_code, in small letters")
MECHANISM: Final[dict[Profile, tuple[Told, ...]]] = {
    "shoe": (
        Told("loading", NUMBER, "number of the loading; 0 before the first"),
        Told("decks", NUMBER, "as set at the shoe"),
        Told("back", NUMBER, "of the cards of this loading"),
        Told("position", NUMBER, "the last position that was taken"),
        Told("left", NUMBER, "cards inside"),
        Told("cards", CARDS, "these, from the top"),
        Told("out", CARDS, "cards that have come out since the loading, in order"),
        Told("held", CARDS, "at the gate, until their records are committed"),
        Told("over_reader", CARDS, "being recognised"),
        Told("queued", NUMBER, "pulls that wait"),
        Told("undrawn", NUMBER, "pulls since the start that were asked for and not made"),
        Told("undrawn_why", TEXT + OR_NULL, "what ended the last: lock, safe state, cover, jam"),
        Told("lock", TEXT, "open or locked"),
        Told("cover", TEXT, "open or closed"),
        _JAM,
        _OWED,
    ),
    "shuffler": (
        Told("running", NUMBER, "number of the shuffle that runs; 0 for none"),
        Told("percent", NUMBER, "how far it is"),
        Told("decks", NUMBER, "of the last START"),
        Told("count", NUMBER, "cards of the batch"),
        Told("cards", CARDS, "these, from the top"),
        Told("left_inside", CARDS, "that stayed in the machine"),
        Told("handed_out", CARDS, "that EJECT gave last"),
        Told("door", TEXT, "open or closed"),
        _JAM,
        _OWED,
    ),
    "station": (
        Told("seats", OBJECT, "one object by seat number as text: the next table"),
        Told("presses", NUMBER, "presses that counted since the start"),
        Told("buzz", TEXT, "name of the buzz_pattern that plays now, in small letters"),
        Told("buzzes", NUMBER, "BUZZ commands that were carried out since the start"),
    ),
}
SEAT: Final = (
    Told("armed", TEXTS, "buttons that count"),
    Told("token", NUMBER, "of the ARM in force"),
    Told("ttl_ms", NUMBER + OR_NULL, "how long it has to go; null: for ever, which is a defect"),
    Told("down", TEXTS, "buttons that are down"),
    Told("stuck", TEXTS, "those that are stuck"),
    Told("lamps", OBJECT, "the next table"),
)
LAMPS: Final = (
    Told("rgb", NUMBERS, "colour, three of 0 to 255"),
    Told("pattern", TEXT, "name of the lamp_pattern, in small letters"),
    Told("period_ms", NUMBER, "of the pattern"),
    Told("lit", FLAG, "whether any lamp is bright at this moment"),
    Told("percent", NUMBERS, "brightness of each lamp at this moment"),
    Told("lease_ms", NUMBER + OR_NULL, "how long it has to go; null: for ever, which is a defect"),
    Told("broken", NUMBERS, "lamps that are broken"),
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
"""All that the conformance run wants to know from a device's hands; the rest it hears on the
wire."""
