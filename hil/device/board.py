"""What all parts of a device's core are soldered to, from one start to the next."""

from __future__ import annotations

from msgspec import Struct

from hil.device.identity import Draw, Identity
from hil.device.kept import Kept
from hil.device.ways import Ways
from hil.device.wire import Wire


class Board(Struct, frozen=True):
    identity: Identity
    kept: Kept
    wire: Wire
    ways: Ways
    draw: Draw
