"""The protocol rules that a firmware maker can get wrong, one method each.

`Behaviour` is the correct firmware. A subclass overrides the rules that it breaks (hil.faults), so
that no other code of the device depends on whether it is faulty.
"""

from __future__ import annotations

from typing import Final

from firmware_protocol.device import ring
from firmware_protocol.device.folder import RandomBytes
from firmware_protocol.messages import (
    DEAD_MS,
    HEARTBEAT_MS,
    PENDING_LIFE_MS,
    RESEND_FIRST_MS,
    RESEND_MOST_MS,
    SCHEMA_HASHES,
    Capabilities,
    DeviceClass,
    Event,
    Hello,
    NoCommonVersion,
    Reply,
    Resume,
    Verdict,
)
from firmware_protocol.tablelink import (
    VERSIONS,
    Deframer,
    FrameOrDamage,
    Opener,
    Plaintext,
    Sealer,
    common_version,
    decode_plaintext,
)

MAX_WRONG_CODES: Final = 5
"""Wrong label codes after which pairing is locked."""
_MS: Final = 1000
CommandKey = tuple[int, int]
"""Identifies a command: host boot and command id."""


class Behaviour:
    """The correct firmware."""

    def started(self) -> None:
        """Called at each start of the firmware; a subclass resets its state."""

    def broken(self, name: str) -> bool:
        """Whether this break is switched on, for breaks that are part of a mechanism."""
        return False

    # --- frames and HELLO ---

    def deframe(self, deframer: Deframer, data: bytes, now: int) -> list[FrameOrDamage]:
        return deframer.feed(data)

    def read_hello(self, payload: bytes) -> Hello:
        return Hello.decode(payload)

    def hello_random(self, draw: RandomBytes) -> bytes:
        return draw(8)

    def common_version(self, hello: Hello) -> int | None:
        """The protocol version for a session after this HELLO; None if no version is common."""
        try:
            return common_version(hello, VERSIONS[0], VERSIONS[-1])
        except NoCommonVersion:
            return None

    def capabilities(self, own: Capabilities, device_class: DeviceClass) -> Capabilities:
        return own

    def schema(self, version: int) -> bytes:
        return SCHEMA_HASHES[version]

    # --- handshake and session ---

    def unopened_hs1(self, draw: RandomBytes) -> bytes | None:
        """Payload of the HS2 in response to an HS1 that does not open; None: no response."""
        return None

    def continues_hello(self, hello: int, session: int) -> bool:
        """Whether a frame with id `session` continues the HELLO with id `hello`."""
        return hello == session

    def hello_serves_again(self) -> bool:
        return False

    def hello_ends_session(self) -> bool:
        return False

    def hs1_ends_session(self) -> bool:
        return False

    def keeps_former_session(self) -> bool:
        """Whether a session continues beside the one that replaced it."""
        return False

    def pending_ends(self, created: int) -> int | None:
        return created + PENDING_LIFE_MS * _MS

    def opener(self, key: bytes, session: int, version: int) -> Opener:
        return Opener(key, session, version)

    def sealer(self, key: bytes, session: int, version: int) -> Sealer:
        return Sealer(key, session, version)

    def session_ends(self, received: int) -> int | None:
        """When a session times out whose last valid DATA arrived at `received`."""
        return received + DEAD_MS * _MS

    def beat_after_sending(self, beat: int, now: int) -> int:
        """When the heartbeat due at `beat` is sent, after another frame was sent."""
        return beat

    def next_beat(self, began: int, now: int) -> int:
        """When the first heartbeat after `now` is due."""
        beat = HEARTBEAT_MS * _MS
        return began + ((now - began) // beat + 1) * beat

    def malformed_is_damage(self) -> bool:
        """Whether an undamaged frame with malformed content counts as damaged."""
        return False

    def refusal_counts(self, reply: Reply) -> bool:
        """Whether this reply counts as an ignored frame."""
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
        """Whether the session ends before PAIRED is recorded."""
        return True

    # --- records ---

    def chains_to(self, chain: bytes) -> bytes:
        """The input of the next record's chain, after a record with this chain."""
        return chain

    def follows(self, record: bytes, previous: bytes) -> bool:
        return ring.follows(record, previous)

    def sends_before_commit(self) -> bool:
        return False

    def acked_at_start(self, acked: ring.AckedPosition) -> ring.AckedPosition:
        """The acknowledged position after a start, from the stored one."""
        return acked

    def has_room(self, room: bool) -> bool:
        return room

    def is_full(self, full: bool) -> bool:
        return full

    def alert_of(self, event: Event) -> int | None:
        """The arg of an ALERT that is sent when this event is recorded; None: no ALERT."""
        return None

    # --- sending ---

    def stops(self, verdict: Verdict) -> bool:
        """Whether a RESUME with this verdict stops the flow of records."""
        return True

    def verdict(self, verdict: Verdict, resume: Resume) -> Verdict:
        return verdict

    def resumes_at(self, resume: Resume, acked: int) -> int:
        """The acknowledged position after a RESUME that is answered OK."""
        return max(resume.next, 1) - 1

    def acked_reply(self, acked: ring.AckedPosition) -> ring.AckedPosition:
        """The acknowledged position that RESUME_REPLY returns."""
        return acked

    def takes_beat(self, since_last: int) -> bool:
        """Whether a HOST_BEAT so many microseconds after the last one is handled."""
        return True

    def sends_unasked(self) -> bool:
        """Whether records are sent before RESUME was answered."""
        return False

    def first_sent(self, wanted: int, sent_before: int) -> int:
        """The first record to send after a RESUME that requests `wanted`. `sent_before` is the last
        one sent in any session since the start."""
        return wanted

    def resend_wait(self, times: int) -> int | None:
        """Timeout in microseconds for an acknowledgement, after `times` retries; None: no retry."""
        return min(RESEND_FIRST_MS * _MS << min(times, 8), RESEND_MOST_MS * _MS)

    def window(self, granted: int) -> int:
        return granted

    def last_of(self, sent: int, limit: int) -> int:
        """The last record that may be sent again."""
        return min(sent, limit)

    def takes_window(self, *, older: bool) -> bool:
        """Whether an acknowledgement sets the window. `older`: a higher seq was acknowledged."""
        return True

    def heeds_nak(self) -> bool:
        return True

    def nak_is_ours(self, ours: bool) -> bool:
        """Whether an EVT_NAK is accepted; `ours`: it has the epoch of the ring."""
        return ours

    def wait_after_nak(self, oldest: int) -> tuple[int, ...]:
        """Records whose timeout restarts after an EVT_NAK, besides those that are sent again."""
        return (oldest,)

    def sent_is_received(self) -> bool:
        return False

    def sent_after_ack(self, acked: int) -> tuple[int, ...]:
        """Records that are sent again although they are acknowledged."""
        return ()

    # --- commands ---

    def readable(self, data: bytes) -> bytes:
        """The plaintext of a frame, before it is decoded."""
        return data

    def decode(self, data: bytes, device_class: DeviceClass) -> Plaintext:
        return decode_plaintext(data, sender="host", device_class=device_class)

    def answers_unknown(self) -> bool:
        return True

    def ignores_repeat_in_progress(self) -> bool:
        """Whether a repeat of a command in progress waits for its reply."""
        return True

    def caches_replies(self) -> bool:
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
        """Delay of the reply in microseconds; None: it is not sent. `first`: the session had no
        reply of this kind."""
        return 0
