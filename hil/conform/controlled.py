"""The hands of a simulated device that runs elsewhere, through its control socket."""

from __future__ import annotations

import asyncio

from controller.rules.problem import UsageProblem
from hil.conform.findings import Lacking
from hil.conform.operators import ALL_NEEDS
from hil.device.hands import Describe, Hand
from hil.device.parts import Answer, CannotDo
from hil.front.control import Control, ControlLost, HandRefused


class Controlled:
    can = ALL_NEEDS
    exact = True

    def __init__(self, control: Control) -> None:
        self._control = control

    async def do(self, hand: Hand) -> Answer:
        # In a thread: heartbeats go on while the device works on it.
        return await asyncio.to_thread(self._do, hand)

    def _do(self, hand: Hand) -> Answer:
        try:
            return self._control.do(hand)
        except HandRefused as refused:
            raise CannotDo(refused.what) from None
        except ControlLost as lost:
            raise UsageProblem(
                "--control", str(lost), "the control socket of a device that runs"
            ) from None

    async def label(self) -> str:
        return str((await self.do(Describe()))["label"])

    async def confirm(self, question: str) -> bool:
        raise Lacking("a person's eyes: --ask")
