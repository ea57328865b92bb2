"""Consistency checks between the entries of the catalogue. Each yields its errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from firmware_protocol.generate.schema import (
    HEADS,
    INTEGER_SIZES,
    PLAINTEXT_SIZES,
    RANGES,
    REFUSED_ID,
    REPLY_OFFSET,
    TAILS,
    Catalogue,
    Field,
    MessageSpec,
    Values,
    array,
)


def problems(catalogue: Catalogue) -> Iterator[str]:
    """Yields all errors, in the order of the file."""
    yield from _versions(catalogue)
    for what, names in _name_spaces(catalogue):
        yield from (f"{what} {name} is declared twice" for name in _twice(names))
    for one in (*catalogue.enums, *catalogue.flags):
        yield from _values(catalogue, one)
    broken = list(_all_fields(catalogue))
    yield from broken
    if broken:  # sizes are undefined while a type is unknown
        return
    yield from _layouts(catalogue)
    yield from _frames(catalogue)
    for message in catalogue.messages:
        yield from _message(catalogue, message)
    yield from _replies(catalogue)
    yield from _reserved(catalogue)


def _twice(names: Iterable[object]) -> list[object]:
    return [name for name, times in Counter(names).items() if times > 1]


def _name_spaces(catalogue: Catalogue) -> Iterator[tuple[str, list[object]]]:
    yield "number", [one.name for one in (*catalogue.constants, *catalogue.timings)]
    yield "layout", [one.name for one in catalogue.layouts]
    yield "layout type", [one.type for one in catalogue.layouts]
    # All of these become classes in one namespace.
    yield (
        "name",
        [
            *(one.name.upper() for one in (*catalogue.enums, *catalogue.flags)),
            *(one.kind for one in catalogue.frames),
            *(one.name for one in catalogue.messages),
        ],
    )
    yield "message id", [f"{one.id:#04x}" for one in catalogue.messages]


def _versions(catalogue: Catalogue) -> Iterator[str]:
    numbers = [one.number for one in catalogue.versions]
    if numbers != list(range(1, len(numbers) + 1)) or not numbers:
        yield f"versions are {numbers}; they count up from 1"
        return
    for message in catalogue.messages:
        if message.since > numbers[-1]:
            yield f"message {message.name}: since {message.since}, which is no version yet"


def _values(catalogue: Catalogue, one: Values) -> Iterator[str]:
    flags = one.name in catalogue.is_flags
    if one.of is not None:
        if not flags or one.values or one.of not in {enum.name for enum in catalogue.enums}:
            yield f"{one.name}: `of` makes flags of a declared enum, and has no values of its own"
            return
    elif not one.values:
        yield f"{one.name}: has no values"
        return
    values = catalogue.values(one)
    yield from (
        f"{one.name}: {name} is declared twice" for name in _twice(value.name for value in values)
    )
    yield from (
        f"{one.name}: value {number} is given twice"
        for number in _twice(value.value for value in values)
    )
    most = (1 << 8 * INTEGER_SIZES[one.type]) - 1
    for value in values:
        if value.value > most:
            yield f"{one.name}.{value.name}: {value.value} does not fit into {one.type}"
        if flags and value.value.bit_count() != 1:
            yield f"{one.name}.{value.name}: {value.value} is not one bit"


def _all_fields(catalogue: Catalogue) -> Iterator[str]:
    holders: list[tuple[str, tuple[Field, ...]]] = [
        *((f"layout {one.name}", one.fields) for one in catalogue.layouts),
        *((f"frame {one.kind}", one.fields) for one in catalogue.frames),
        *((f"message {one.name}", one.fields) for one in catalogue.messages),
    ]
    for where, fields in holders:
        yield from (
            f"{where}: field {name} is declared twice"
            for name in _twice(one.name for one in fields)
        )
        for one in fields:
            yield from _field(catalogue, f"{where}.{one.name}", one)


def _field(catalogue: Catalogue, where: str, one: Field) -> Iterator[str]:
    try:
        size = catalogue.size_of(one.type)
    except KeyError:
        yield f"{where}: type {one.type!r} is not known"
        return
    limits = [limit for limit in (one.min, one.max, *one.also) if limit is not None]
    if not limits:
        return
    if array(one.type) or one.type == "bool" or one.type in catalogue.is_flags:
        yield f"{where}: a range for {one.type} means nothing"
        return
    if one.type in catalogue.sets and (one.max is not None or one.also):
        yield f"{where}: an enum takes `min` only"
    most = (1 << 8 * size) - 1
    yield from (f"{where}: {limit} does not fit" for limit in limits if not 0 <= limit <= most)
    if (one.min or 0) > (most if one.max is None else one.max):
        yield f"{where}: min is above max"
    if one.also and one.max is None:
        yield f"{where}: `also` lists values beyond `max`, and there is none"


def _layouts(catalogue: Catalogue) -> Iterator[str]:
    declared = {one.name.lower(): one for one in catalogue.layouts}
    if set(declared) != set(HEADS):
        yield f"layouts are {sorted(declared)}; they must be {sorted(HEADS)}"
        return
    for name, layout in declared.items():
        if catalogue.length(layout.fields) != PLAINTEXT_SIZES[0]:
            yield f"layout {layout.name}: is not {PLAINTEXT_SIZES[0]} bytes"
        offsets = {one.field.name: one.offset for one in catalogue.placed(layout.fields)}
        if offsets.get("body") != HEADS[name]:
            yield f"layout {layout.name}: its body does not begin at byte {HEADS[name]}"
        if layout.fields[-1].name != ("chain" if TAILS[name] else "body"):
            yield f"layout {layout.name}: ends with the wrong field"
        if not layout.sizes or set(layout.sizes) - set(PLAINTEXT_SIZES):
            yield f"layout {layout.name}: sizes are among {PLAINTEXT_SIZES}"


def _frames(catalogue: Catalogue) -> Iterator[str]:
    kinds = catalogue.sets.get("frame_kind")
    names = {value.name for value in kinds.values} if kinds else set()
    for frame in catalogue.frames:
        if frame.kind not in names:
            yield f"frame {frame.kind}: is no value of frame_kind"
    for name in sorted(names - {frame.kind for frame in catalogue.frames}):
        yield f"frame {name}: is a value of frame_kind, but not declared"
    numbers = {one.name: one.value for one in catalogue.constants}
    most = numbers["MAX_DECODED"] - numbers["HEADER_SIZE"] - numbers["CRC_SIZE"]
    for frame in catalogue.frames:
        if max(catalogue.frame_sizes(frame)) > most:
            yield f"frame {frame.kind}: its payload is longer than {most} bytes"


def _message(catalogue: Catalogue, message: MessageSpec) -> Iterator[str]:
    where = f"message {message.name}"
    command, reply = message.kind == "command", message.kind == "reply"
    side = {"event": "device", "command": "host", "reply": "device"}.get(message.kind)
    if side is not None and message.side != side:
        yield f"{where}: an {message.kind} is sent by the {side}".replace("an c", "a c")
    if not reply:
        span = RANGES.get((message.kind, message.device_class))
        if span is None:
            yield f"{where}: there are no {message.kind} messages of class {message.device_class}"
        elif not span[0] <= message.id <= span[1]:
            yield f"{where}: id {message.id:#04x} is outside of {span[0]:#04x} to {span[1]:#04x}"
    if command != (message.idempotent is not None) or command != (message.deadline_ms is not None):
        yield f"{where}: `idempotent` and `deadline_ms` are for commands, and each has them"
    layout = next(one for one in catalogue.layouts if one.name.lower() == message.kind)
    if message.size not in layout.sizes:
        yield f"{where}: size {message.size} is not one of {layout.sizes}"
    elif (length := catalogue.length(message.fields)) > (room := catalogue.room(message)):
        yield f"{where}: its fields take {length} bytes, and there is room for {room}"
    if message.result is not None:
        events = {
            one.name
            for one in catalogue.messages
            if one.kind == "event" and one.device_class in ("all", message.device_class)
        }
        if not command or message.result not in events:
            yield f"{where}: result {message.result} is no event of its class"


def _replies(catalogue: Catalogue) -> Iterator[str]:
    commands = {one.name: one for one in catalogue.messages if one.kind == "command"}
    answered: list[str] = []
    for message in catalogue.messages:
        if message.kind != "reply":
            if message.to is not None:
                yield f"message {message.name}: only a reply has `to`"
            continue
        if message.to is None:
            if message.id != REFUSED_ID:
                yield f"message {message.name}: a reply says what it is `to`"
            continue
        answered.append(message.to)
        command = commands.get(message.to)
        if command is None:
            yield f"message {message.name}: `to` {message.to} is no command"
        elif message.id != command.id + REPLY_OFFSET:
            yield f"message {message.name}: its id must be {command.id + REPLY_OFFSET:#04x}"
        elif message.device_class != command.device_class or message.since != command.since:
            yield f"message {message.name}: class and since must be those of {command.name}"
    for name in _twice(answered):
        yield f"message {name}: has two replies"
    for name in commands.keys() - set(answered):
        yield f"message {name}: has no reply"


def _reserved(catalogue: Catalogue) -> Iterator[str]:
    for span in catalogue.reserved:
        where = f"reserved {span.first:#04x} to {span.last:#04x}"
        if span.first > span.last:
            yield f"{where}: ends before it begins"
        for message in catalogue.messages:
            if span.first <= message.id <= span.last:
                yield f"{where}: message {message.name} is in it"
