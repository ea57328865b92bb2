"""Strict decoding of request bodies: no two parsers can read one differently.

At most MAX_BYTES are stored, and BODY_TIMEOUT limits the wait. Of a longer body some is read and
dropped, since a client that is still sending does not read the response.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import accumulate
from typing import Any, Final, TypeVar

import msgspec
from msgspec.inspect import LiteralType, Metadata, StructType, type_info
from starlette.requests import ClientDisconnect, Request

from controller.api.contract.errors import JSON, Problem
from controller.api.contract.messages import Sent

MAX_BYTES: Final = 64 * 1024
"""Bytes of a body."""
MAX_DEPTH: Final = 8
"""Levels of nested lists and objects."""
BODY_TIMEOUT: Final = 10.0
"""Seconds until the whole body must be received."""
MAX_DROPPED_BYTES: Final = 16 * 1024 * 1024
LINGER: Final = 2.0
"""Bytes and seconds for which a body that is too long is read; then the connection is closed."""
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_OPENS_OR_CLOSES: Final = re.compile(rb"[\[\]{}]")
_UTF8: Final = re.compile(r'charset="?utf-?8"?', re.IGNORECASE)
_FIELD: Final = re.compile(r" - at `\$\.([a-z_]+)`$")
"""The field in an error text of msgspec."""
_S = TypeVar("_S", bound=Sent)


async def read_body(request: Request) -> dict[str, Any]:
    """Returns the decoded object; {} for an empty body. Raises Problem."""
    headers = request.headers
    declared = headers.get("content-length", "0")
    if not declared.isdecimal() or len(declared) > 18 or int(declared) > MAX_BYTES:
        await _drop(request, request.stream())
        raise _too_long()
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            data = await _all_of(request)
    except TimeoutError:
        raise Problem(
            408, "too_slow", f"the body did not come within {BODY_TIMEOUT:g} s", headers=_CLOSES
        ) from None
    except ClientDisconnect:
        raise Problem(400, "cut_off", "the body ends too early") from None
    if not data:
        return {}
    _check_type(headers.get("content-type", ""), headers.get("content-encoding", "identity"))
    return read_object(data)


async def _all_of(request: Request) -> bytes:
    data = bytearray()
    pieces = request.stream()  # may be complete already
    async for chunk in pieces:
        data += chunk
        if len(data) > MAX_BYTES:
            break
    else:
        return bytes(data)
    await _drop(request, pieces)
    raise _too_long()


async def _drop(request: Request, pieces: AsyncIterator[bytes]) -> None:
    """Read and drop the rest: if unread bytes are left, closing the connection discards the
    response."""
    if "expect" in request.headers:  # the client waits for 100 Continue
        return
    dropped = 0
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(LINGER):
            async for chunk in pieces:
                dropped += len(chunk)
                if dropped > MAX_DROPPED_BYTES:
                    return


def _check_type(content_type: str, encoding: str) -> None:
    kind, _, parameters = content_type.partition(";")
    plain = encoding.strip().lower() == "identity"
    if kind.strip().lower() != JSON or not plain or not _is_utf8(parameters):
        raise Problem(
            415, "no_json", "the body is of a type that is not taken", f"{JSON}, not compressed"
        )


def _is_utf8(parameters: str) -> bool:
    wanted = parameters.strip()
    return not wanted or _UTF8.fullmatch(wanted) is not None


def read_object(data: bytes) -> dict[str, Any]:
    """Decode one JSON object without duplicate names. Raises Problem."""
    if _depth(data) > MAX_DEPTH:
        raise _no_json(f"it is nested deeper than {MAX_DEPTH}")
    try:
        found = msgspec.json.decode(data)
        json.loads(data, object_pairs_hook=_once)
    except _DuplicateName as problem:
        raise _no_json(str(problem)) from None
    except (msgspec.DecodeError, ValueError) as problem:
        raise _no_json(str(problem).splitlines()[0][:200]) from None
    if not isinstance(found, dict):
        raise _no_json("it is no object")
    return found


def read_as(found: dict[str, Any], kind: type[_S]) -> _S:
    """Validate the object as this type. Raises Problem."""
    fields = kind.__struct_fields__
    unknown = sorted(set(found) - set(fields))
    if unknown:
        what = f"there is no field {unknown[0][:40]!r}"
        raise Problem(400, "unknown_field", what, ", ".join(fields) or "no fields")
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as problem:
        what, allowed = _unfit(str(problem), kind)
        raise Problem(400, "bad_field", what, allowed or ", ".join(fields)) from None


def _unfit(said: str, kind: type[Sent]) -> tuple[str, str]:
    """Returns the error of a field, and what its type allows if it says so."""
    at = _FIELD.search(said)
    info = type_info(kind)
    if at is None or not isinstance(info, StructType):
        return said, ""
    name = at[1]
    match next((one.type for one in info.fields if one.name == name), None):
        case LiteralType(values=values) if said.startswith("Invalid enum value"):
            return said, f"{name}: {', '.join(map(str, values))}"
        case Metadata(extra_json_schema={"description": str(words)}):
            return f"{name} cannot be this", words
    return said, ""


def _depth(data: bytes) -> int:
    """Returns the nesting depth, also of invalid JSON."""
    marks = _OPENS_OR_CLOSES.findall(_STRING.sub(b"", data))
    return max(accumulate(1 if mark in b"[{" else -1 for mark in marks), default=0)


class _DuplicateName(Exception):
    """An object names a field twice: parsers differ in which one they return."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise _DuplicateName(f"it says {twice[:40]!r} twice")
    return found


def _no_json(why: str) -> Problem:
    return Problem(400, "no_json", f"the body cannot be taken: {why}", "one JSON object")


def _too_long() -> Problem:
    return Problem(
        413, "too_long", "the body is too long", f"up to {MAX_BYTES} bytes", headers=_CLOSES
    )


_CLOSES: Final = {"Connection": "close"}
