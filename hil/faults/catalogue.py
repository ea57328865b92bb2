"""Breaks: deliberate defects of a simulated device, each with the items of PROTOCOL.md that fail.

A break is a mistake that a firmware maker could make. They test the conformance run: with a break
on, one of its items fails; without breaks, all items pass.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from firmware_protocol.conformance import Profile


class BreakDefinition(Struct, frozen=True):
    name: str
    items: tuple[str, ...]
    """The first of these fails; the others may fail."""
    text: str
    profiles: tuple[Profile, ...] = ()
    """Empty: any class."""


BREAKS: Final = (
    BreakDefinition("crc-unchecked", ("FR-2",), "the CRC of a frame in clear is not looked at"),
    BreakDefinition(
        "resync-lost", ("FR-3",), "after an overlong frame it hears nothing until restarted"
    ),
    BreakDefinition("frames-timed", ("FR-4",), "a pause of 5 ms inside of a frame ends it"),
    BreakDefinition(
        "hello-random-fixed", ("HE-1", "HS-3"), "HELLO_RSP.random is drawn once a start"
    ),
    BreakDefinition("schema-wrong", ("HE-2",), "HELLO_RSP names another catalogue"),
    BreakDefinition(
        "version-ignored", ("HE-3",), "HS1 is taken after a HELLO without a common version"
    ),
    BreakDefinition(
        "padding-unchecked", ("HE-4", "SE-7"), "bytes that must be zero may be anything"
    ),
    BreakDefinition(
        "hello-unchecked", ("HE-4",), "a HELLO with a field out of its range is answered"
    ),
    BreakDefinition(
        "capabilities-foreign", ("HE-5",), "HELLO_RSP names a capability of another class"
    ),
    BreakDefinition("info-first", ("HS-1",), "the first INFO of a session is not answered"),
    BreakDefinition("stranger-answered", ("HS-2", "HS-4"), "an HS1 that does not open gets an HS2"),
    BreakDefinition(
        "replay-taken", ("HS-3",), "HELLO_RSP.random is fixed, and a second HS1 is answered"
    ),
    BreakDefinition("handshake-id-unchecked", ("HS-4",), "HS1 under another session id is taken"),
    BreakDefinition("hello-ends-session", ("HS-5",), "HELLO ends the running session"),
    BreakDefinition(
        "hs1-ends-session", ("HS-5", "HS-6"), "HS1 that opens ends the running session"
    ),
    BreakDefinition(
        "former-session-kept", ("HS-6",), "the former session goes on beside the new one"
    ),
    BreakDefinition("pending-for-ever", ("HS-7",), "a handshake without DATA is never forgotten"),
    BreakDefinition("pairs-without-switch", ("PA-1",), "pairing works with the service switch off"),
    BreakDefinition("no-lockout", ("PA-2",), "wrong label codes can be tried for ever"),
    BreakDefinition("wrong-code-silent", ("PA-2",), "a wrong label code makes no TAMPER"),
    BreakDefinition("pairing-keeps-session", ("PA-3",), "pairing does not end the running session"),
    BreakDefinition(
        "paired-too-early", ("PA-3",), "PAIRED is recorded before the session has ended"
    ),
    BreakDefinition(
        "counter-unchecked", ("SE-1", "SE-3"), "a frame that was sent twice is taken twice"
    ),
    BreakDefinition("tag-unchecked", ("SE-2",), "the tag of DATA is not looked at"),
    BreakDefinition("counter-jumps", ("SE-4",), "the device's counters skip every second number"),
    BreakDefinition("beat-when-idle", ("SE-5",), "DEVICE_BEAT is put off by whatever else is sent"),
    BreakDefinition(
        "lives-for-ever", ("SE-6",), "the session does not end when the host falls silent"
    ),
    BreakDefinition(
        "counts-nothing", ("SE-8",), "DEVICE_BEAT counts neither damaged nor refused frames"
    ),
    BreakDefinition(
        "malformed-is-damage", ("SE-8",), "a malformed HELLO or plaintext counts as damaged"
    ),
    BreakDefinition(
        "refusals-counted", ("SE-8",), "a command that is answered REFUSED counts as refused"
    ),
    BreakDefinition("early-beats-ignored", ("SE-9",), "a HOST_BEAT before its time is ignored"),
    BreakDefinition("events-before-resume", ("EV-1",), "events come before RESUME was answered"),
    BreakDefinition("chain-wrong", ("EV-2",), "a record's chain leaves out the one before"),
    BreakDefinition("no-backoff", ("EV-3",), "records are sent again each 50 ms"),
    BreakDefinition("never-resends", ("EV-3",), "a lost record never comes again"),
    BreakDefinition(
        "window-ignored", ("EV-4",), "more records are on their way than the window allows"
    ),
    BreakDefinition("repeats-beyond-window", ("EV-4",), "a smaller window does not stop repeats"),
    BreakDefinition("old-acks-ignored", ("EV-4",), "an older acknowledgement sets no window"),
    BreakDefinition("nak-ignored", ("EV-5",), "EVT_NAK changes nothing"),
    BreakDefinition(
        "nak-keeps-wait", ("EV-5",), "after EVT_NAK the oldest comes again by its old wait"
    ),
    BreakDefinition("nak-epoch-unchecked", ("EV-5",), "EVT_NAK of another ring is taken"),
    BreakDefinition("acked-again", ("EV-5",), "an acknowledged record comes again"),
    BreakDefinition(
        "skips-after-loss", ("EV-6", "EV-3"), "what was sent once is taken for received"
    ),
    BreakDefinition(
        "forgets-unacked", ("EV-7",), "a new session begins after what the last one sent"
    ),
    BreakDefinition("sent-before-commit", ("EV-8",), "a record is sent before it is in the ring"),
    BreakDefinition("fork-unnoticed", ("EV-9", "EV-10"), "RESUME is always answered with OK"),
    BreakDefinition(
        "first-resume-counts", ("CO-5", "EV-9"), "after one OK no other RESUME stops anything"
    ),
    BreakDefinition(
        "ring-overwrites", ("EV-11",), "a full ring overwrites what was not acknowledged"
    ),
    BreakDefinition("adopt-refused", ("EV-12",), "RESUME with ADOPT is answered FORK"),
    BreakDefinition(
        "behind-unnoticed", ("EV-13",), "acknowledged records are sent again on request"
    ),
    BreakDefinition("acked-unreported", ("EV-13", "EV-14"), "RESUME_REPLY names no acked_seq"),
    BreakDefinition(
        "adopt-keeps-acked", ("EV-13", "EV-14"), "ADOPT does not lower the acknowledged position"
    ),
    BreakDefinition(
        "acked-forgotten", ("EV-14",), "a start forgets what was acknowledged and its chain"
    ),
    BreakDefinition("results-forgotten", ("CO-1",), "a repeated command is carried out again"),
    BreakDefinition(
        "busy-with-itself", ("CO-1",), "a repeat of a command under way is refused BUSY"
    ),
    BreakDefinition(
        "stale-taken", ("CO-2",), "a command older than those remembered is carried out"
    ),
    BreakDefinition("stale-for-all", ("CO-2",), "idempotent commands are refused STALE too"),
    BreakDefinition("unknown-silent", ("CO-3", "CO-6"), "unknown commands are not answered"),
    BreakDefinition("ranges-unchecked", ("CO-4",), "a field out of its range is taken as it is"),
    BreakDefinition("resume-unneeded", ("CO-5",), "commands are carried out before RESUME"),
    BreakDefinition("late-replies", ("CO-6",), "replies come 700 ms late"),
    BreakDefinition(
        "boot-ignored", ("CO-7",), "command ids are remembered without their host boot"
    ),
    BreakDefinition("clock-fast", ("TI-1",), "the device's clock runs 2 percent fast"),
    BreakDefinition("salt-fixed", ("SH-1",), "every record has the same salt", ("shoe",)),
    BreakDefinition(
        "unread-uncounted", ("SH-2",), "a card that was not read takes no position", ("shoe",)
    ),
    BreakDefinition("reread-rebuilt", ("SH-3",), "REREAD makes the record anew", ("shoe",)),
    BreakDefinition(
        "open-without-host", ("SH-4",), "the shoe stays open when the session ends", ("shoe",)
    ),
    BreakDefinition(
        "gate-early", ("SH-5",), "the gate lets the card go before it is recorded", ("shoe",)
    ),
    BreakDefinition(
        "double-read-first", ("SH-6",), "of two cards the one that was read comes first", ("shoe",)
    ),
    BreakDefinition(
        "double-unflagged", ("SH-6",), "the card under another one has no DOUBLE_FEED", ("shoe",)
    ),
    BreakDefinition("deck-kind-fixed", ("SH-7",), "LOADED names 52 cards a deck", ("shoe",)),
    BreakDefinition("dirty-blinds", ("SH-8",), "a dirty reader reads no card", ("shoe",)),
    BreakDefinition(
        "full-forgets", ("EV-11",), "what happens at a full ring is lost", ("shoe", "shuffler")
    ),
    BreakDefinition(
        "pictures-slow",
        ("TAP-1",),
        "jacks, queens and kings take 3 ms longer; in simulated time",
        ("shoe",),
    ),
    BreakDefinition(
        "card-in-clear", ("TAP-2",), "ALERT's arg names the card that was read", ("shoe",)
    ),
    BreakDefinition("done-twice", ("SF-1",), "DONE comes twice", ("shuffler",)),
    BreakDefinition(
        "starts-twice", ("SF-2",), "START is taken while a shuffle runs", ("shuffler",)
    ),
    BreakDefinition(
        "abort-silent", ("SF-3",), "ABORT ends a shuffle without FAULT ABORTED", ("shuffler",)
    ),
    BreakDefinition(
        "stops-without-host", ("SF-4",), "a shuffle ends with the session", ("shuffler",)
    ),
    BreakDefinition(
        "starts-empty", ("SF-5",), "START is accepted without cards inside", ("shuffler",)
    ),
    BreakDefinition(
        "deck-kind-ignored", ("SF-6",), "a shuffle counts 52 cards a deck", ("shuffler",)
    ),
    BreakDefinition(
        "unarmed-counts", ("ST-1",), "a press counts though it is not armed", ("station",)
    ),
    BreakDefinition("bounces", ("ST-2",), "each bounce of a contact is a press", ("station",)),
    BreakDefinition("ttl-ignored", ("ST-3",), "ARM lasts for ever", ("station",)),
    BreakDefinition("stuck-counts", ("ST-4",), "a stuck button makes no STUCK", ("station",)),
    BreakDefinition(
        "lease-ignored", ("ST-5",), "lamps stay lit when their lease is over", ("station",)
    ),
)

BY_NAME: Final = {broken.name: broken for broken in BREAKS}
