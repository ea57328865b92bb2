"""The OpenAPI document, the operation of a path, and whether a value is what a schema says: as much
of 2020-12 as the document uses. A word of a schema that is not known here fails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from controller.api.http.openapi import document
from controller.api.http.routes import ROUTES

DOCUMENT = document(ROUTES)


def operation(method: str, path: str) -> dict[str, Any]:
    template = next(one for one in DOCUMENT["paths"] if _fits(one, path))
    found: dict[str, Any] = DOCUMENT["paths"][template][method.lower()]
    return found


def _fits(template: str, path: str) -> bool:
    ours, theirs = template.split("/"), path.split("/")
    same = len(ours) == len(theirs)
    return same and all(a == b or a[:1] == "{" for a, b in zip(ours, theirs, strict=True))


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_SAY_NOTHING: Final = {"title", "description", "default", "discriminator", "$ref"}


class Schemas:
    """Those of one document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.used: set[str] = set()

    def faults(self, schema: Mapping[str, Any], value: Any, at: str = "$") -> Iterator[str]:
        """What of it does not fit."""
        if "$ref" in schema:
            self.used.add(schema["$ref"])
            yield from self.faults(self.of(schema["$ref"]), value, at)
        for word, wanted in schema.items():
            if word not in _SAY_NOTHING:
                yield from getattr(self, f"_{word.lower()}")(wanted, schema, value, at)

    def of(self, ref: str) -> Mapping[str, Any]:
        found: Any = self._document
        for part in ref.removeprefix("#/").split("/"):
            found = found[part]
        assert isinstance(found, dict)
        return found

    def _type(self, wanted: str, schema: Any, value: Any, at: str) -> Iterator[str]:
        right = isinstance(value, _TYPES[wanted])
        if not right or (isinstance(value, bool) and wanted != "boolean"):
            yield f"{at}: {value!r} is no {wanted}"

    def _enum(self, wanted: list[Any], schema: Any, value: Any, at: str) -> Iterator[str]:
        if value not in wanted:
            yield f"{at}: {value!r} is none of {wanted}"

    def _const(self, wanted: Any, schema: Any, value: Any, at: str) -> Iterator[str]:
        if value != wanted:
            yield f"{at}: {value!r} is not {wanted!r}"

    def _anyof(self, wanted: list[Any], schema: Any, value: Any, at: str) -> Iterator[str]:
        every = [list(self.faults(one, value, at)) for one in wanted]
        if all(every):
            yield f"{at}: fits none of {len(every)}: {min(every, key=len)}"

    def _required(self, wanted: list[str], schema: Any, value: Any, at: str) -> Iterator[str]:
        if isinstance(value, dict):
            yield from (f"{at}: {name} is missing" for name in wanted if name not in value)

    def _properties(self, wanted: Any, schema: Any, value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, dict):
            return
        for name, one in value.items():
            if name in wanted:
                yield from self.faults(wanted[name], one, f"{at}.{name}")
            elif "additionalProperties" not in schema:
                # What is answered is said in full, also where more would be allowed.
                yield f"{at}: {name} is not in the schema"

    def _additionalproperties(self, wanted: Any, schema: Any, value: Any, at: str) -> Iterator[str]:
        if wanted is False and isinstance(value, dict):
            more = set(value) - set(schema.get("properties", ()))
            yield from (f"{at}: {name} is not allowed" for name in more)

    def _items(self, wanted: Any, schema: Any, value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, list):
            return
        first = len(schema.get("prefixItems", ()))
        if wanted is False:
            if len(value) > first:
                yield f"{at}: {len(value)} items, and {first} are allowed"
            return
        for number, one in enumerate(value[first:], first):
            yield from self.faults(wanted, one, f"{at}[{number}]")

    def _prefixitems(self, wanted: list[Any], schema: Any, value: Any, at: str) -> Iterator[str]:
        if isinstance(value, list):
            for number, (one, item) in enumerate(zip(wanted, value, strict=False)):
                yield from self.faults(one, item, f"{at}[{number}]")

    def _minitems(self, wanted: int, schema: Any, value: Any, at: str) -> Iterator[str]:
        if isinstance(value, list) and len(value) < wanted:
            yield f"{at}: fewer than {wanted}"

    def _maxitems(self, wanted: int, schema: Any, value: Any, at: str) -> Iterator[str]:
        if isinstance(value, list) and len(value) > wanted:
            yield f"{at}: more than {wanted}"

    def _minlength(self, wanted: int, schema: Any, value: Any, at: str) -> Iterator[str]:
        if isinstance(value, str) and len(value) < wanted:
            yield f"{at}: shorter than {wanted}"

    def _maxlength(self, wanted: int, schema: Any, value: Any, at: str) -> Iterator[str]:
        if isinstance(value, str) and len(value) > wanted:
            yield f"{at}: longer than {wanted}"

    def _pattern(self, wanted: str, schema: Any, value: Any, at: str) -> Iterator[str]:
        if isinstance(value, str) and re.search(wanted, value) is None:
            yield f"{at}: {value!r} does not fit {wanted}"
