"""The device's end of the cable: frames in, bytes out, and what was wrong is counted."""

from __future__ import annotations

from firmware_protocol.device.behaviour import Ways
from firmware_protocol.messages.enums import AlertCode, FrameKind
from firmware_protocol.messages.frames import Alert
from firmware_protocol.messages.limits import ALERT_GAP_MS
from firmware_protocol.tablelink.framing import Damage, Deframer, Frame
from firmware_protocol.tablelink.hello import NO_SESSION


class Wire:
    def __init__(self, ways: Ways) -> None:
        self.damaged = 0
        """Damaged frames since the start."""
        self.refused = 0
        """Whole frames that were ignored, and malformed plaintexts, since the start."""
        self._ways = ways
        self._deframer = Deframer()
        self._out = bytearray()
        self._alert_from: int | None = None

    def malformed(self) -> None:
        """A frame came whole, and what is in it is malformed."""
        if self._ways.malformed_is_damage():
            self.damaged += 1
        else:
            self.refused += 1

    def hear(self, data: bytes, now: int) -> list[Frame]:
        frames = []
        for heard in self._ways.hear(self._deframer, data, now):
            if isinstance(heard, Damage):
                self.damaged += 1
            else:
                frames.append(heard)
        return frames

    def send(self, frame: Frame) -> None:
        self._out += frame.encode()

    def alert(self, code: AlertCode, now: int, arg: int = 0) -> None:
        """A hint in clear; dropped when one went out less than ALERT_GAP before."""
        if self._alert_from is None or now >= self._alert_from:
            self._alert_from = now + 1000 * ALERT_GAP_MS
            self.send(Frame(FrameKind.ALERT, NO_SESSION, 0, Alert(code, arg).encode()))

    def take(self) -> bytes:
        out = bytes(self._out)
        self._out.clear()
        return out
