"""Generates hil/CONTROL.md, the page of the control socket's verbs.

python -m hil.control.page --check     exits with 1 if the page is stale
python -m hil.control.page --write     writes it if it is stale
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    Anywhere,
    Break,
    Chord,
    ControlRequest,
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
from hil.control.verbs import RequestField, paragraphs, request_fields, verbs_of
from hil.devices import CLASSES
from hil.faults import BREAKS

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
        ReplyField("kind", TEXT, "kind of the decks, as set at the shoe"),
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
        ReplyField("kind", TEXT, "kind of the decks of the last START"),
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


PAGE: Final = Path(__file__).parent.parent / "CONTROL.md"
EXIT_STALE: Final = 1
_HEAD: Final = """\
# The control socket of a simulated device

<!-- Generated by hil.control.page from firmware_protocol/device/control.py. Not to be edited. -->

`holecard sim shoe --dir run/shoe --create` runs a shoe and prints the path of its control socket.
A request, which does something to the device that a person could do, is one line of JSON:

```
{"do": "draw", "count": 2}
```

and the answer is one line too:

```
{"ok": true, "answer": {"queued": 2, "ms": 164}}
{"ok": false, "error": "Expected int >= 1", "where": "count", "allowed": "a whole number ..."}
```

`where` is the field that is invalid; `do` if there is no such verb; the verb itself if the request
is valid but the state of the device does not allow it. `error` and `allowed` are texts for people.

`holecard sim do run/shoe/control draw count=2` sends one from a shell. Unknown verbs and fields,
and a field that is given twice, are rejected without side effects. A line has at most 65,536 bytes.
Only the user who runs the device can use the socket (mode 0600). Fields without a default are
required. Several clients can be connected; their requests are handled sequentially.

Without power only `describe`, `plug` and `line` are accepted; while the firmware hangs, also
`freeze` and `power` with `at` now. Requests change the device and not its firmware: the cards in
it, its switches and its defects survive a power cut.

## A simulator of your own

A maker who simulates a device can let `holecard conform --control` operate it, without this
program. It needs a UNIX stream socket and the verbs that the device supports. A verb or a field
that it does not support is answered `"ok": false` with `where` as above, and the items that need it
are skipped, with its name. Answers may have more or fewer fields than listed here; conform reads
only
{read}. A request may be answered
before its effects are complete: they are visible on the wire.

"""
_SECTIONS: Final = (
    ("Any device", Anywhere),
    *((one.profile.capitalize(), one.requests) for one in CLASSES.values()),
)


def page() -> str:
    names = [f"`{name}`" for name in READ_BY_CONFORM]
    read = f"{', '.join(names[:-1])} and {names[-1]}"
    return _HEAD.replace("{read}", read) + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for title, union in _SECTIONS:
        yield f"## {title}\n"
        for verb, request in verbs_of(union).items():
            yield from _verb(verb, request)
    yield "## Breaks\n"
    yield "Deliberate defects for `break` and `--break`, and the items of PROTOCOL.md that fail.\n"
    yield "| name | defect | failing items | for |\n|---|---|---|---|"
    for broken in BREAKS:
        profiles = ", ".join(broken.profiles) or "all"
        yield f"| {broken.name} | {broken.text} | {', '.join(broken.items)} | {profiles} |"


def _verb(verb: str, request: type[ControlRequest]) -> Iterator[str]:
    yield f"### {verb}\n"
    for paragraph in paragraphs(request):
        yield textwrap.fill(paragraph, 100, break_on_hyphens=False) + "\n"
    fields = request_fields(request)
    if fields:
        yield "| field | allowed | default |\n|---|---|---|"
        yield from map(_row, fields)
        yield ""
    yield from _reply_table("Answer", ANSWERS[request])
    if request is Describe:
        for profile, reply in MECHANISM.items():
            yield from _reply_table(f"`mechanism` of a {profile}", reply)
        yield from _reply_table("Each of its `seats`", SEAT)
        yield from _reply_table("`lamps` of a seat", LAMPS)


def _reply_table(of: str, fields: tuple[ReplyField, ...]) -> Iterator[str]:
    if not fields:
        yield f"{of}: no fields.\n"
        return
    yield f"{of}:\n\n| field | | |\n|---|---|---|"
    yield from (f"| {one.name} | {one.kind} | {one.text} |" for one in fields)
    yield ""


def _row(field: RequestField) -> str:
    default = "" if field.default is None else f"`{field.default}`"
    allowed = field.allowed.replace("|", "\\|")
    return f"| {field.name} | {allowed} | {default} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hil.control.page",
        description="Generates hil/CONTROL.md from firmware_protocol/device/control.py.",
        epilog="Exit codes: 0 fresh or written; 1 the page is stale.",
        allow_abbrev=False,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="exit with 1 if the page is stale")
    what.add_argument("--write", action="store_true", help="write the page if it is stale")
    chosen = parser.parse_args(arguments)
    made = page()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == made:
        return 0
    if chosen.write:
        PAGE.write_text(made, encoding="utf-8")
        print("hil/CONTROL.md: written")
        return 0
    print("hil/CONTROL.md: is stale")
    print("to update it: python -m hil.control.page --write", file=sys.stderr)
    return EXIT_STALE


if __name__ == "__main__":
    sys.exit(main())
