"""Self-tests of devices, which a technician starts while the table is closed.

The result is recorded with the technician's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controller.api.contract.errors import Problem, granted
from controller.api.contract.messages import Tested
from controller.api.service.acts import people_news, supervisor_of
from controller.api.service.context import ServedTable, table_problems
from controller.api.service.screens import ScreenSession
from controller.audit.format.records import RecordEntry
from controller.audit.replay import record_actor
from drivers.devices import CommandRefusedError, CommandUnansweredError, NotReady
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages import FaultCode

TEST: Final = "SelfTest"
"""The type of the act that a page sends for it."""
TESTED: Final = "self test"
MEANWHILE: Final = "the table was opened meanwhile"
NO_ANSWER: Final = "not answered"
NOTHING_FOUND: Final = FaultCode.NONE.name.lower()
_CODES: Final[Mapping[type[Exception], str]] = MappingProxyType(
    {
        CommandRefusedError: "test_refused",
        CommandUnansweredError: "not_tested",
        LinkBusy: "test_busy",
        NotReady: "not_tested",
    }
)
"""The code of the problem if the device does not test itself."""


async def run_self_test(served: ServedTable, screen: ScreenSession, serial: str) -> Tested:
    """Have a device test itself, which takes up to 10 s and moves no card. Raises Problem if this
    person may not, or if the device does not answer; the latter is recorded too."""
    supervisor_of(served.table, serial)
    device = served.table.devices.supervised[serial]
    granted(await people_news(served))
    technician = screen.signed_in(served.desk, "technician")
    if technician is None:
        what = "no technician is signed in here"
        raise Problem(403, "no_technician", what, "POST /api/v1/sign-in, and then this")
    if not served.table.shut:
        what = "the table is open: devices are tested while it is closed"
        raise Problem(409, "table_open", what)

    async def record(found: str, *details: str) -> None:
        said = {"what": TESTED, "device": device.config.device, "serial": serial}
        data = {**said, "found": found, "detail": "; ".join(filter(None, details))}
        with table_problems():
            await served.table.record(RecordEntry("person", record_actor(technician.actor), data))

    try:
        reply = await device.supervisor.driver.selftest()
    except tuple(_CODES) as problem:
        await record(NO_ANSWER, str(problem))
        raise Problem(409, _CODES[type(problem)], str(problem)) from None
    found = reply.code.name.lower()
    await record(found, str(reply.arg or ""), _meanwhile(served))
    return Tested(device.config.device, serial, technician.name, found, reply.arg)


def _meanwhile(served: ServedTable) -> str:
    return "" if served.table.shut else MEANWHILE
