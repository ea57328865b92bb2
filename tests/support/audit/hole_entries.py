"""A dealt hole card, its commitment, and a decision that takes it."""

import base64
from typing import Final

from controller.audit.format.records import DeviceCursor
from controller.games import SHOE
from controller.procedure.model import effects
from controller.procedure.model.events import HoleDealt
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State

CURSOR: Final = DeviceCursor("SIM-SHOE", 1, 7, "00112233445566ff", 1, 2_800_000)
COMMITMENT: Final = "ab" * 32
SEALED: Final = base64.b64encode(bytes(104)).decode()
DEALT: Final = HoleDealt(SHOE, COMMITMENT)
TAKEN: Final = Decision(("hole_card",), State(round=4), (effects.ShoeLock(True),))
