"""Changes of one place in a record: of a value, of its form, of a signed note, of a frame, of the
order of the records, of a file beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from controller.audit.format.records import KINDS
from tests.support.audit.record.resigning import (
    Change,
    Draft,
    Entry,
    Json,
    Signing,
    changed,
    encode,
)


class Mutation(NamedTuple):
    """A changed record, and what was changed."""

    draft: Draft
    what: str
    place: str
    same: bool = False
    """The values are the same as before; only their form in JSON is another."""


Mutate: TypeAlias = Callable[[Draft, Random], Mutation | None]
"""Returns None if the record has no place for it."""


# --- values -----------------------------------------------------------------------------------

_NUMBERS: Final = (
    *(0, 1, -1, 2, 7, 51, 52, 255, 65536, 2**31, 2**32 - 1, 2**32, 2**53 + 1),
    *(2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**30, -(10**30)),
)
_TEXTS: Final = (
    *("", "x", "0", " ", "\0", "a\0b", "ä", "\U0001f0a1", "\u2028", "\x7f", "\t", "a\nb"),
    *("HoleDealt", "dealer", "torn", "synced", "0" * 16, "f" * 64, "Z" * 16, "a" * 3000),
)
_OTHERS: Final[tuple[Any, ...]] = (
    *(None, True, False, [], {}, [0], {"a": 1}, 1.0, 1.5, -0.0, float("nan"), "1", [[]]),
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with the key of each value in it."""
    found = list(value) if isinstance(value, dict) else range(len(value))
    for key in found:
        yield value, key
        if isinstance(value[key], dict | list) and value[key]:
            yield from places(value[key])


def _named(record: Json, holder: Any, key: Any) -> str:
    """The path of a place, with the types of effects in the place of positions."""

    def find(value: Any, path: str) -> str | None:
        for name in list(value) if isinstance(value, dict) else range(len(value)):
            here = (
                f"{path}.{name}" if isinstance(value, dict) else f"{path}[{_type_of(value[name])}]"
            )
            if value is holder and name == key:
                return here
            inner = value[name]
            if isinstance(inner, dict | list) and (found := find(inner, here)):
                return found
        return None

    return (find(record, "") or "?").removeprefix(".")


def _type_of(item: Any) -> str:
    """The type of an effect; empty for other items of lists."""
    return str(item.get("type", "")) if isinstance(item, dict) else ""


def _any_place(record: Json, random: Random) -> tuple[Any, Any]:
    """A place; as often in the fields around `data` as in it."""
    around = {name: value for name, value in record.items() if name != "data"}
    where = around if random.random() < 0.35 else record["data"] or record
    holder, key = random.choice(list(places(where)))
    return (record, key) if holder is around else (holder, key)


def _value(draft: Draft, random: Random) -> Mutation | None:
    """Another value, or a field more or less."""
    at = _any_entry(draft, random)
    name, make = random.choice(_VALUES)
    chance = Random(random.random())
    return _of_value(draft, at, f"value {name}", make, chance)


def _of_value(
    draft: Draft, at: int, what: str, make: Callable[[Json, Random], str | None], chance: Random
) -> Mutation | None:
    seen: list[str] = []
    trial = deepcopy(draft.entries[at].record)
    state = chance.getstate()
    where = make(trial, chance)
    if where is None or repr(trial) == repr(draft.entries[at].record):
        return None
    seen.append(where)

    def change(record: Json, _: Signing) -> Json:
        chance.setstate(state)
        copy = deepcopy(record)
        make(copy, chance)
        return copy

    kind = draft.entries[at].record["kind"]
    return Mutation(changed(draft, at, change), what, f"{kind}: {where}")


def _other(record: Json, random: Random) -> str:
    """Another value of the same type."""
    holder, key = _any_place(record, random)
    where = _named(record, holder, key)
    holder[key] = _like(holder[key], random)
    return where


def _like(value: Any, random: Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice((value + 1, value - 1, random.choice(_NUMBERS)))
    if isinstance(value, str):
        return random.choice(
            (
                *(random.choice(_TEXTS), f"{value}x", value[:-1], value.swapcase(), value[::-1]),
                *(f"{value}\0", _digit(value, random), _digit(value, random), f" {value}"),
            )
        )
    if isinstance(value, list):
        return random.choice(
            (
                *([], value[::-1], value[:-1], [*value, *value[:1]], [*value, None]),
                *([*value, 0], [*value, {}], random.sample(value, len(value))),
            )
        )
    if isinstance(value, dict):
        return {} if random.random() < 0.5 else {**value, "more": 1}
    return 0


def _digit(text: str, random: Random) -> str:
    """One character is another one."""
    at = random.randrange(len(text)) if text else 0
    return text[:at] + random.choice("0123456789abcdefAZ+/=- ") + text[at + 1 :]


def _type(record: Json, random: Random) -> str:
    """A value of another type."""
    holder, key = _any_place(record, random)
    where, value = _named(record, holder, key), holder[key]
    same: tuple[Any, ...] = (str(value), [value], {"a": value})
    if isinstance(value, int):
        same = (*same, bool(value), float(value) if abs(value) < 1e300 else 0.0)
    holder[key] = random.choice((*same, *_OTHERS))
    return where


def _delete(record: Json, random: Random) -> str:
    holder, key = _any_place(record, random)
    where = _named(record, holder, key)
    del holder[key]
    return where


def _objects(record: Json) -> list[Json]:
    inner = [holder[key] for holder, key in places(record)]
    return [record, *(one for one in inner if isinstance(one, dict))]


_ADDED: Final = (
    *("more", "x", "", "type", "seat", "cause", "cursor", "sealed", "card", "opening", "two"),
    *("data", "v", "\0", "ä", "hole", "round", "what", "commitment", "spare", "note"),
)


def _add(record: Json, random: Random) -> str | None:
    """One field more."""
    holder, name = random.choice(_objects(record)), random.choice(_ADDED)
    if name in holder:
        return None
    value: Any = random.choice((0, 1, "", "x", None, False, True, [], {}, {"a": [1]}, 2**64))
    if random.random() < 0.3:
        holder[name] = value
        return _named(record, holder, name)
    items = list(holder.items())
    items.insert(random.randrange(len(items) + 1), (name, value))
    holder.clear()
    holder.update(items)
    return _named(record, holder, name)


def _rename(record: Json, random: Random) -> str | None:
    holder = random.choice([one for one in _objects(record) if one])
    name = random.choice(list(holder))
    other = random.choice((f"{name}x", name[:-1], name.upper(), f"{name}\0", *_ADDED))
    if other in holder:
        return None
    where = _named(record, holder, name)
    items = [(other if one == name else one, value) for one, value in holder.items()]
    holder.clear()
    holder.update(items)
    return where


def _exchange(record: Json, random: Random) -> str:
    """Two values of one object or list are swapped."""
    holder, key = _any_place(record, random)
    other = random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    where = _named(record, holder, key)
    holder[key], holder[other] = holder[other], holder[key]
    return where


def _kind(record: Json, random: Random) -> str:
    record["kind"] = random.choice(KINDS)
    return "kind"


_VALUES: Final[tuple[tuple[str, Callable[[Json, Random], str | None]], ...]] = (
    ("other", _other),
    ("other", _other),
    ("other", _other),
    ("type", _type),
    ("delete", _delete),
    ("add", _add),
    ("rename", _rename),
    ("exchange", _exchange),
    ("kind", _kind),
)


# --- form: bytes of the JSON ------------------------------------------------------------------


def _order(record: Json, random: Random) -> tuple[bytes, str]:
    """The fields of an object in another order."""
    copy = deepcopy(record)
    holder = random.choice([one for one in _objects(copy) if len(one) > 1] or [copy])
    items = list(holder.items())
    one = random.randrange(len(items) - 1)
    other = random.randrange(one + 1, len(items))
    items[one], items[other] = items[other], items[one]
    where = "record" if holder is copy else _object_name(copy, holder)
    holder.clear()
    holder.update(items)
    return encode(copy), where


def _object_name(record: Json, holder: Json) -> str:
    return _named(record, holder, next(iter(holder))).rpartition(".")[0] or "record"


_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9]+|[{}\[\],:]|true|false|null')
_NUMBER: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?[0-9]+)')


def _tokens(data: bytes, random: Random, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
    found = list(pattern.finditer(data))
    return random.choice(found) if found else None


def _escape(record: Json, random: Random) -> tuple[bytes, str] | None:
    """One character as an escape: \\u0041 for A."""
    data = encode(record)
    token = _tokens(data, random, _STRING)
    if token is None or token.end() - token.start() < 3:
        return None
    text = json.loads(token[0])
    at = random.randrange(len(text))
    units = text[at].encode("utf-16-be")
    form = random.choice(("%04x", "%04X"))
    escape = "".join(
        f"\\u{form % int.from_bytes(units[i : i + 2])}" for i in range(0, len(units), 2)
    )
    if text[at] == "/" and random.random() < 0.5:
        escape = "\\/"
    before, after = (
        json.dumps(part, ensure_ascii=False)[1:-1] for part in (text[:at], text[at + 1 :])
    )
    made = f'"{before}{escape}{after}"'.encode()
    what = "name" if data[token.end() : token.end() + 1] == b":" else "string"
    return data[: token.start()] + made + data[token.end() :], f"escape in a {what}"


def _space(record: Json, random: Random) -> tuple[bytes, str] | None:
    data = encode(record)
    token = _tokens(data, random, _TOKEN)
    if token is None:
        return None
    at = random.choice((token.start(), token.end()))
    return data[:at] + random.choice((b" ", b"\n", b"\t", b"\r")) + data[at:], "space"


def _number_form(record: Json, random: Random) -> tuple[bytes, str] | None:
    """The same number, written otherwise."""
    data = encode(record)
    found = [one for one in _NUMBER.finditer(data) if one[1] is not None]
    if not found:
        return None
    zero = [one for one in found if one[1] == b"0"]
    token = random.choice(zero if zero and random.random() < 0.5 else found)
    text = token[1]
    ways = [text + b".0", text + b"e0", text + b"E+0", b"0" + text, b"+" + text, text + b"."]
    ways += [text + b"0e-1", text + b".00", b"0x" + text]
    ways += [b"-0", b"-0", b"-0", b"-0.0", b"0.0", b"0e1", b"00"] if text == b"0" else []
    made = random.choice(ways)
    where = "0" if text == b"0" else "number"
    return data[: token.start(1)] + made + data[token.end(1) :], f"{where} as {_masked(made, text)}"


def _masked(made: bytes, text: bytes) -> str:
    return made.replace(text, b"N", 1).decode() if text != b"0" else made.decode()


_ENDS: Final = (b" ", b"\n", b"\0", b",", b"}", b"x", b"{}", b"\xef\xbb\xbf", b"//", b"\x1a")
_STARTS: Final = (b"\xef\xbb\xbf", b" ", b"\n", b"\0", b"\xff\xfe", b"[", b"\x1e")


def _around(record: Json, random: Random) -> tuple[bytes, str]:
    """Bytes before or after the object."""
    data = encode(record)
    if random.random() < 0.5:
        made = random.choice(_ENDS)
        return data + made, f"behind it {made!r}"
    made = random.choice(_STARTS)
    return made + data, f"before it {made!r}"


def _repeated(record: Json, random: Random) -> tuple[bytes, str] | None:
    """A name twice in one object, with the same value; the second one perhaps escaped."""
    copy = deepcopy(record)
    holder = random.choice([one for one in _objects(copy) if one])
    name = random.choice(list(holder))
    where = _named(copy, holder, name)
    holder["\ue000"] = holder[name]
    data = encode(copy)
    again = json.dumps(name, ensure_ascii=False)
    if random.random() < 0.3 and name:
        again = f'"\\u{ord(name[0]):04x}{json.dumps(name[1:], ensure_ascii=False)[1:]}'
    return data.replace('"\ue000"'.encode(), again.encode(), 1), f"twice {where}"


_FORMS: Final[dict[str, Callable[[Json, Random], tuple[bytes, str] | None]]] = {
    "order": _order,
    "escape": _escape,
    "space": _space,
    "number": _number_form,
    "around": _around,
    "repeated": _repeated,
}


def _form(draft: Draft, random: Random) -> Mutation | None:
    """The same values in another form."""
    at, name = _any_entry(draft, random), random.choice(tuple(_FORMS))
    return _of_bytes(draft, at, f"form {name}", _FORMS[name], random, same=True)


def _of_bytes(
    draft: Draft,
    at: int,
    what: str,
    make: Callable[[Json, Random], tuple[bytes, str] | None],
    random: Random,
    *,
    same: bool = False,
) -> Mutation | None:
    seed = random.random()
    found = make(draft.entries[at].record, Random(seed))
    if found is None:
        return None

    def change(record: Json, _: Signing) -> Json | bytes:
        made = make(record, Random(seed))
        return record if made is None else made[0]

    kind = draft.entries[at].record["kind"]
    return Mutation(changed(draft, at, change), what, f"{kind}: {found[1]}", same)


# --- bytes: what is no JSON of a record, or says something else ---------------------------------

_PIECES: Final = (
    *(b"\\ud800", b"\\udc00", b"\\ud800\\ud800", b"\\udc00\\ud800", b"\\u0000", b"\\x41", b"\\0"),
    *(b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3", b"\x00", b"\x01"),
    *(b"\xef\xbb\xbf", b"\x7f", b"\xe2\x80\xa8", b"\\u00e4", b"\\uD83C\\uDCA1", b"\\u004", b"\\"),
    *(b'"', b"\\/", b"\\'", b"\n", b"\t", b"\xf0\x9f\x82\xa1"),
)


def _in_string(record: Json, random: Random) -> tuple[bytes, str] | None:
    """Bytes within a string."""
    data = encode(record)
    token = _tokens(data, random, _STRING)
    if token is None:
        return None
    piece, at = random.choice(_PIECES), random.randrange(token.start() + 1, token.end())
    what = "name" if data[token.end() : token.end() + 1] == b":" else "string"
    return data[:at] + piece + data[at:], f"{piece!r} in a {what}"


_VALUES_RAW: Final = (
    *(b"NaN", b"Infinity", b"-Infinity", b"nan", b"None", b"True", b"undefined", b"'x'", b""),
    *(b"1e3", b"1E400", b"-1", b"-", b".5", b"1_000", b"9" * 5000, b"-" + b"9" * 400),
    *(b"[" * 40 + b"]" * 40, b"[" * 90 + b"]" * 90, b"[" * 110 + b"]" * 110),
    *(b"[" * 2000 + b"]" * 2000, b'{"a":' * 1500 + b"1" + b"}" * 1500, b"[" * 30000),
    *(b'"' + b"x" * 70000 + b'"', b"9223372036854775807", b"9223372036854775808", b"[1,]", b"{,}"),
)


def _raw_value(record: Json, random: Random) -> tuple[bytes, str] | None:
    """Some JSON, or none, in the place of a value."""
    copy = deepcopy(record)
    holder, key = _any_place(copy, random)
    where = _named(copy, holder, key)
    holder[key] = "\ue000"
    piece = random.choice(_VALUES_RAW)
    data = encode(copy).replace('"\ue000"'.encode(), piece, 1)
    return data, f"{where} as {piece[:12]!r} {len(piece)}"


def _any_bytes(record: Json, random: Random) -> tuple[bytes, str]:
    """A byte removed, repeated, changed or added."""
    data = bytearray(encode(record))
    at = random.randrange(len(data))
    way = random.randrange(4)
    if way == 0:
        del data[at]
    elif way == 1:
        data[at:at] = data[at : at + 1]
    elif way == 2:
        data[at] ^= 1 << random.randrange(8)
    else:
        data[at:at] = bytes([random.randrange(256)])
    return bytes(data), ("removed", "repeated", "flipped", "added")[way]


_NO_JSON: Final[dict[str, Callable[[Json, Random], tuple[bytes, str] | None]]] = {
    "in a string": _in_string,
    "raw value": _raw_value,
    "any": _any_bytes,
}


def _bytes(draft: Draft, random: Random) -> Mutation | None:
    at, name = _any_entry(draft, random), random.choice(tuple(_NO_JSON))
    return _of_bytes(draft, at, f"bytes {name}", _NO_JSON[name], random)


# --- records and frames -----------------------------------------------------------------------


def _any_entry(draft: Draft, random: Random) -> int:
    """A record; rare kinds as often as decisions."""
    kind = random.choice(sorted({entry.record["kind"] for entry in draft.entries}))
    of_kind = [at for at, one in enumerate(draft.entries) if one.record["kind"] == kind]
    return random.choice(of_kind)


def _entries(draft: Draft, random: Random) -> Mutation | None:
    """A record removed, repeated, moved; all are numbered again."""
    at, what = _any_entry(draft, random), random.choice(_MOVES)
    every = list(draft.entries)
    kind = every[at].record["kind"]
    if at == 0 or len(every) < 4:
        return None
    other = random.randrange(1, len(every))
    match what:
        case "removed":
            del every[at]
        case "repeated":
            every.insert(at, every[at])
        case "swapped":
            at = min(at, len(every) - 2)
            every[at], every[at + 1] = every[at + 1], every[at]
        case "moved":
            every.insert(other, every.pop(at))
        case "copied":
            every.insert(other, every[at])
        case "cut off":
            del every[at:]
        case "round removed":
            number = every[at].record["round"]
            every = [one for one in every if one.record["round"] != number or not number]
        case "boot removed":
            boot = every[at].record["boot"]
            every = [one for one in every if one.record["boot"] != boot]
    if not every or every[0] is not draft.entries[0] or every == list(draft.entries):
        return None
    return Mutation(replace(draft, entries=tuple(every)), f"record {what}", kind)


_MOVES: Final = (
    *("removed", "removed", "repeated", "swapped", "moved", "copied", "cut off"),
    *("round removed", "boot removed"),
)


def _frame(draft: Draft, random: Random) -> Mutation | None:
    """A field of a frame."""
    at = _any_entry(draft, random)
    entry = draft.entries[at]
    seq = entry.seq
    lags = [replace(entry, lag=lag) for lag in (0, 1, 2, 40, -3, seq)]
    fields: tuple[dict[str, Any], ...] = (
        *({"seq": seq + 1}, {"seq": seq - 1}, {"seq": 0}, {"seq": 2**64 - 1}),
        *({"durable": seq}, {"durable": 2**63}, {"durable": 0}, {"crc": 1}, {"crc": 1 << 31}),
        {"chain": bytes(32)},
    )
    other = random.choice((*lags, *(replace(entry, frame=one) for one in fields)))
    if other == entry:
        return None
    what = f"frame {next(iter(other.frame), 'lag')}"
    entries = (*draft.entries[:at], other, *draft.entries[at + 1 :])
    kind = entry.record["kind"]
    return Mutation(replace(draft, entries=entries), what, kind)


STRUCTURE: Final[tuple[tuple[int, Mutate], ...]] = (
    (30, _value),
    (22, _form),
    (16, _bytes),
    (14, _entries),
    (4, _frame),
)
"""How often each is tried, of 100; the rest is in `signed`."""


def changed_entry(draft: Draft, at: int, what: str, place: str, change: Change) -> Mutation:
    kind = draft.entries[at].record["kind"]
    return Mutation(changed(draft, at, change), what, f"{kind}: {place}")


def entries_of(draft: Draft, *kinds: str) -> list[tuple[int, Entry]]:
    return [(at, one) for at, one in enumerate(draft.entries) if one.record["kind"] in kinds]
