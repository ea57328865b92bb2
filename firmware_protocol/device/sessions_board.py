"""What all parts of a device's core are soldered to, from one start to the next."""

from __future__ import annotations

from msgspec import Struct

from firmware_protocol.device.behaviour import Ways
from firmware_protocol.device.identity import Draw, Identity
from firmware_protocol.device.sessions_wire import Wire
from firmware_protocol.device.storage_kept import Kept


class Board(Struct, frozen=True):
    identity: Identity
    kept: Kept
    wire: Wire
    ways: Ways
    draw: Draw
