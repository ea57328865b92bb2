"""Cards and faults for a table on which something fails."""

from controller.audit.errors import DiskFull
from drivers.devices import LinkState
from tests.support.table.simulated.serving import Served

ROOMLESS = DiskFull("here", "no room", "free some")
CARDS = ("2c", "6c", "8d", "9h", "5d", "Th", "7s", "Tc", "3c", "9s", "Td")


def is_ready(one: Served, serial: str) -> bool:
    return one.table.supervisor(serial).state is LinkState.READY
