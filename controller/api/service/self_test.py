"""A technician has a device test itself, while the table is closed. What came of it stands in the
record, with who asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controller.api.contract.errors import Problem, denied
from controller.api.contract.messages import Tested
from controller.api.service.approvals import supervisor_of
from controller.api.service.context import ServedTable
from controller.api.service.screens import ScreenSession
from controller.api.service.sign_in import people_news, signed_in, told_of_the_record
from controller.audit.format.records import RecordEntry, record_actor
from drivers.devices import CommandRefused, CommandUnanswered, NotReady
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages.enums import FaultCode

TEST: Final = "SelfTest"
"""What a page calls it."""
TESTED: Final = "self test"
MEANWHILE: Final = "the table was opened meanwhile"
NO_ANSWER: Final = "not answered"
NOTHING_FOUND: Final = FaultCode.NONE.name.lower()
_NOT_TESTED: Final[Mapping[type[Exception], str]] = MappingProxyType(
    {
        CommandRefused: "test_refused",
        CommandUnanswered: "not_tested",
        LinkBusy: "test_busy",
        NotReady: "not_tested",
    }
)
"""Why nothing came of it, and by which code that is told."""


async def self_test(served: ServedTable, screen: ScreenSession, serial: str) -> Tested:
    """Takes up to 10 s, and moves no card. Problem: nobody may ask for it now; or the device has
    not answered, which is recorded too."""
    supervisor_of(served.table, serial)
    device = served.table.fittings.served[serial]
    news = await people_news(served)
    if news is not None:
        raise denied(news)
    technician = signed_in(served, screen, "technician")
    if technician is None:
        what = "no technician is signed in here"
        raise Problem(403, "no_technician", what, "POST /api/v1/sign-in, and then this")
    if not served.table.shut:
        what = "the table is open: devices are tested while it is closed"
        raise Problem(409, "table_open", what)
    said = {"what": TESTED, "device": device.fitted.device, "serial": serial}

    async def told(found: str, detail: str) -> None:
        data = {**said, "found": found, "detail": detail}
        with told_of_the_record():
            await served.table.record(RecordEntry("person", record_actor(technician.actor), data))

    try:
        reply = await device.supervisor.driver.selftest()
    except tuple(_NOT_TESTED) as problem:
        await told(NO_ANSWER, str(problem))
        raise Problem(409, _NOT_TESTED[type(problem)], str(problem)) from None
    found = reply.code.name.lower()
    await told(found, "; ".join(filter(None, (str(reply.arg or ""), _meanwhile(served)))))
    return Tested(device.fitted.device, serial, technician.name, found, reply.arg)


def _meanwhile(served: ServedTable) -> str:
    """What the table has done while the device took its time."""
    return "" if served.table.shut else MEANWHILE
