"""`holecard sim do`: one hand at a simulated device that runs, and what it is answered."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from controller.errors import UsageProblem

_ALLOWED: Final = "the control socket of a device that runs, which it names when it begins"
_EPILOG: Final = """\
examples:
  holecard sim do run/shoe/control describe
  holecard sim do run/shoe/control describe --get label
  holecard sim do run/shoe/control load cards=Ah,Td,2c decks=1
  holecard sim do run/shoe/control draw count=2 read=low
  holecard sim do run/shoe/control '{"do": "draw", "count": 2, "confidence": null}'

VERB and its fields are in hil/CONTROL.md. Exit codes: 0 done; 1 the device says no; 2 wrong
arguments, or no device runs there; 74 it has gone before it answered.
"""
EXIT_NO: Final = 1
EXIT_LOST: Final = 74


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    do = commands.add_parser(
        "do",
        help="put a hand to a device that runs",
        description="Puts a hand to a simulated device that runs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    do.add_argument("socket", metavar="SOCKET", help="its control socket")
    do.add_argument("hand", metavar="VERB", help="a verb, or the whole hand as JSON")
    do.add_argument("fields", nargs="*", metavar="field=value")
    do.add_argument("--get", metavar="NAME", help="print this field of the answer alone")
    do.set_defaults(func=_do)


def _do(args: argparse.Namespace) -> int:
    from hil.control.socket import ControlClient, ControlLost, RequestRefused
    from hil.control.verbs import ALL, InvalidRequest, parse_request

    if not args.socket:
        raise UsageProblem("SOCKET", "is empty", _ALLOWED)
    line = _as_line(args.hand, args.fields)
    try:
        hand = parse_request(line, ALL)
    except InvalidRequest as bad:
        raise UsageProblem(bad.where, bad.what, bad.allowed) from None
    try:
        control = ControlClient(Path(args.socket))
    except ControlLost as lost:
        raise UsageProblem("SOCKET", str(lost), _ALLOWED) from None
    try:
        with control:
            answer = control.do(hand)
    except ControlLost as lost:
        print(f"holecard: {args.socket}: {lost}", file=sys.stderr)
        return EXIT_LOST
    except RequestRefused as refused:
        print(f"holecard: {refused}", file=sys.stderr)
        return EXIT_NO
    print(json.dumps(answer, indent=2) if args.get is None else _field(answer, args.get))
    return 0


def _field(answer: dict[str, Any], name: str) -> str:
    if name not in answer:
        allowed = ", ".join(sorted(answer)) or "none: it is empty"
        raise UsageProblem("--get", f"it is done, but the answer has no field {name!r}", allowed)
    value = answer[name]
    return value if isinstance(value, str) else json.dumps(value)


def _as_line(hand: str, fields: list[str]) -> bytes:
    if hand.lstrip().startswith("{"):
        if fields:
            raise UsageProblem(fields[0], "the hand is JSON already", "one or the other")
        return _encoded(hand)
    asked: dict[str, object] = {"do": hand}
    for field in fields:
        name, value = _pair(hand, field)
        if name in asked:
            raise UsageProblem(name, "is there twice", "each field once")
        asked[name] = value
    return json.dumps(asked).encode()


def _encoded(text: str) -> bytes:
    """What was typed, which need not be UTF-8: then it is no JSON, and is told so."""
    return text.encode(errors="surrogateescape")


def _pair(verb: str, field: str) -> tuple[str, object]:
    """`count=3`, `read=low`, `cards=Ah,Td`: a value is JSON, or else text, or a list of texts."""
    from hil.control.verbs import ALL, request_fields

    name, equals, value = field.partition("=")
    if not equals or not name:
        raise UsageProblem(repr(field), "no field=value", f"{verb} field=value ...")
    of_verb = request_fields(ALL[verb]) if verb in ALL else ()
    word = next((word for word in of_verb if word.name == name), None)
    if word is not None and word.textual:
        return name, value
    if word is not None and word.many and not value.startswith("["):
        return name, value.split(",") if value else []
    try:
        return name, json.loads(value, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return name, value


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)  # NaN and Infinity, which Python takes for JSON
