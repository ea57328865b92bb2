"""Constants and times of the protocol. Generated from messages.toml by firmware_protocol.generate.
Not to be edited."""

from typing import Final

VERSION: Final = 1
"""The newest version of the protocol."""
SCHEMA_HASHES: Final = {
    1: bytes.fromhex("4985264b9e7ce671"),
}
"""By version; identifies the catalogue that a side was built from."""
MAX_DECODED: Final = 254
"""Bytes of the longest frame before COBS."""
MAX_ENCODED: Final = 255
"""Bytes of the longest frame after COBS, without its 0x00."""
HEADER_SIZE: Final = 8
"""Bytes of a frame's header, which are the associated data of DATA."""
CRC_SIZE: Final = 4
"""Bytes of the CRC-32C that ends a frame."""
TAG_SIZE: Final = 16
"""Bytes of the Poly1305 tag that ends a ciphertext."""
MAX_FRAMES: Final = 0x80000000
"""A session's counters stay below this, in each direction."""
REKEY_FRAMES: Final = 0x7FFF0000
"""The host starts a new handshake when a counter reaches this."""
WINDOW: Final = 8
"""Maximum window: records that are sent without an acknowledgement."""
RESULTS_KEPT: Final = 8
"""Replies to commands that a device caches."""
RING_LEAST: Final = 128
"""Minimum capacity of a device's ring in records."""
RING_SPARE: Final = 8
"""Last free slots of the ring, reserved for POWER, TAMPER, FAULT, LOG_PRESSURE and PAIRED."""
REREAD_DEPTH: Final = 64
"""Last records that a shoe can return, acknowledged or not."""
PRESSURE_PERCENT: Final = 75
"""LOG_PRESSURE when this share of the ring is not acknowledged."""
CARDS: Final = 52
"""Cards are 0 to 51: suit x 13 + rank; suits clubs, diamonds, hearts, spades; ranks A 2 .. 10 J Q
K."""
CARD_CUT: Final = 64
"""The cut card."""
CARD_UNREAD: Final = 254
"""No card was recognised."""
MAX_SEAT: Final = 15
"""Seats are 1 to this."""
HELLO_WAIT_MS: Final = 500
"""Host: timeout for HELLO_RSP; retry with a new session id."""
HANDSHAKE_WAIT_MS: Final = 10000
"""Host: timeout for HS2 and for the first valid DATA; retry with HELLO."""
PAIR_WAIT_MS: Final = 15000
"""Host: timeout for PAIR2 and for PAIR_DONE; the pairing fails."""
PENDING_LIFE_MS: Final = 20000
"""Device: timeout of a handshake that has not become a session."""
HEARTBEAT_MS: Final = 250
"""Both: a heartbeat at each multiple of this since the session started, independent of other
frames."""
BEAT_EARLY_MS: Final = 125
"""Host: a heartbeat may be sent so much before its time, so that one timer serves all links."""
DEAD_MS: Final = 1000
"""Both: timeout of a session without valid DATA."""
RESEND_FIRST_MS: Final = 150
"""Device: initial timeout for an acknowledgement; records are retried after it."""
RESEND_MOST_MS: Final = 1000
"""Device: maximum timeout, which doubles with each retry."""
NAK_GAP_MS: Final = 100
"""Host: minimum interval between two EVT_NAK with the same `next`."""
COMMAND_REPEAT_MS: Final = 200
"""Host: retry interval of an idempotent command without a reply, until its deadline."""
TIME_EVERY_MS: Final = 10000
"""Host: maximum interval between two TIME_ASK."""
SESSION_LIFE_S: Final = 43200
"""Host: maximum age of a session, which a new handshake then replaces."""
ALERT_GAP_MS: Final = 1000
"""Device: minimum interval between two ALERT."""
DEBOUNCE_MS: Final = 20
"""Station: a contact must be stable for so long before an edge counts."""
STUCK_AFTER_MS: Final = 10000
"""Station: a button that is pressed for so long is stuck."""
