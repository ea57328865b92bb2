"""Generates the vocabulary in FORMAT.md: all events, effects, options and other names of a record.

python -m controller.record_vocabulary --check     exits with 1 if the page is stale
python -m controller.record_vocabulary --write     writes it if it is stale

Meanings are the docstrings of the classes and of their fields; those of fields that many classes
have are in `COMMON`. A field without a meaning is an error.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct, UnsetType

from controller import audit
from controller.audit.format.table_entries import DiskFullDetail, UnrecordedData
from controller.audit.replay import EFFECTS
from controller.config import LEAVES, OPTION_TEXT, written
from controller.people import SignInEntry
from controller.procedure.engine import EVENTS
from controller.procedure.model.events import Actor
from controller.procedure.model.state import Due, Hold, Place, Seat, Shoe, Spare, State
from controller.procedure.prompts import WAYS, WHAT, WHY
from controller.publish import EVENTS as HAPPENS
from controller.rules.hands import Hand
from controller.rules.irregularities import Irregularity, Jurisdiction, Ruling, Way
from controller.rules.money import Denomination, Odds
from drivers.devices import DeviceEvent
from drivers.events import AnyHappening

PAGE: Final = Path(audit.__file__).with_name("FORMAT.md")
BEGIN: Final = "<!-- vocabulary: python -m controller.record_vocabulary --write -->"
END: Final = "<!-- end of the vocabulary -->"
EXIT_STALE: Final = 1

COMMON: Final = {
    "about": "what the act is about",
    "act": "the act that was authorised",
    "active": "whether it begins or ends",
    "agrees": "whether it is the same device and its counters fit the record",
    "amount": "the amount",
    "arg": "a number of the device, see PROTOCOL.md",
    "armed": "the armed buttons: seat and names",
    "at": "the screen's position in the record",
    "back": "the step at which play continues",
    "badge": "the badge",
    "bank": "the counted bank",
    "bet": "the name of the bet: `main`, `insurance`, a side bet, or a token such as `toke_main`",
    "blackjack": "whether the dealer has a blackjack",
    "boot": "the number of starts of the device",
    "button": "the button",
    "by": "who did it",
    "capacity": "how many records the device can keep",
    "card": "the card",
    "cards": "the cards of the hand",
    "cause": "why the device started, see PROTOCOL.md",
    "chain": "the chain of the device's log",
    "chips": "the amount in chips: count and name",
    "choices": "what may be answered",
    "closing": "whether the table closes after this round",
    "code": "the code, see PROTOCOL.md",
    "command": "the command",
    "command_id": "its number",
    "commitment": "the commitment, see *Hole cards*",
    "count": "how many",
    "counted_again": "the second person's count",
    "counts": "how often, by name",
    "damaged": "damaged frames",
    "dealer_soft": "whether an ace counts 11 in it",
    "dealer_total": "the best total of `dealer`",
    "decks": "how many decks",
    "detail": "more about it, as text",
    "device": "the device",
    "doubles": "how often it was doubled",
    "due": "the amount that was due",
    "edge": "pressed or released",
    "epoch": "the epoch of the device's log",
    "error": "the name of the error",
    "expected": "what was expected",
    "extra": "cards too many",
    "fingerprint": "the fingerprint of the key",
    "firmware": "the version of the firmware",
    "flags": "bits, see PROTOCOL.md",
    "former": "the state before",
    "found": "what was found",
    "got": "what was counted",
    "hand": "the hand's number at its seat, from 0; -1 for a bet beside the hands",
    "hands": "the hands in the order of play",
    "head": "the newest record of the device's log",
    "held_ms": "milliseconds that the button was held",
    "held": "milliseconds that it was held",
    "holds": "what stops the table, the last one first to be ended",
    "identity": "class, serial number and fingerprint",
    "index": "the number of the lamp",
    "kind": "the kind",
    "lamps": "the lamps: seat and what they show",
    "last": "`utc` of the last of them",
    "life": "seconds that it is valid; 0: no expiry",
    "loaded": "whether cards are in the shoe",
    "lock": "the screen's sign-in identity",
    "locked": "whether the shoe is locked",
    "maker": "the maker",
    "missing": "cards that are missing",
    "model": "the model",
    "name": "the person's name",
    "new": "the value since",
    "next": "the next record",
    "number": "the number: of a hand at its seat from 0, of a seat from 1",
    "odds": "the odds of the payment; null where nothing is won",
    "offset_us": "the device's clock less the host's, in microseconds",
    "old": "the value before",
    "oldest": "the oldest record of the device's log",
    "on": "for so much at stake",
    "open": "whether it is open",
    "opening": "the opening of the commitment, in hex",
    "options": "the ways that may be chosen",
    "outcome": "see *outcome* below",
    "page": "the page that was viewed",
    "paid": "the amount that was paid",
    "pairings": "how many hosts are paired",
    "paused_us": "how long it paused, in microseconds",
    "pays": "so much is paid",
    "percent": "percent",
    "places": "where the cards of the deal go, in order",
    "port": "the port",
    "pos": "the number of the card in this loading",
    "press": "the number of the press",
    "reason": "the reason that was given",
    "refused": "refused frames",
    "rekeyed": "whether the keys were renewed",
    "returned": "stake and winnings that the player gets back",
    "rng_ok": "whether the random numbers were sound",
    "role": "the person's role",
    "round": "the number of the round",
    "ruled_by": "who ruled",
    "screen": "the screen",
    "seat": "the number of the seat, from 1; 0 for none",
    "seats": "seats with wagers",
    "second": "the second person",
    "session": "the number of the session",
    "shoe": "the shoe, or the number of its loading",
    "shuffle": "the number of the shuffle",
    "soft": "whether an ace counts 11 in the total",
    "source": "where it comes from",
    "spare": "whether the card beside the shoe is used, not a new one",
    "stake": "the amount at stake",
    "state": "the state",
    "stale": "whether the token was no longer valid",
    "step": "the step of the procedure",
    "tell": "what is asked; its words are in the published procedure",
    "text": "its sentence",
    "title": "its title",
    "to": "who is asked",
    "token": "the token with which the button was armed",
    "total": "the total",
    "turn": "the index into `hands`; -1 for none",
    "two": "the two persons who approved it",
    "two_people": "what needs two people",
    "uncertainty_us": "its uncertainty in microseconds",
    "used": "how much of it is used",
    "value": "the value",
    "verdict": "why the log is held, see PROTOCOL.md",
    "version": "the version of the protocol",
    "warn": "a warning",
    "way": "how play continues",
    "what": "the name of the entry",
    "which": "the first (1) or the second (2) card",
    "who": "who is notified",
    "why": "the reason",
    "won": "winnings that were paid in the round",
}
"""Meanings of fields that have none of their own."""
_TYPES: Final[dict[object, str]] = {
    int: "integer",
    str: "string",
    bool: "true or false",
    bytes: "hex",
    Any: "any value",
}
_SHAPES: Final = (Actor, Odds, Denomination, Ruling, Hand, Seat, Due, Place, Spare, Hold, Shoe)
"""Objects within others; each has a table of its own."""
_LONG: Final = 12
"""Enums with more values are named, and described elsewhere."""

OTHER: Final = (
    ("link", "adopted", "Two people have accepted the log of a device.", (
        "`device` (its serial number), `verdict` (why it was held), `epoch`, `oldest` and `head` "
        "(of its log), `next` (the first record that is accepted; none before it is), `acked` (the "
        "last record that the device was told is stored), `two` (who accepted it)")),
    ("link", "not_recorded", "Entries were not recorded.", UnrecordedData),
    ("link", "host_stalled", "The controller did not run for half a second or longer.", (
        "`count`, `since`, `longest_ms`, `total_ms`, `processor_ms`: see above")),
    ("device", "CardSeen", "A card was read face up.", (
        "`shoe` (the loading of the shoe), `pos` (the card's number in it), `card`, `confidence`, "
        "`alternative`, `flags`, `dwell`, `back`: see CARD_READ in PROTOCOL.md")),
    ("device", "ShoeCardRead", "A card left the shoe face down.", (
        "`shoe` (the loading of the shoe), `pos` (the card's number in it)")),
    ("device", "ShoeInventory", "The cards of a shoe were counted at its end.", (
        "`shoe`, `out` (cards that left it), `seen`, `unseen`, `extra` (cards seen more often than "
        "the decks have them), `foreign`, `missing`, `beyond`")),
    ("person", "shuffler looked at", "The floor has opened the shuffler.", "none"),
    ("person", "looks", "A person views the live table.", "`badge`, `screen`, `at`"),
    ("person", "self test", "A technician has started a device test.", "`device`, `serial`"),
    ("fault", "unsigned", "Two people have accepted records that no checkpoint covers.", (
        "`detail`: `problem` and `two`")),
    ("fault", "disk_full", "The next segment cannot be made.", DiskFullDetail),
    ("fault", "shuffle", "A shuffle could not be started.", "`detail`: the problem, as text"),
    ("fault", "hidden card", "A card face down cannot be read again after a restart.", (
        "`detail`: the problem, as text")),
    ("fault", "people", "The file of people cannot be used.", "`detail`: the problem, as text"),
    ("fault", "(a name)", "An input could not be applied; the name is that of its kind.", (
        "`detail`: the problem, as text")),
)  # fmt: skip
"""Entries that have no class of their own."""


class NoMeaning(LookupError):
    """A field or a class without a docstring."""


@cache
def _field_docs(kind: type) -> dict[str, str]:
    """The docstrings of the fields of a class, and of those that it inherits."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        module = sys.modules.get(one.__module__)
        if module is None or one.__module__.partition(".")[0] not in ("controller", "drivers"):
            continue
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ClassDef) and node.name == one.__name__:
                found |= dict(_docs_in(node))
    return found


def _docs_in(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    name = ""
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            name = part.target.id
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and name:
            yield name, inspect.cleandoc(str(part.value.value))


def _meaning(kind: type, field: str) -> str:
    text = _field_docs(kind).get(field) or COMMON.get(field)
    if text is None:
        raise NoMeaning(f"{kind.__module__}.{kind.__name__}.{field} has no docstring")
    return _one_line(text)


def _one_line(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split()).rstrip(".")


def _class_text(kind: type) -> str:
    """The meaning of a class: its own docstring, or what the published procedure calls it."""
    own = kind.__dict__.get("__doc__")
    if own:
        return _one_line(own)
    if kind.__name__ in HAPPENS:
        return _one_line(HAPPENS[kind.__name__].capitalize())
    raise NoMeaning(f"{kind.__module__}.{kind.__name__} has no docstring")


def _type(hint: object, name: str = "") -> str:
    """The type of a field, in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if name in ("card", "alternative") and hint is int:
        return "card"
    if origin is Literal:
        return ", ".join(f"`{value}`" if value != "" else "empty" for value in inner)
    if origin in (UnionType, Union):
        parts = [_type(one, name) for one in inner if one not in (NoneType, UnsetType)]
        return " or ".join([*parts, *(["null"] if NoneType in inner else [])])
    if origin is tuple and inner[1:] == (Ellipsis,):
        return f"list of {'cards' if name == 'cards' else _type(inner[0])}"
    if origin is tuple:
        return "[" + ", ".join(_type(one) for one in inner) + "]"
    if origin is dict:
        return f"object: {_type(inner[1])} by name"
    return _TYPES.get(hint) or _class_type(hint)


def _class_type(hint: object) -> str:
    """An enum of a few names by these, any other class by its name."""
    if isinstance(hint, type) and issubclass(hint, Enum) and not issubclass(hint, int):
        values = [str(one.value) for one in hint]
        if len(values) <= _LONG:
            return ", ".join(f"`{one}`" for one in values)
    return str(getattr(hint, "__name__", hint))


def _default(value: object) -> str:
    plain = msgspec.to_builtins(value)
    return msgspec.json.encode(plain).decode()


def _fields(kind: type[Struct], leave_out: Iterable[str] = ()) -> str:
    """The fields of a class, in one cell."""
    hints = get_type_hints(kind)
    parts = []
    for field in msgspec.structs.fields(kind):
        if field.name in leave_out:
            continue
        usual = "" if field.default is NODEFAULT else f", default `{_default(field.default)}`"
        what = f"{_type(hints[field.name], field.name)}{usual}"
        parts.append(f"`{field.encode_name}` ({what}): {_meaning(kind, field.name)}")
    return "; ".join(parts) or "none"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _classes(
    title: str, kinds: Iterable[type[Struct]], leave_out: Iterable[str] = ()
) -> Iterator[str]:
    rows = ((f"`{_tag(one)}`", _class_text(one), _fields(one, leave_out)) for one in kinds)
    yield from _table((title, "meaning", "fields"), rows)


def _tag(kind: type[Struct]) -> str:
    tag = kind.__struct_config__.tag
    return kind.__name__ if tag is None or tag == 2 else str(tag)


_EVENTS_TEXT: Final = """\
What a `decision` or a `refusal` is about. Who did it is `by` of the record.
"""
_EFFECTS_TEXT: Final = """\
`Prompt`, `Stations`, `ShoeLock` and `Shuffler` say in full what is shown and set after the event;
all others are facts.
"""
_GAME_TEXT: Final = """\
`game` of `opened`. In version 2 it has `format` 2, fields that have their default are absent, and
`ways` are without their `text`; in version 1 it has no `format`, and no field is absent. `name` and
`title` are those of the sheet, `seats` is the number of seats, `clauses` are the names of the
sentences of the sheet, `currency` (`symbol`, default `$`, and `minor_digits`, default 2) is how
amounts are written in texts; null or absent: as numbers. The options are in nested objects:
`blackjack.tie` is the field `tie` of `blackjack`. None is null.
"""
_STATE_TEXT: Final = """\
`state` of a snapshot, in version 2 with `format` 2; no field is absent in either. In version 1 a
seat has no `bets`: each bet is a field of its own, 0 if it does not lie there.
"""
_ENTRIES_TEXT: Final = """\
`data` of the records `device`, `link`, `person` and `fault`, by `what`. A verifier checks only that
`what` is a string, and what *Records* says of `adopted`.
"""


def _decisions() -> Iterator[str]:
    yield from ("### Events", "", *_EVENTS_TEXT.split("\n"))
    yield from _classes("event", sorted(EVENTS, key=_tag), ("actor",))
    yield from ("### Effects", "", *_EFFECTS_TEXT.split("\n"))
    yield from _classes("effect", sorted(EFFECTS, key=_tag))
    yield from _table(("outcome", "of a hand or a bet"), OUTCOMES.items())
    rows = ((f"`{name}`", text) for name, text in WHY.items())
    yield from _table(("why", "of a settlement"), rows)


OUTCOMES: Final[dict[str, str]] = {
    "`blackjack`": "a blackjack is paid",
    "`even_money`": "a blackjack is paid 1:1, before the check",
    "`instant21`": "a hand of 21 is paid at once, before the dealer plays",
    "`instant6`": "a hand of so many cards is paid at once",
    "`win`": "won: the stake comes back, with the odds",
    "`lose`": "lost: the stake is collected",
    "`push`": "neither: the stake comes back",
    "`surrender`": "given up: half of the stake comes back",
    "`void`": "not settled: the stake comes back",
}


def _game() -> Iterator[str]:
    yield from ("### The game", "", *_GAME_TEXT.split("\n"))
    rows: list[tuple[str, ...]] = []
    for path, leaf in LEAVES.items():
        usual = "required" if leaf.required else f"`{written(leaf.default)}`"
        rows.append((f"`{path}`", usual, _one_line(leaf.allowed), _one_line(OPTION_TEXT[path])))
    yield from _table(("option", "default", "values", "meaning"), rows)
    yield from _classes("jurisdiction", (Jurisdiction, Ruling))
    rows = [(f"`{one.value}`", _one_line(WHAT[one.value])) for one in Irregularity]
    yield from _table(("irregularity", "what went wrong"), rows)
    rows = [(f"`{one.value}`", _one_line(WAYS[one.value])) for one in Way]
    yield from _table(("way", "how play continues"), rows)


def _states() -> Iterator[str]:
    yield from ("### The state", "", *_STATE_TEXT.split("\n"))
    yield from _classes("object", (State, *(one for one in _SHAPES if one is not Ruling)))


def _entries() -> Iterator[str]:
    yield from ("### Devices, links, people and faults", "", *_ENTRIES_TEXT.split("\n"))
    devices = [one for one in DeviceEvent.__subclasses__() if one.__name__ != _FACE_DOWN]
    people = [
        one for one in SignInEntry.__subclasses__() if one.__module__.startswith("controller")
    ]
    rows = [
        *(("device", one, ("origin",)) for one in devices),
        *(("link", one, ("serial", "at")) for one in get_args(AnyHappening)),
        *(("person", one, ()) for one in people),
    ]
    cells: list[tuple[str, ...]] = [
        (kind, f"`{_tag(one)}`", _class_text(one), _fields(one, left)) for kind, one, left in rows
    ]
    for kind, what, text, fields in OTHER:
        said = fields if isinstance(fields, str) else _fields(fields, ("what",))
        cells.append((kind, f"`{what}`", _one_line(text), said))
    yield from _table(("kind", "what", "meaning", "fields"), sorted(cells))


_FACE_DOWN: Final = "CardRead"
"""The event of a shoe that is recorded as a decision, or as `CardSeen`."""


def vocabulary() -> str:
    parts = (_decisions(), _game(), _states(), _entries())
    lines = [line for part in parts for line in part]
    return "\n".join((BEGIN, "", *lines, END))


def page() -> str:
    """The page with the vocabulary as it is now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{vocabulary()}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m controller.record_vocabulary", allow_abbrev=False
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="exit with 1 if the page is stale")
    what.add_argument("--write", action="store_true", help="write the page if it is stale")
    chosen = parser.parse_args(arguments)
    made = page()
    if PAGE.read_text(encoding="utf-8") == made:
        return 0
    if chosen.write:
        PAGE.write_text(made, encoding="utf-8")
        sys.stdout.write("controller/audit/FORMAT.md: written\n")
        return 0
    sys.stdout.write("controller/audit/FORMAT.md: its vocabulary is stale\n")
    sys.stderr.write("to update it: python -m controller.record_vocabulary --write\n")
    return EXIT_STALE


if __name__ == "__main__":
    sys.exit(main())
