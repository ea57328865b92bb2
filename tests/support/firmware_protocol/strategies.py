"""Strategies for any message that the catalogue allows."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from firmware_protocol import messages
from firmware_protocol.generate import INTEGER_SIZES, Catalogue, Field, array, camel
from firmware_protocol.generate import catalogue as catalogues
from firmware_protocol.messages import MESSAGES, Command, Control, Event, Message, Payload, Reply
from firmware_protocol.tablelink import CommandCall, CommandReply, Plaintext, chained

WORD = "ABCXYZabcxyz0189._-"


@cache
def catalogue() -> Catalogue:
    return catalogues.load_catalogue()


def field(one: Field) -> st.SearchStrategy[Any]:
    form = array(one.type)
    if form:
        kind, size = form
        if kind == "bytes":
            return st.binary(min_size=size, max_size=size)
        if kind == "word":
            return st.text(WORD, min_size=1, max_size=size)
        printable = st.characters(min_codepoint=0x20, max_codepoint=0x7E)
        return st.text(printable, max_size=size).map(str.strip).filter(bool)
    if one.type == "bool":
        return st.booleans()
    if one.type in catalogue().is_flags:
        members = list(getattr(messages, camel(one.type)))
        none = type(members[0])(0)
        return st.sets(st.sampled_from(members)).map(lambda some: sum_flags(none, some))
    if one.type in catalogue().sets:
        return st.sampled_from(
            [member for member in getattr(messages, camel(one.type)) if member >= (one.min or 0)]
        )
    most = (1 << 8 * INTEGER_SIZES[one.type]) - 1 if one.max is None else one.max
    inside = st.integers(one.min or 0, most)
    return inside | st.sampled_from(one.also) if one.also else inside


def sum_flags(none: Any, some: set[Any]) -> Any:
    for member in some:
        none |= member
    return none


def payload(kind: type[Payload], fields: tuple[Field, ...]) -> st.SearchStrategy[Any]:
    real = {one.name: field(one) for one in fields if not one.type.startswith("zero")}
    return st.builds(kind, **real)


@cache
def any_message() -> st.SearchStrategy[Message]:
    return st.one_of([payload(MESSAGES[one.id], one.fields) for one in catalogue().messages])


@cache
def any_payload() -> st.SearchStrategy[Payload]:
    """Messages and the frames in clear."""
    frames = [
        payload(getattr(messages, camel(one.kind)), one.fields)
        for one in catalogue().frames
        if not one.opaque
    ]
    return st.one_of([any_message(), *frames])


def u(bits: int, least: int = 0) -> st.SearchStrategy[int]:
    return st.integers(least, (1 << bits) - 1)


@st.composite
def any_plaintext(draw: st.DrawFn) -> Plaintext:
    message = draw(any_message())
    if isinstance(message, Event):
        return chained(
            draw(st.binary(min_size=8, max_size=8)),
            epoch=draw(u(32, 1)),
            seq=draw(u(32, 1)),
            boot=draw(u(32, 1)),
            t_us=draw(u(64)),
            event=message,
        )
    if isinstance(message, Command):
        return CommandCall(draw(u(32, 1)), draw(u(64, 1)), message)
    if isinstance(message, Reply):
        return CommandReply(draw(u(32, 1)), draw(u(64, 1)), message)
    assert isinstance(message, Control)
    return message
