"""A simulator that can and tells less than ours: items are skipped in plain words."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.errors import UsageProblem
from firmware_protocol.conformance import Profile
from firmware_protocol.device import Answer, CannotDo, ControlRequest, Describe, Draw
from hil.conform.tester.findings import ItemSkipped
from hil.conform.tester.operators import RemoteOperator, SimulatedOperator
from hil.control import ControlClient
from tests.support.hil.conform.conform_rig import Rig


class Terse(SimulatedOperator):
    """Hands that do all, and see what they are told to see."""

    def __init__(self, sees: Any = None) -> None:
        self.sees = sees
        self.request: Callable[[ControlRequest], Answer]

    async def do(self, hand: ControlRequest) -> Answer:
        answer = self.request(hand)
        return {"mechanism": self.sees} if isinstance(hand, Describe) else answer


@pytest.mark.parametrize("sees", [None, [], {}, {"out": 3, "buzzes": "two", "seats": {"1": 7}}])
@pytest.mark.parametrize(
    ("profile", "item", "result", "words"),
    [
        ("shoe", "SH-5", "SKIP", "needs a device whose 'describe' has mechanism.out"),
        ("station", "ST-5", "SKIP", "a device whose 'describe' has mechanism.seats.1.lamps.lit"),
        ("station", "CO-1", "PASS", "sounds were not counted: needs a device whose 'describe'"),
    ],
)
def test_an_item_is_skipped_without_its_field_of_describe(
    tmp_path: Path, profile: Profile, item: str, result: str, words: str, sees: Any
) -> None:
    operator = Terse(sees)
    rig = Rig(tmp_path, profile, operator=operator)
    operator.request = rig.request
    outcome = rig.attempt(item)
    assert outcome.result == result
    assert words in outcome.remark


# --- over the socket ------------------------------------------------------------------------


def said(path: Path, line: bytes, do: Callable[[RemoteOperator], Any]) -> Any:
    """What comes of it when a control socket answers so."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    async def scene() -> Any:
        with ControlClient(path) as control, server.accept()[0] as peer:
            peer.sendall(line + b"\n")
            return await do(RemoteOperator(control))

    try:
        return asyncio.run(scene())
    finally:
        server.close()


NO = b'{"ok": false, "error": "no", "where": "%s", "allowed": ""}'


@pytest.mark.parametrize(
    ("where", "words"), [(b"do", "supports 'draw'$"), (b"double", "supports 'draw' with double$")]
)
def test_a_verb_that_it_does_not_know_is_lacking(tmp_path: Path, where: bytes, words: str) -> None:
    with pytest.raises(ItemSkipped, match=words):
        said(tmp_path / "s", NO % where, lambda one: one.do(Draw(double=True)))


@pytest.mark.parametrize("line", [NO % b"draw", b'{"ok": false}'])
def test_a_denied_request_raises_cannot_do(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(CannotDo, match=r"no|refused"):
        said(tmp_path / "s", line, lambda one: one.do(Draw()))


@pytest.mark.parametrize("line", [b"yes", b"[]", b"{}", b'{"ok": 1}', b"\xff"])
def test_an_answer_that_is_none_is_a_wrong_argument(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(UsageProblem, match="--control"):
        said(tmp_path / "s", line, lambda one: one.do(Draw()))


@pytest.mark.parametrize("line", [b'{"ok": true}', b'{"ok": true, "answer": {"label": 7}}'])
def test_a_missing_label_skips_the_item(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(ItemSkipped, match="label"):
        said(tmp_path / "s", line, lambda one: one.label())
