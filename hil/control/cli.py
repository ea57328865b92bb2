"""`holecard sim do`: sends one request to a simulated device that runs, and prints the answer."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final, NoReturn

from controller.commands import Subparsers, add_command, help_text, print_json, say
from controller.errors import EXIT_NO, EXIT_OUTPUT, UsageProblem
from hil.control.socket import ControlClient, ControlLost, RequestRefused
from hil.control.verbs import ALL, InvalidRequest, parse_request, request_fields

_ALLOWED: Final = "the control socket of a device that runs, which it prints when it starts"
_EPILOG: Final = help_text(
    (
        "sim do run/shoe/control describe",
        "sim do run/shoe/control describe --get label",
        "sim do run/shoe/control load cards=Ah,Td,2c decks=1",
        "sim do run/shoe/control draw count=2 read=low",
        """sim do run/shoe/control '{"do": "draw", "count": 2, "confidence": null}'""",
    ),
    "VERB and its fields are in hil/CONTROL.md.",
    {
        0: "done",
        EXIT_NO: "the device refuses",
        2: "wrong arguments, or no device runs there",
        EXIT_OUTPUT: "the device stopped before it answered",
    },
)


def register_do(commands: Subparsers) -> None:
    do = add_command(
        commands,
        "do",
        "send a request to a device that runs",
        _do,
        description="Sends a request to a simulated device that runs.",
        epilog=_EPILOG,
    )
    do.add_argument("socket", metavar="SOCKET", help="its control socket")
    do.add_argument("request", metavar="VERB", help="a verb, or the whole request as JSON")
    do.add_argument("fields", nargs="*", metavar="field=value")
    do.add_argument("--get", metavar="NAME", help="print only this field of the answer")


def _do(args: argparse.Namespace) -> int:
    if not args.socket:
        raise UsageProblem("SOCKET", "is empty", _ALLOWED)
    try:
        request = parse_request(_as_line(args.request, args.fields), ALL)
    except InvalidRequest as bad:
        raise UsageProblem(bad.where, bad.what, bad.allowed) from None
    try:
        client = ControlClient(Path(args.socket))
    except ControlLost as lost:
        raise UsageProblem("SOCKET", str(lost), _ALLOWED) from None
    try:
        with client:
            answer = client.do(request)
    except ControlLost as lost:
        say(f"{args.socket}: {lost}")
        return EXIT_OUTPUT
    except RequestRefused as refused:
        say(str(refused))
        return EXIT_NO
    if args.get is None:
        print_json(answer)
    else:
        print(_field(answer, args.get))
    return 0


def _field(answer: dict[str, Any], name: str) -> str:
    if name not in answer:
        allowed = ", ".join(sorted(answer)) or "none: it is empty"
        raise UsageProblem("--get", f"it is done, but the answer has no field {name!r}", allowed)
    value = answer[name]
    return value if isinstance(value, str) else json.dumps(value)


def _as_line(request: str, fields: list[str]) -> bytes:
    """The request as a line of JSON. Arguments that are not UTF-8 are rejected as JSON later."""
    if request.lstrip().startswith("{"):
        if fields:
            raise UsageProblem(fields[0], "the request is JSON already", "one or the other")
        return request.encode(errors="surrogateescape")
    raw: dict[str, object] = {"do": request}
    for field in fields:
        name, value = _pair(request, field)
        if name in raw:
            raise UsageProblem(name, "is given twice", "each field once")
        raw[name] = value
    return json.dumps(raw).encode()


def _pair(verb: str, text: str) -> tuple[str, object]:
    """Parse `count=3`, `read=low`, `cards=Ah,Td`: a value is JSON, or text, or a list of texts."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageProblem(repr(text), "no field=value", f"{verb} field=value ...")
    fields = request_fields(ALL[verb]) if verb in ALL else ()
    field = next((field for field in fields if field.name == name), None)
    if field is not None and field.textual:
        return name, value
    if field is not None and field.many and not value.startswith("["):
        return name, value.split(",") if value else []
    try:
        return name, json.loads(value, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return name, value


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(word)  # NaN and Infinity, which Python's JSON decoder accepts
