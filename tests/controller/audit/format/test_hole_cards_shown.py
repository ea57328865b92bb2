"""Values that contain a hole card or the hole key never print it."""

from __future__ import annotations

import copy
import io
import pickle
import pprint
import re
import traceback
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from rich.console import Console
from rich.pretty import pretty_repr

from controller.audit.format.hole_cards import (
    CardCommitment,
    CardOpening,
    SealProblem,
    check,
    commit,
)
from drivers.devices import Sealed, SealedCard
from tests.support.audit.record.sealed_card import (
    BODY,
    CARD,
    COMMITTED,
    CURSOR,
    HOLE_KEY,
    OPENED,
    PUBLIC,
    READ,
    TABLE,
    At,
)

SECRETS = (OPENED, READ, HOLE_KEY, OPENED.card)
TELLTALE = (
    str(CARD),
    "salty",
    OPENED.open().hex(),
    repr(OPENED.open())[2:20],
    HOLE_KEY.open().hex(),
    repr(HOLE_KEY.open())[2:20],
)
WAYS: dict[str, Callable[[Any], str]] = {
    "repr": repr,
    "format": lambda one: f"{one} {one!s:>30} {one:>9} {[one]}",
    "pprint": pprint.pformat,
    "rich": pretty_repr,
    "attributes": lambda one: repr(
        [getattr(one, name) for name in dir(one) if name not in ("open", "__doc__")]
    ),
}


def shows(text: str) -> list[str]:
    """Everything readable of a value, without object addresses."""
    text = re.sub("0x[0-9a-f]+", "", text)
    return [sign for sign in TELLTALE if sign in text]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("secret", SECRETS, ids=lambda one: type(one).__name__)
def test_no_secret_value_is_printed(secret: Sealed[object], way: str) -> None:
    text = WAYS[way](secret)
    assert text
    assert not shows(text), text


@pytest.mark.parametrize("secret", SECRETS, ids=lambda one: type(one).__name__)
def test_no_secret_value_is_pickled_or_copied(secret: Sealed[object]) -> None:
    ways: list[Callable[[object], object]] = [pickle.dumps, msgspec.json.encode, vars]
    for way in ways:
        with pytest.raises(TypeError) as caught:
            way(secret)
        assert not shows(str(caught.value))
    assert copy.deepcopy(secret) is secret


def test_a_card_is_opened_explicitly() -> None:
    assert isinstance(OPENED.card, SealedCard)
    assert OPENED.card.open() == CARD
    assert CardOpening(OPENED.open()[:32], BODY.encode()).card.open() == CARD


def test_recorded_values_are_printed() -> None:
    assert msgspec.json.decode(msgspec.json.encode(COMMITTED), type=CardCommitment) == COMMITTED


BROKEN: dict[str, Callable[[], object]] = {
    "key": lambda: commit(
        TABLE, CURSOR, READ, HOLE_KEY, X25519PublicKey.from_public_bytes(bytes(32))
    ),
    "table": lambda: commit("", CURSOR, READ, HOLE_KEY, PUBLIC),
    "device": lambda: commit(TABLE, At(""), READ, HOLE_KEY, PUBLIC),
    "other commitment": lambda: check(OPENED, TABLE, CURSOR, "00" * 32, CARD - 1),
    "other card": lambda: check(OPENED, TABLE, CURSOR, COMMITTED.commitment_hex, CARD - 1),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_no_traceback_with_variables_shows_a_card(broken: str) -> None:
    try:
        BROKEN[broken]()
    except SealProblem as problem:
        frames = [frame.f_locals for frame, _ in traceback.walk_tb(problem.__traceback__)][1:]
        assert frames
        held = repr(frames) + pretty_repr(frames)
        assert not shows(held), held
        console = Console(file=io.StringIO(), width=200)
        console.print(problem)
        assert isinstance(console.file, io.StringIO)
        assert not shows(console.file.getvalue())
    else:
        pytest.fail("nothing was refused")
