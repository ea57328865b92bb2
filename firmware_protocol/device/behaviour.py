"""The protocol rules that a firmware maker can get wrong, one method each.

`Behaviour` is the correct firmware. A subclass overrides the rules that it breaks (hil.faults), so
that no other code of the device depends on whether it is faulty.
"""

from __future__ import annotations

from typing import Final

from firmware_protocol.device import ring
from firmware_protocol.device.identity import Draw
from firmware_protocol.messages.codec import Event, Reply
from firmware_protocol.messages.common import Resume
from firmware_protocol.messages.enums import DeviceClass, Verdict
from firmware_protocol.messages.errors import NoCommonVersion
from firmware_protocol.messages.frames import Hello
from firmware_protocol.messages.limits import (
    DEAD_MS,
    HEARTBEAT_MS,
    PENDING_LIFE_MS,
    RESEND_FIRST_MS,
    RESEND_MOST_MS,
    SCHEMA_HASHES,
)
from firmware_protocol.tablelink import plaintext
from firmware_protocol.tablelink.framing import VERSIONS, Deframer, Heard
from firmware_protocol.tablelink.hello import common_version
from firmware_protocol.tablelink.plaintext import Plaintext
from firmware_protocol.tablelink.session_cipher import Opener, Sealer

MAX_WRONG_CODES: Final = 5
"""Label codes that are tried before pairing is locked."""
_MS: Final = 1000
CommandKey = tuple[int, int]
"""What names a command: host boot and command id."""


class Behaviour:
    def started(self) -> None:
        """The firmware has started: forget what was in memory."""

    def broken(self, name: str) -> bool:
        """Whether this break is switched on, for breaks that are part of a mechanism."""
        return False

    # --- frames and HELLO ---

    def hear(self, deframer: Deframer, data: bytes, now: int) -> list[Heard]:
        return deframer.feed(data)

    def read_hello(self, payload: bytes) -> Hello:
        return Hello.decode(payload)

    def hello_random(self, draw: Draw) -> bytes:
        return draw(8)

    def common_version(self, hello: Hello) -> int | None:
        """The version that a session after this HELLO has; None if there can be none."""
        try:
            return common_version(hello, VERSIONS[0], VERSIONS[-1])
        except NoCommonVersion:
            return None

    def schema(self, version: int) -> bytes:
        return SCHEMA_HASHES[version]

    # --- handshake and session ---

    def unopened_hs1(self, draw: Draw) -> bytes | None:
        """What is sent back for an HS1 that does not open."""
        return None

    def greets(self, greeted: int, session: int) -> bool:
        """Whether a frame of this session belongs to the HELLO of that one."""
        return greeted == session

    def greeting_serves_again(self) -> bool:
        return False

    def hello_ends_session(self) -> bool:
        return False

    def hs1_ends_session(self) -> bool:
        return False

    def former_goes_on(self) -> bool:
        """Whether a session lives on beside the one that took over from it."""
        return False

    def pending_ends(self, began: int) -> int | None:
        return began + PENDING_LIFE_MS * _MS

    def opener(self, key: bytes, session: int, version: int) -> Opener:
        return Opener(key, session, version)

    def sealer(self, key: bytes, session: int, version: int) -> Sealer:
        return Sealer(key, session, version)

    def session_ends(self, heard: int) -> int | None:
        """When a session is over whose last valid DATA came then."""
        return heard + DEAD_MS * _MS

    def beat_after_sending(self, beat: int, now: int) -> int:
        """When a heartbeat goes out that is due at `beat`, now that something was sent."""
        return beat

    def next_beat(self, began: int, now: int) -> int:
        """The first moment for a heartbeat after now."""
        beat = HEARTBEAT_MS * _MS
        return began + ((now - began) // beat + 1) * beat

    def malformed_is_damage(self) -> bool:
        """Whether a frame that came whole, and whose contents are malformed, counts as damaged."""
        return False

    def refusal_counts(self, reply: Reply) -> bool:
        """Whether this reply means that one more frame was ignored."""
        return False

    def counts(self, damaged: int, refused: int) -> tuple[int, int]:
        return damaged, refused

    def clock(self, elapsed: int) -> int:
        return elapsed

    # --- pairing ---

    def pairing_is_on(self, service: bool) -> bool:
        return service

    def locked_out(self, wrong_codes: int) -> bool:
        return wrong_codes >= MAX_WRONG_CODES

    def records_wrong_code(self) -> bool:
        return True

    def pairing_ends_session(self) -> bool:
        return True

    def ends_session_first(self) -> bool:
        """Whether the session is over before PAIRED is recorded."""
        return True

    # --- records ---

    def chains_to(self, chain: bytes) -> bytes:
        """What the chain of a new record is made from, after one with this chain."""
        return chain

    def follows(self, record: bytes, previous: bytes) -> bool:
        return ring.follows(record, previous)

    def sends_before_commit(self) -> bool:
        return False

    def has_room(self, room: bool) -> bool:
        return room

    def is_full(self, full: bool) -> bool:
        return full

    def alert_of(self, event: Event) -> int | None:
        """The arg of an ALERT that goes out when this is recorded."""
        return None

    # --- sending ---

    def stops(self, verdict: Verdict) -> bool:
        """Whether a RESUME that was answered so stops what an earlier one began."""
        return True

    def verdict(self, verdict: Verdict, resume: Resume) -> Verdict:
        return verdict

    def sends_unasked(self) -> bool:
        """Whether records flow before RESUME was answered."""
        return False

    def first_sent(self, wanted: int, sent_before: int) -> int:
        """The first record after a RESUME that wants this one. `sent_before`: the last one sent in
        any session of this start."""
        return wanted

    def resend_wait(self, times: int) -> int | None:
        """How long to wait for an acknowledgement after records were sent so often again."""
        return min(RESEND_FIRST_MS * _MS << min(times, 8), RESEND_MOST_MS * _MS)

    def window(self, granted: int) -> int:
        return granted

    def last_of(self, sent: int, limit: int) -> int:
        """The last record that may be sent again."""
        return min(sent, limit)

    def takes_window(self, *, older: bool) -> bool:
        """Whether an acknowledgement sets the window; `older` when a higher seq came before."""
        return True

    def heeds_nak(self) -> bool:
        return True

    def nak_is_ours(self, ours: bool) -> bool:
        """Whether an EVT_NAK is taken that has our epoch, or another one."""
        return ours

    def wait_after_nak(self, oldest: int) -> tuple[int, ...]:
        """The records whose wait begins anew after an EVT_NAK, besides those that go out again."""
        return (oldest,)

    def sent_is_received(self) -> bool:
        return False

    def sent_after_ack(self, acked: int) -> tuple[int, ...]:
        """Acknowledged records that are sent all the same."""
        return ()

    # --- commands ---

    def readable(self, data: bytes) -> bytes:
        """A plaintext that has just opened, before it is looked at."""
        return data

    def decode(self, data: bytes, device_class: DeviceClass) -> Plaintext:
        return plaintext.decode(data, sender="host", device_class=device_class)

    def answers_unknown(self) -> bool:
        return True

    def ignores_under_way(self) -> bool:
        """Whether a repeat of a command that is being carried out waits for its reply."""
        return True

    def remembers(self) -> bool:
        return True

    def memory_key(self, key: CommandKey) -> CommandKey:
        return key

    def refuses_stale(self) -> bool:
        return True

    def may_be_stale(self, *, idempotent: bool) -> bool:
        return not idempotent

    def needs_resume(self) -> bool:
        return True

    def reply_after(self, reply: Reply, *, first: bool) -> int | None:
        """How long the reply is held back; None: for ever. `first`: of its kind in the session."""
        return 0
