"""The operator of a simulated device in another process, through its control socket."""

from __future__ import annotations

import asyncio

from controller.errors import UsageProblem
from firmware_protocol.device.control import ControlRequest, Describe
from firmware_protocol.device.interfaces import Answer, CannotDo
from hil.conform.tester.findings import ItemSkipped
from hil.conform.tester.operators import ALL_NEEDS
from hil.control import ControlClient, ControlLost, RequestRefused


def _unsupported(request: ControlRequest, wrong: str) -> str:
    """The verb, and the unknown field."""
    verb = str(request.__struct_config__.tag)
    return f"'{verb}'" if wrong == "do" else f"'{verb}' with {wrong}"


class RemoteOperator:
    name = "controlled"
    can = ALL_NEEDS
    exact = True

    def __init__(self, control: ControlClient) -> None:
        self._control = control

    async def do(self, request: ControlRequest) -> Answer:
        # In a thread, so that the heartbeats continue.
        return await asyncio.to_thread(self._do, request)

    def _do(self, request: ControlRequest) -> Answer:
        try:
            return self._control.do(request)
        except RequestRefused as refused:
            if refused.where == "do" or refused.where in request.__struct_fields__:
                known = _unsupported(request, refused.where)
                raise ItemSkipped(f"a device that supports {known}") from None
            raise CannotDo(refused.what) from None
        except ControlLost as lost:
            raise UsageProblem(
                "--control", str(lost), "the control socket of a device that runs"
            ) from None

    async def label(self) -> str:
        label = (await self.do(Describe())).get("label")
        if not isinstance(label, str):
            raise ItemSkipped("the code of the label, which 'describe' does not return")
        return label

    async def confirm(self, question: str) -> bool:
        raise ItemSkipped("a person's eyes: --ask")
