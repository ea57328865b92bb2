"""Enums and flags of the wire. Generated from messages.toml by firmware_protocol.generate. Not to
be edited."""

from enum import IntEnum, IntFlag


class FrameKind(IntEnum):
    """Low half of a frame's first byte."""

    HELLO = 0
    """Host introduces itself, in clear."""
    HELLO_RSP = 1
    """Device introduces itself, in clear."""
    HS1 = 2
    """First message of the session handshake."""
    HS2 = 3
    """Second message of the session handshake."""
    PAIR1 = 4
    """First message of pairing."""
    PAIR2 = 5
    """Second message of pairing."""
    PAIR3 = 6
    """Third message of pairing."""
    DATA = 8
    """A sealed plaintext of a session."""
    ALERT = 15
    """A hint in clear: displayed, never acted on."""


class PlaintextType(IntEnum):
    """First byte of a DATA frame's plaintext."""

    EVENT = 1
    """A record of the device's ring."""
    COMMAND = 2
    """A request of the host."""
    REPLY = 3
    """The response to a command."""
    CONTROL = 4
    """Acknowledgements, heartbeats, time."""


class DeviceClass(IntEnum):
    """What a device is."""

    ANY = 0
    """In HELLO only: the host accepts any class."""
    SHOE = 1
    """Card-reading shoe."""
    SHUFFLER = 2
    """Batch shuffler."""
    STATION = 3
    """Buttons and lamps of one seat or several."""


class FrameLimit(IntEnum):
    """Longest decoded frame that a side takes."""

    MEDIUM = 148
    """Plaintexts of 56 and 120 bytes."""
    LARGE = 254
    """Plaintexts of 226 bytes too."""


class AlertCode(IntEnum):
    """What an ALERT hints at."""

    NO_SESSION = 1
    """DATA arrived for a session that the device does not have."""
    HANDSHAKE_REFUSED = 2
    """HS1 was not authentic: another host, or a changed HELLO."""
    NOT_PAIRED = 3
    """HS1 arrived, but no host is paired yet."""
    PAIRING_OFF = 4
    """PAIR1 or PAIR3 arrived while the service switch is off, or after five wrong codes."""
    PAIRING_REFUSED = 5
    """PAIR3 was not authentic: most likely a wrong label code."""
    NO_VERSION = 6
    """HS1 or PAIR1 arrived in a version that is not the highest common one."""
    DEFECT = 7
    """The device cannot work; arg is the fault code."""


class PowerCause(IntEnum):
    """Why the device started."""

    POWER_ON = 1
    """Power was switched on."""
    BROWN_OUT = 2
    """The supply dipped."""
    WATCHDOG = 3
    """The watchdog bit."""
    RESET_PIN = 4
    """The reset line or button."""
    SOFTWARE = 5
    """The firmware restarted itself."""
    POWER_LOSS = 6
    """The start found an incomplete record: power was lost during its write, and this event
    replaces it."""
    OTHER = 15
    """Any other, or unknown."""


class TamperSource(IntEnum):
    """What was tampered with."""

    CASE = 1
    """The housing."""
    SEAL = 2
    """A seal."""
    SERVICE_SWITCH = 3
    """The service switch, which allows pairing."""
    READER = 4
    """The reader is covered, blinded or moved."""
    MAGNET = 5
    """A magnetic field."""
    DEBUG_PORT = 6
    """A debugger."""
    KEYS = 7
    """The key store was touched or damaged."""
    CABLE = 8
    """An internal cable."""
    PAIRING_CODE = 9
    """Pairing was tried with a wrong label code."""


class FaultCode(IntEnum):
    """What does not work."""

    NONE = 0
    """Nothing is wrong; in a SELFTEST_REPLY only."""
    READER = 1
    """Card reader."""
    MOTOR = 2
    """Motor or its driver; arg: which."""
    SENSOR = 3
    """A sensor; arg: which."""
    GATE = 4
    """The gate or lock does not obey."""
    LAMPS = 5
    """Lamp driver."""
    RING = 6
    """The ring cannot be written, or a record in it is damaged; arg: its seq."""
    CLOCK = 7
    """Clock."""
    RANDOM = 8
    """Random number generator."""
    TEMPERATURE = 9
    """Too hot or too cold; arg: kelvin."""
    SUPPLY = 10
    """Supply voltage; arg: millivolts."""
    MEMORY = 11
    """Memory check."""
    ABORTED = 12
    """A shuffle was ended by ABORT; arg: its shuffle number."""
    READER_DIRTY = 13
    """The card reader works but is dirty: its confidence drops."""
    MAKER = 255
    """Maker's own; arg: the maker's number."""


class Refusal(IntEnum):
    """Why a command is rejected."""

    UNKNOWN = 1
    """No command of this class in this version."""
    MALFORMED = 2
    """Wrong length, padding or flags, or a field out of its range; arg: offset of the first such
    field in the body, 0 for anything else."""
    NOT_NOW = 3
    """The device's state does not allow it; arg: the state flags."""
    BUSY = 4
    """A former command is still in progress."""
    STALE = 5
    """The command id is older than those in the cache of the device."""
    NOT_RESUMED = 6
    """RESUME has not been answered with OK in this session."""
    NOT_KEPT = 7
    """REREAD: no such record, or no longer."""
    UNSUPPORTED = 8
    """This model cannot do it."""
    FAILED = 9
    """It was tried and did not work; arg: fault code."""
    EMPTY = 10
    """START: no cards are inside."""


class ResumeMode(IntEnum):
    """How the host continues a ring."""

    CHECK = 0
    """Only if the device's ring continues the host's record."""
    ADOPT = 1
    """Two people have accepted the ring as it is."""


class Verdict(IntEnum):
    """What a RESUME amounts to; a higher value is worse."""

    OK = 0
    """The ring continues the host's record; events flow from `next`."""
    GAP = 1
    """Records that the host has not got are no longer in the ring."""
    BEHIND = 2
    """The host's record ends before records that were acknowledged: an older copy of it."""
    FORK = 3
    """Ring and host disagree about a record: rolled back, or not the same device."""
    NEW_EPOCH = 4
    """Another ring than the one that the host knows."""


class NakWhy(IntEnum):
    """Why the host wants records again."""

    GAP = 1
    """A later record arrived first."""
    AGAIN = 2
    """The host could not keep what it was sent."""


class LockState(IntEnum):
    """State of the shoe's gate."""

    OPEN = 0
    """Cards may be drawn."""
    LOCKED = 1
    """No card can be drawn."""


class ReadWhy(IntEnum):
    """Why a card was not read."""

    UNREADABLE = 1
    """An index was seen, but not recognised."""
    NO_INDEX = 2
    """No index was seen."""
    TOO_FAST = 3
    """The card was pulled too fast."""
    FOREIGN = 4
    """Not a card of the expected kind."""
    READER = 5
    """The reader failed."""
    DOUBLE = 6
    """Two cards were pulled together and neither could be read."""


class DeckKind(IntEnum):
    """Which cards one deck has."""

    UNKNOWN = 0
    """Not known; in LOADED only."""
    FULL_52 = 1
    """52 cards."""
    SPANISH_48 = 2
    """48 cards: 52 without the four tens."""


class JamCode(IntEnum):
    """Where cards are stuck."""

    CLEARED = 0
    """The jam is over."""
    STUCK = 1
    """A card is stuck on its way."""
    DOUBLE_FEED = 2
    """Two cards were taken at once."""
    NO_FEED = 3
    """No card was taken though there are some."""
    EXIT_BLOCKED = 4
    """The exit is blocked."""
    MOTOR = 5
    """A motor stalled."""
    LEFT_INSIDE = 6
    """Cards were left inside."""
    OTHER = 255
    """Any other."""


class WhichButton(IntEnum):
    """Buttons of a seat; also the bit number in a mask of buttons."""

    HIT = 0
    """Draw a card."""
    STAND = 1
    """Draw no more."""
    DOUBLE = 2
    """Double down."""
    SPLIT = 3
    """Split."""
    SURRENDER = 4
    """Surrender."""
    YES = 5
    """Take what is offered: insurance, even money, pay."""
    NO = 6
    """Decline what is offered."""
    BET = 7
    """Place the seat's standing wager."""
    CALL = 8
    """Call the floor."""


class Edge(IntEnum):
    """Which way a button went."""

    DOWN = 1
    """Pressed."""
    UP = 2
    """Released."""


class LampPattern(IntEnum):
    """What a seat's lamps do."""

    OFF = 0
    """Dark, which is the safe state."""
    STEADY = 1
    """Lit."""
    BLINK = 2
    """Half of the period lit, half dark."""
    PULSE = 3
    """Swells and fades once a period."""
    CHASE = 4
    """One lamp after the other, round once a period."""


class BuzzPattern(IntEnum):
    """What the buzzer plays."""

    OFF = 0
    """Ends what plays."""
    TICK = 1
    """One short tone."""
    TURN = 2
    """Two short tones: it is this seat's turn."""
    REFUSED = 3
    """One low tone: the press did not count."""
    ALARM = 4
    """Three long tones."""


class Capabilities(IntFlag):
    """What a device can do."""

    GATE = 0x1
    """Shoe: holds a card back until its record is committed."""
    LOCK = 0x2
    """Shoe: has a lock."""
    BACKS = 0x4
    """Shoe: recognises card backs."""
    ORIENTATION = 0x8
    """Shoe: sees reversed cards."""
    DECK_CHECK = 0x100
    """Shuffler: recognises cards, so that missing and extra ones are counted."""
    EJECT = 0x200
    """Shuffler: can eject."""
    CARD_SENSOR = 0x400
    """Shuffler: notices whether cards are inside."""
    COLOUR = 0x10000
    """Station: coloured lamps."""
    BUZZER = 0x20000
    """Station: has a buzzer."""
    LAMP_CHECK = 0x40000
    """Station: notices a broken lamp."""
    GATEWAY = 0x1000000
    """Any class: an adapter that speaks for a device of another protocol behind it."""


class DeviceState(IntFlag):
    """How a device is."""

    PAIRED = 0x1
    """A host is paired."""
    SERVICE = 0x2
    """The service switch is on."""
    LOCKED = 0x4
    """The shoe is locked, the shuffler refuses to start, the station is disarmed."""
    OPEN = 0x8
    """Cover or door is open."""
    JAMMED = 0x10
    """Cards are stuck."""
    FULL = 0x20
    """The ring is full up to its spare slots."""
    FAULTY = 0x40
    """A fault has been reported and is not over."""
    RUNNING = 0x80
    """The shuffler shuffles; no other class sets it."""
    CARDS = 0x100
    """Cards are in the shuffler, with CARD_SENSOR; no other class sets it."""


class CardFlags(IntFlag):
    """What was odd about a card."""

    DUPLICATE = 0x1
    """The shoe saw this card more often than its decks hold it."""
    DOUBLE_FEED = 0x2
    """Two cards came out together, and this is one of them."""
    REVERSED = 0x4
    """The card lay the wrong way round."""
    CAME_FIRST = 0x8
    """Of the two, this one left the shoe first; with DOUBLE_FEED only."""
    CAME_SECOND = 0x10
    """Of the two, this one left the shoe second; with DOUBLE_FEED only."""


class ButtonMask(IntFlag):
    """A set of buttons."""

    HIT = 0x1
    STAND = 0x2
    DOUBLE = 0x4
    SPLIT = 0x8
    SURRENDER = 0x10
    YES = 0x20
    NO = 0x40
    BET = 0x80
    CALL = 0x100
