"""What the three emitters share: templates, names, wrapped text, and the origin of a file."""

from __future__ import annotations

import textwrap
from functools import partial
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from firmware_protocol.generate.catalogue import Catalogue, Field, Values, array

WIDTH: Final = 100
ORIGIN: Final = "Generated from messages.toml by firmware_protocol.generate. Not to be edited."


def environment(catalogue: Catalogue) -> Environment:
    """The templates, with the catalogue and the helpers that they call."""
    out = Environment(
        loader=PackageLoader("firmware_protocol.generate"),
        autoescape=select_autoescape(),  # of HTML only: here there is none
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    out.globals |= {"catalogue": catalogue, "allowed": partial(allowed, catalogue)}
    out.filters |= {"code": code, "number": number}
    return out


def camel(name: str) -> str:
    """Convert CARD_READ or power_cause to the name of a class."""
    return "".join(word.capitalize() for word in name.split("_"))


def fill(text: str, first: str = "", rest: str | None = None, width: int = WIDTH) -> list[str]:
    """Wrap the text into lines."""
    return textwrap.wrap(
        text,
        width=width,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def number(value: int) -> str:
    """Format a number; large ones in hexadecimal."""
    return f"0x{value:X}" if value > 0xFFFF else str(value)


def code(value: int) -> str:
    """Format an id or code of one byte."""
    return f"0x{value:02X}"


def allowed(catalogue: Catalogue, field: Field) -> str:
    """Describe the allowed values of a field beyond its type; "" if all are allowed."""
    if field.type == "bool":
        return "0 or 1"
    form = array(field.type)
    if form:
        return ""
    if field.type in catalogue.sets:
        one: Values = catalogue.sets[field.type]
        lowest = field.min or 0
        if one.name in catalogue.is_flags:
            return f"flags {one.name}"
        values = [value for value in catalogue.values(one) if value.value >= lowest]
        skipped = [value.name for value in catalogue.values(one) if value.value < lowest]
        return f"enum {one.name}" + (f" but {', '.join(skipped)}" if skipped and values else "")
    if field.min is None and field.max is None:
        return ""
    most = (1 << 8 * catalogue.size_of(field.type)) - 1 if field.max is None else field.max
    more = "".join(f" or {code(value)}" for value in field.also)
    return f"{field.min or 0} to {number(most)}{more}"


def docstring(text: str, indent: str = "") -> str:
    """A docstring, on one line if it fits."""
    line = f'{indent}"""{text}"""'
    if len(line) <= WIDTH:
        return line
    lines = fill(text, f'{indent}"""', indent)
    if len(lines[-1]) + 3 > WIDTH:  # the closing quotes do not fit
        lines = fill(text, f'{indent}"""', indent, WIDTH - 3)
    return "\n".join(lines) + '"""'
