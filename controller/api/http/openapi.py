"""The API's document in OpenAPI 3.1, made from the table of routes and the types of their values.

python -m controller.api.http.openapi        prints it
"""

from __future__ import annotations

import re
import sys
from functools import cache, reduce
from operator import or_
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from controller.api.contract.errors import JSON
from controller.api.contract.messages import ErrorAnswer
from controller.api.http.routes import PREFIX, ROUTES, ApiRoute
from controller.table.loop import BY_PEOPLE, BY_VAULT

TITLE: Final = "Holecard, control API of one table"
VERSION: Final = "1"
TEMPLATE: Final = "#/components/schemas/{name}"
ALWAYS: Final = (400, 403, 404, 405, 500)
"""Errors of every route; 403 for a foreign Host or Origin."""
WITH_TOKEN: Final = (401,)
WITH_BODY: Final = (408, 413, 415)
WITHOUT_GET: Final = (429, 503)
"""The limit is reached; the table is closing or does not respond."""
ABOUT: Final = (
    "What a dealer's screen, a robot or a test can ask of one table, over a unix socket and over "
    "HTTP on the loopback. A screen is opened first, and watches; people sign in at it by badge "
    "and PIN. All that is shown lies face up. Whatever is sent is JSON in UTF-8, each name in an "
    "object once, up to 64 KiB, and names nothing that is not listed here."
)
WORDS: Final = {
    400: "The request is invalid.",
    401: "The token is missing, or no open screen has it.",
    403: "Not allowed for this person or from this screen, or not authorised.",
    404: "Not found.",
    405: "The path does not support this method; see Allow.",
    408: "The body arrived too slowly.",
    409: "Not possible in the current state of the table.",
    413: "The body is too long.",
    415: "The body is not JSON.",
    429: "Too many requests, or too many wrong PINs; see Retry-After.",
    500: "An error of the controller.",
    503: "Nothing can be recorded, so no act is accepted.",
}
ACT: Final = "Act"
_IN_BRACES: Final = re.compile(r"\{(\w+)\}")
_PEOPLE: Final = ("actor", "second")


def sent_acts() -> tuple[type[Struct], ...]:
    """The acts that clients send: the events of people, without the people."""
    kinds: tuple[type[Struct], ...] = (*BY_PEOPLE, *BY_VAULT)
    return tuple(map(_without_people, kinds))


def _without_people(kind: type[Struct]) -> type[Struct]:
    fields = [
        (one.name, one.type) if one.required else (one.name, one.type, one.default)
        for one in structs.fields(kind)
        if one.name not in _PEOPLE
    ]
    return msgspec.defstruct(
        kind.__name__,
        fields,
        tag=True,
        forbid_unknown_fields=True,
        module=__name__,
        namespace={"__doc__": kind.__doc__},
    )


def document(routes: tuple[ApiRoute, ...]) -> dict[str, Any]:
    acts = reduce(or_, sent_acts())
    kinds = [
        acts,
        ErrorAnswer,
        *(route.gives for route in routes if route.gives is not None),
        *(route.takes for route in routes if isinstance(route.takes, type)),
    ]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=TEMPLATE)
    of_kind = dict(zip(kinds, schemas, strict=True))
    components[ACT] = {**of_kind[acts], "description": "Something that somebody does."}
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(route, of_kind)
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": VERSION, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"screen": {"type": "http", "scheme": "bearer"}},
        },
    }


@cache
def document_bytes(routes: tuple[ApiRoute, ...]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document(routes)), indent=1) + b"\n"


def errors_of(route: ApiRoute) -> tuple[int, ...]:
    """Returns all error statuses of a route."""
    found = {*ALWAYS, *route.errors}
    found.update(WITH_TOKEN if route.token else ())
    found.update(WITH_BODY if route.takes is not None else ())
    found.update(WITHOUT_GET if route.method != "GET" else ())
    return tuple(sorted(found))


def _operation(route: ApiRoute, of_kind: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    error = of_kind[ErrorAnswer]
    made: dict[str, Any] = {
        "operationId": route.name,
        "description": route.what,
        "security": [{"screen": []}] if route.token else [],
    }
    named = _IN_BRACES.findall(route.path)
    if named:
        made["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in named
        ]
    if route.takes is not None:
        sent = {"$ref": TEMPLATE.format(name=ACT)} if route.takes == "act" else of_kind[route.takes]
        made["requestBody"] = {"required": True, "content": {JSON: {"schema": sent}}}
    gives = {"description": "What is asked for.", "content": _gives(route, of_kind)}
    responses = {str(route.status): gives}
    for status in errors_of(route):
        content = {JSON: {"schema": error}}
        responses[str(status)] = {"description": WORDS[status], "content": content}
    made["responses"] = responses
    return made


def _gives(route: ApiRoute, of_kind: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    if route.streams:
        return {"text/event-stream": {"schema": {"type": "string"}}}
    return {JSON: {"schema": {"type": "object"} if route.gives is None else of_kind[route.gives]}}


if __name__ == "__main__":
    sys.stdout.buffer.write(document_bytes(ROUTES))
