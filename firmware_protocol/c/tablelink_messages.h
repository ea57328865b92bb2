/* TableLink/1. Generated from messages.toml by firmware_protocol.generate. Not to be edited. */

#ifndef TABLELINK_MESSAGES_H
#define TABLELINK_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "TableLink is little-endian: on this machine the structs cannot lie over the bytes"
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TL_PACKED __attribute__((packed))
#else
#error "say here how this compiler packs a struct"
#endif

#ifdef __cplusplus
#define TL_ASSERT(condition) static_assert(condition, #condition)
#else
#define TL_ASSERT(condition) _Static_assert(condition, #condition)
#endif

#define TL_VERSION 1u
/* the schema hash of this version, as HELLO and HELLO_RSP carry it */
#define TL_SCHEMA_HASH { 0x49, 0x85, 0x26, 0x4B, 0x9E, 0x7C, 0xE6, 0x71 }
/* bytes of the longest frame before COBS */
#define TL_MAX_DECODED 254u
/* bytes of the longest frame after COBS, without its 0x00 */
#define TL_MAX_ENCODED 255u
/* bytes of a frame's header, which are the associated data of DATA */
#define TL_HEADER_SIZE 8u
/* bytes of the CRC-32C that ends a frame */
#define TL_CRC_SIZE 4u
/* bytes of the Poly1305 tag that ends a ciphertext */
#define TL_TAG_SIZE 16u
/* a session's counters stay below this, in each direction */
#define TL_MAX_FRAMES 0x80000000u
/* the host starts a new handshake when a counter reaches this */
#define TL_REKEY_FRAMES 0x7FFF0000u
/* maximum window: records that are sent without an acknowledgement */
#define TL_WINDOW 8u
/* replies to commands that a device caches */
#define TL_RESULTS_KEPT 8u
/* minimum capacity of a device's ring in records */
#define TL_RING_LEAST 128u
/* last free slots of the ring, reserved for POWER, TAMPER, FAULT, LOG_PRESSURE and PAIRED */
#define TL_RING_SPARE 8u
/* last records that a shoe can return, acknowledged or not */
#define TL_REREAD_DEPTH 64u
/* LOG_PRESSURE when this share of the ring is not acknowledged */
#define TL_PRESSURE_PERCENT 75u
/* cards are 0 to 51: suit x 13 + rank; suits clubs, diamonds, hearts, spades; ranks A 2 .. 10 J
 * Q K */
#define TL_CARDS 52u
/* the cut card */
#define TL_CARD_CUT 64u
/* no card was recognised */
#define TL_CARD_UNREAD 254u
/* seats are 1 to this */
#define TL_MAX_SEAT 15u
/* host: timeout for HELLO_RSP; retry with a new session id */
#define TL_HELLO_WAIT_MS 500u
/* host: timeout for HS2 and for the first valid DATA; retry with HELLO */
#define TL_HANDSHAKE_WAIT_MS 10000u
/* host: timeout for PAIR2 and for PAIR_DONE; the pairing fails */
#define TL_PAIR_WAIT_MS 15000u
/* device: timeout of a handshake that has not become a session */
#define TL_PENDING_LIFE_MS 20000u
/* both: a heartbeat at each multiple of this since the session started, independent of other
 * frames */
#define TL_HEARTBEAT_MS 250u
/* host: a heartbeat may be sent so much before its time, so that one timer serves all links */
#define TL_BEAT_EARLY_MS 125u
/* both: timeout of a session without valid DATA */
#define TL_DEAD_MS 1000u
/* device: initial timeout for an acknowledgement; records are retried after it */
#define TL_RESEND_FIRST_MS 150u
/* device: maximum timeout, which doubles with each retry */
#define TL_RESEND_MOST_MS 1000u
/* host: minimum interval between two EVT_NAK with the same `next` */
#define TL_NAK_GAP_MS 100u
/* host: retry interval of an idempotent command without a reply, until its deadline */
#define TL_COMMAND_REPEAT_MS 200u
/* host: maximum interval between two TIME_ASK */
#define TL_TIME_EVERY_MS 10000u
/* host: maximum age of a session, which a new handshake then replaces */
#define TL_SESSION_LIFE_S 43200u
/* device: minimum interval between two ALERT */
#define TL_ALERT_GAP_MS 1000u
/* station: a contact must be stable for so long before an edge counts */
#define TL_DEBOUNCE_MS 20u
/* station: a button that is pressed for so long is stuck */
#define TL_STUCK_AFTER_MS 10000u

/* Low half of a frame's first byte. u8 */
enum tl_frame_kind {
    /* host introduces itself, in clear */
    TL_FRAME_KIND_HELLO = 0,
    /* device introduces itself, in clear */
    TL_FRAME_KIND_HELLO_RSP = 1,
    /* first message of the session handshake */
    TL_FRAME_KIND_HS1 = 2,
    /* second message of the session handshake */
    TL_FRAME_KIND_HS2 = 3,
    /* first message of pairing */
    TL_FRAME_KIND_PAIR1 = 4,
    /* second message of pairing */
    TL_FRAME_KIND_PAIR2 = 5,
    /* third message of pairing */
    TL_FRAME_KIND_PAIR3 = 6,
    /* a sealed plaintext of a session */
    TL_FRAME_KIND_DATA = 8,
    /* a hint in clear: displayed, never acted on */
    TL_FRAME_KIND_ALERT = 15,
};

/* First byte of a DATA frame's plaintext. u8 */
enum tl_plaintext_type {
    /* a record of the device's ring */
    TL_PLAINTEXT_TYPE_EVENT = 1,
    /* a request of the host */
    TL_PLAINTEXT_TYPE_COMMAND = 2,
    /* the response to a command */
    TL_PLAINTEXT_TYPE_REPLY = 3,
    /* acknowledgements, heartbeats, time */
    TL_PLAINTEXT_TYPE_CONTROL = 4,
};

/* What a device is. u8 */
enum tl_device_class {
    /* in HELLO only: the host accepts any class */
    TL_DEVICE_CLASS_ANY = 0,
    /* card-reading shoe */
    TL_DEVICE_CLASS_SHOE = 1,
    /* batch shuffler */
    TL_DEVICE_CLASS_SHUFFLER = 2,
    /* buttons and lamps of one seat or several */
    TL_DEVICE_CLASS_STATION = 3,
};

/* Longest decoded frame that a side takes. u8 */
enum tl_frame_limit {
    /* plaintexts of 56 and 120 bytes */
    TL_FRAME_LIMIT_MEDIUM = 148,
    /* plaintexts of 226 bytes too */
    TL_FRAME_LIMIT_LARGE = 254,
};

/* What an ALERT hints at. u8 */
enum tl_alert_code {
    /* DATA arrived for a session that the device does not have */
    TL_ALERT_CODE_NO_SESSION = 1,
    /* HS1 was not authentic: another host, or a changed HELLO */
    TL_ALERT_CODE_HANDSHAKE_REFUSED = 2,
    /* HS1 arrived, but no host is paired yet */
    TL_ALERT_CODE_NOT_PAIRED = 3,
    /* PAIR1 or PAIR3 arrived while the service switch is off, or after five wrong codes */
    TL_ALERT_CODE_PAIRING_OFF = 4,
    /* PAIR3 was not authentic: most likely a wrong label code */
    TL_ALERT_CODE_PAIRING_REFUSED = 5,
    /* HS1 or PAIR1 arrived in a version that is not the highest common one */
    TL_ALERT_CODE_NO_VERSION = 6,
    /* the device cannot work; arg is the fault code */
    TL_ALERT_CODE_DEFECT = 7,
};

/* Why the device started. u8 */
enum tl_power_cause {
    /* power was switched on */
    TL_POWER_CAUSE_POWER_ON = 1,
    /* the supply dipped */
    TL_POWER_CAUSE_BROWN_OUT = 2,
    /* the watchdog bit */
    TL_POWER_CAUSE_WATCHDOG = 3,
    /* the reset line or button */
    TL_POWER_CAUSE_RESET_PIN = 4,
    /* the firmware restarted itself */
    TL_POWER_CAUSE_SOFTWARE = 5,
    /* the start found an incomplete record: power was lost during its write, and this event
     * replaces it */
    TL_POWER_CAUSE_POWER_LOSS = 6,
    /* any other, or unknown */
    TL_POWER_CAUSE_OTHER = 15,
};

/* What was tampered with. u8 */
enum tl_tamper_source {
    /* the housing */
    TL_TAMPER_SOURCE_CASE = 1,
    /* a seal */
    TL_TAMPER_SOURCE_SEAL = 2,
    /* the service switch, which allows pairing */
    TL_TAMPER_SOURCE_SERVICE_SWITCH = 3,
    /* the reader is covered, blinded or moved */
    TL_TAMPER_SOURCE_READER = 4,
    /* a magnetic field */
    TL_TAMPER_SOURCE_MAGNET = 5,
    /* a debugger */
    TL_TAMPER_SOURCE_DEBUG_PORT = 6,
    /* the key store was touched or damaged */
    TL_TAMPER_SOURCE_KEYS = 7,
    /* an internal cable */
    TL_TAMPER_SOURCE_CABLE = 8,
    /* pairing was tried with a wrong label code */
    TL_TAMPER_SOURCE_PAIRING_CODE = 9,
};

/* What does not work. u8 */
enum tl_fault_code {
    /* nothing is wrong; in a SELFTEST_REPLY only */
    TL_FAULT_CODE_NONE = 0,
    /* card reader */
    TL_FAULT_CODE_READER = 1,
    /* motor or its driver; arg: which */
    TL_FAULT_CODE_MOTOR = 2,
    /* a sensor; arg: which */
    TL_FAULT_CODE_SENSOR = 3,
    /* the gate or lock does not obey */
    TL_FAULT_CODE_GATE = 4,
    /* lamp driver */
    TL_FAULT_CODE_LAMPS = 5,
    /* the ring cannot be written, or a record in it is damaged; arg: its seq */
    TL_FAULT_CODE_RING = 6,
    /* clock */
    TL_FAULT_CODE_CLOCK = 7,
    /* random number generator */
    TL_FAULT_CODE_RANDOM = 8,
    /* too hot or too cold; arg: kelvin */
    TL_FAULT_CODE_TEMPERATURE = 9,
    /* supply voltage; arg: millivolts */
    TL_FAULT_CODE_SUPPLY = 10,
    /* memory check */
    TL_FAULT_CODE_MEMORY = 11,
    /* a shuffle was ended by ABORT; arg: its shuffle number */
    TL_FAULT_CODE_ABORTED = 12,
    /* the card reader works but is dirty: its confidence drops */
    TL_FAULT_CODE_READER_DIRTY = 13,
    /* maker's own; arg: the maker's number */
    TL_FAULT_CODE_MAKER = 255,
};

/* Why a command is rejected. u8 */
enum tl_refusal {
    /* no command of this class in this version */
    TL_REFUSAL_UNKNOWN = 1,
    /* wrong length, padding or flags, or a field out of its range; arg: offset of the first such
     * field in the body, 0 for anything else */
    TL_REFUSAL_MALFORMED = 2,
    /* the device's state does not allow it; arg: the state flags */
    TL_REFUSAL_NOT_NOW = 3,
    /* a former command is still in progress */
    TL_REFUSAL_BUSY = 4,
    /* the command id is older than those in the cache of the device */
    TL_REFUSAL_STALE = 5,
    /* RESUME has not been answered with OK in this session */
    TL_REFUSAL_NOT_RESUMED = 6,
    /* REREAD: no such record, or no longer */
    TL_REFUSAL_NOT_KEPT = 7,
    /* this model cannot do it */
    TL_REFUSAL_UNSUPPORTED = 8,
    /* it was tried and did not work; arg: fault code */
    TL_REFUSAL_FAILED = 9,
    /* START: no cards are inside */
    TL_REFUSAL_EMPTY = 10,
};

/* How the host continues a ring. u8 */
enum tl_resume_mode {
    /* only if the device's ring continues the host's record */
    TL_RESUME_MODE_CHECK = 0,
    /* two people have accepted the ring as it is */
    TL_RESUME_MODE_ADOPT = 1,
};

/* What a RESUME amounts to; a higher value is worse. u8 */
enum tl_verdict {
    /* the ring continues the host's record; events flow from `next` */
    TL_VERDICT_OK = 0,
    /* records that the host has not got are no longer in the ring */
    TL_VERDICT_GAP = 1,
    /* the host's record ends before records that were acknowledged: an older copy of it */
    TL_VERDICT_BEHIND = 2,
    /* ring and host disagree about a record: rolled back, or not the same device */
    TL_VERDICT_FORK = 3,
    /* another ring than the one that the host knows */
    TL_VERDICT_NEW_EPOCH = 4,
};

/* Why the host wants records again. u8 */
enum tl_nak_why {
    /* a later record arrived first */
    TL_NAK_WHY_GAP = 1,
    /* the host could not keep what it was sent */
    TL_NAK_WHY_AGAIN = 2,
};

/* State of the shoe's gate. u8 */
enum tl_lock_state {
    /* cards may be drawn */
    TL_LOCK_STATE_OPEN = 0,
    /* no card can be drawn */
    TL_LOCK_STATE_LOCKED = 1,
};

/* Why a card was not read. u8 */
enum tl_read_why {
    /* an index was seen, but not recognised */
    TL_READ_WHY_UNREADABLE = 1,
    /* no index was seen */
    TL_READ_WHY_NO_INDEX = 2,
    /* the card was pulled too fast */
    TL_READ_WHY_TOO_FAST = 3,
    /* not a card of the expected kind */
    TL_READ_WHY_FOREIGN = 4,
    /* the reader failed */
    TL_READ_WHY_READER = 5,
    /* two cards were pulled together and neither could be read */
    TL_READ_WHY_DOUBLE = 6,
};

/* Which cards one deck has. u8 */
enum tl_deck_kind {
    /* not known; in LOADED only */
    TL_DECK_KIND_UNKNOWN = 0,
    /* 52 cards */
    TL_DECK_KIND_FULL_52 = 1,
    /* 48 cards: 52 without the four tens */
    TL_DECK_KIND_SPANISH_48 = 2,
};

/* Where cards are stuck. u8 */
enum tl_jam_code {
    /* the jam is over */
    TL_JAM_CODE_CLEARED = 0,
    /* a card is stuck on its way */
    TL_JAM_CODE_STUCK = 1,
    /* two cards were taken at once */
    TL_JAM_CODE_DOUBLE_FEED = 2,
    /* no card was taken though there are some */
    TL_JAM_CODE_NO_FEED = 3,
    /* the exit is blocked */
    TL_JAM_CODE_EXIT_BLOCKED = 4,
    /* a motor stalled */
    TL_JAM_CODE_MOTOR = 5,
    /* cards were left inside */
    TL_JAM_CODE_LEFT_INSIDE = 6,
    /* any other */
    TL_JAM_CODE_OTHER = 255,
};

/* Buttons of a seat; also the bit number in a mask of buttons. u8 */
enum tl_which_button {
    /* draw a card */
    TL_WHICH_BUTTON_HIT = 0,
    /* draw no more */
    TL_WHICH_BUTTON_STAND = 1,
    /* double down */
    TL_WHICH_BUTTON_DOUBLE = 2,
    /* split */
    TL_WHICH_BUTTON_SPLIT = 3,
    /* surrender */
    TL_WHICH_BUTTON_SURRENDER = 4,
    /* take what is offered: insurance, even money, pay */
    TL_WHICH_BUTTON_YES = 5,
    /* decline what is offered */
    TL_WHICH_BUTTON_NO = 6,
    /* place the seat's standing wager */
    TL_WHICH_BUTTON_BET = 7,
    /* call the floor */
    TL_WHICH_BUTTON_CALL = 8,
};

/* Which way a button went. u8 */
enum tl_edge {
    /* pressed */
    TL_EDGE_DOWN = 1,
    /* released */
    TL_EDGE_UP = 2,
};

/* What a seat's lamps do. u8 */
enum tl_lamp_pattern {
    /* dark, which is the safe state */
    TL_LAMP_PATTERN_OFF = 0,
    /* lit */
    TL_LAMP_PATTERN_STEADY = 1,
    /* half of the period lit, half dark */
    TL_LAMP_PATTERN_BLINK = 2,
    /* swells and fades once a period */
    TL_LAMP_PATTERN_PULSE = 3,
    /* one lamp after the other, round once a period */
    TL_LAMP_PATTERN_CHASE = 4,
};

/* What the buzzer plays. u8 */
enum tl_buzz_pattern {
    /* ends what plays */
    TL_BUZZ_PATTERN_OFF = 0,
    /* one short tone */
    TL_BUZZ_PATTERN_TICK = 1,
    /* two short tones: it is this seat's turn */
    TL_BUZZ_PATTERN_TURN = 2,
    /* one low tone: the press did not count */
    TL_BUZZ_PATTERN_REFUSED = 3,
    /* three long tones */
    TL_BUZZ_PATTERN_ALARM = 4,
};

/* What a device can do. u32 */
enum tl_capabilities {
    /* shoe: holds a card back until its record is committed */
    TL_CAPABILITIES_GATE = 0x1,
    /* shoe: has a lock */
    TL_CAPABILITIES_LOCK = 0x2,
    /* shoe: recognises card backs */
    TL_CAPABILITIES_BACKS = 0x4,
    /* shoe: sees reversed cards */
    TL_CAPABILITIES_ORIENTATION = 0x8,
    /* shuffler: recognises cards, so that missing and extra ones are counted */
    TL_CAPABILITIES_DECK_CHECK = 0x100,
    /* shuffler: can eject */
    TL_CAPABILITIES_EJECT = 0x200,
    /* shuffler: notices whether cards are inside */
    TL_CAPABILITIES_CARD_SENSOR = 0x400,
    /* station: coloured lamps */
    TL_CAPABILITIES_COLOUR = 0x10000,
    /* station: has a buzzer */
    TL_CAPABILITIES_BUZZER = 0x20000,
    /* station: notices a broken lamp */
    TL_CAPABILITIES_LAMP_CHECK = 0x40000,
    /* any class: an adapter that speaks for a device of another protocol behind it */
    TL_CAPABILITIES_GATEWAY = 0x1000000,
};

/* How a device is. u16 */
enum tl_device_state {
    /* a host is paired */
    TL_DEVICE_STATE_PAIRED = 0x1,
    /* the service switch is on */
    TL_DEVICE_STATE_SERVICE = 0x2,
    /* the shoe is locked, the shuffler refuses to start, the station is disarmed */
    TL_DEVICE_STATE_LOCKED = 0x4,
    /* cover or door is open */
    TL_DEVICE_STATE_OPEN = 0x8,
    /* cards are stuck */
    TL_DEVICE_STATE_JAMMED = 0x10,
    /* the ring is full up to its spare slots */
    TL_DEVICE_STATE_FULL = 0x20,
    /* a fault has been reported and is not over */
    TL_DEVICE_STATE_FAULTY = 0x40,
    /* the shuffler shuffles; no other class sets it */
    TL_DEVICE_STATE_RUNNING = 0x80,
    /* cards are in the shuffler, with CARD_SENSOR; no other class sets it */
    TL_DEVICE_STATE_CARDS = 0x100,
};

/* What was odd about a card. u8 */
enum tl_card_flags {
    /* the shoe saw this card more often than its decks hold it */
    TL_CARD_FLAGS_DUPLICATE = 0x1,
    /* two cards came out together, and this is one of them */
    TL_CARD_FLAGS_DOUBLE_FEED = 0x2,
    /* the card lay the wrong way round */
    TL_CARD_FLAGS_REVERSED = 0x4,
    /* of the two, this one left the shoe first; with DOUBLE_FEED only */
    TL_CARD_FLAGS_CAME_FIRST = 0x8,
    /* of the two, this one left the shoe second; with DOUBLE_FEED only */
    TL_CARD_FLAGS_CAME_SECOND = 0x10,
};

/* A set of buttons. u16 */
enum tl_button_mask {
    TL_BUTTON_MASK_HIT = 0x1,
    TL_BUTTON_MASK_STAND = 0x2,
    TL_BUTTON_MASK_DOUBLE = 0x4,
    TL_BUTTON_MASK_SPLIT = 0x8,
    TL_BUTTON_MASK_SURRENDER = 0x10,
    TL_BUTTON_MASK_YES = 0x20,
    TL_BUTTON_MASK_NO = 0x40,
    TL_BUTTON_MASK_BET = 0x80,
    TL_BUTTON_MASK_CALL = 0x100,
};

/* ids of the messages, and the length of their fields */
enum tl_id {
    TL_ID_POWER = 0x01,
    TL_ID_TAMPER = 0x02,
    TL_ID_FAULT = 0x03,
    TL_ID_LOG_PRESSURE = 0x04,
    TL_ID_PAIRED = 0x05,
    TL_ID_CARD_READ = 0x10,
    TL_ID_CARD_RETRACTED = 0x11,
    TL_ID_READ_FAIL = 0x12,
    TL_ID_CUT_CARD = 0x13,
    TL_ID_LOADED = 0x14,
    TL_ID_COVER = 0x15,
    TL_ID_SHOE_JAM = 0x16,
    TL_ID_STARTED = 0x20,
    TL_ID_PROGRESS = 0x21,
    TL_ID_DONE = 0x22,
    TL_ID_COUNT_ERROR = 0x23,
    TL_ID_DOOR = 0x24,
    TL_ID_SHUFFLER_JAM = 0x25,
    TL_ID_BUTTON = 0x30,
    TL_ID_STUCK = 0x31,
    TL_ID_LAMP_FAULT = 0x32,
    TL_ID_INFO = 0x40,
    TL_ID_INFO_REPLY = 0xC0,
    TL_ID_RESUME = 0x41,
    TL_ID_RESUME_REPLY = 0xC1,
    TL_ID_SELFTEST = 0x42,
    TL_ID_SELFTEST_REPLY = 0xC2,
    TL_ID_REFUSED = 0xFF,
    TL_ID_LOCK = 0x50,
    TL_ID_LOCK_REPLY = 0xD0,
    TL_ID_REREAD = 0x51,
    TL_ID_REREAD_REPLY = 0xD1,
    TL_ID_START = 0x60,
    TL_ID_START_REPLY = 0xE0,
    TL_ID_EJECT = 0x61,
    TL_ID_EJECT_REPLY = 0xE1,
    TL_ID_ABORT = 0x62,
    TL_ID_ABORT_REPLY = 0xE2,
    TL_ID_ARM = 0x70,
    TL_ID_ARM_REPLY = 0xF0,
    TL_ID_LAMPS = 0x71,
    TL_ID_LAMPS_REPLY = 0xF1,
    TL_ID_BUZZ = 0x72,
    TL_ID_BUZZ_REPLY = 0xF2,
    TL_ID_HOST_BEAT = 0x80,
    TL_ID_DEVICE_BEAT = 0x81,
    TL_ID_EVT_ACK = 0x82,
    TL_ID_EVT_NAK = 0x83,
    TL_ID_TIME_ASK = 0x84,
    TL_ID_TIME_ANSWER = 0x85,
    TL_ID_PAIR_DONE = 0x86,
};

#define TL_LEN_POWER 1u
#define TL_LEN_TAMPER 2u
#define TL_LEN_FAULT 5u
#define TL_LEN_LOG_PRESSURE 1u
#define TL_LEN_PAIRED 20u
#define TL_LEN_CARD_READ 24u
#define TL_LEN_CARD_RETRACTED 2u
#define TL_LEN_READ_FAIL 4u
#define TL_LEN_CUT_CARD 2u
#define TL_LEN_LOADED 12u
#define TL_LEN_COVER 1u
#define TL_LEN_SHOE_JAM 1u
#define TL_LEN_STARTED 5u
#define TL_LEN_PROGRESS 1u
#define TL_LEN_DONE 11u
#define TL_LEN_COUNT_ERROR 4u
#define TL_LEN_DOOR 1u
#define TL_LEN_SHUFFLER_JAM 1u
#define TL_LEN_BUTTON 11u
#define TL_LEN_STUCK 2u
#define TL_LEN_LAMP_FAULT 2u
#define TL_LEN_INFO 0u
#define TL_LEN_INFO_REPLY 41u
#define TL_LEN_RESUME 17u
#define TL_LEN_RESUME_REPLY 33u
#define TL_LEN_SELFTEST 0u
#define TL_LEN_SELFTEST_REPLY 5u
#define TL_LEN_REFUSED 4u
#define TL_LEN_LOCK 1u
#define TL_LEN_LOCK_REPLY 1u
#define TL_LEN_REREAD 8u
#define TL_LEN_REREAD_REPLY 56u
#define TL_LEN_START 3u
#define TL_LEN_START_REPLY 4u
#define TL_LEN_EJECT 0u
#define TL_LEN_EJECT_REPLY 0u
#define TL_LEN_ABORT 0u
#define TL_LEN_ABORT_REPLY 0u
#define TL_LEN_ARM 7u
#define TL_LEN_ARM_REPLY 0u
#define TL_LEN_LAMPS 9u
#define TL_LEN_LAMPS_REPLY 0u
#define TL_LEN_BUZZ 1u
#define TL_LEN_BUZZ_REPLY 0u
#define TL_LEN_HOST_BEAT 9u
#define TL_LEN_DEVICE_BEAT 31u
#define TL_LEN_EVT_ACK 9u
#define TL_LEN_EVT_NAK 9u
#define TL_LEN_TIME_ASK 8u
#define TL_LEN_TIME_ANSWER 24u
#define TL_LEN_PAIR_DONE 20u

/* lengths of the frames' payloads */
#define TL_LEN_HELLO 32u
#define TL_LEN_HELLO_RSP 96u
#define TL_LEN_HS1 48u
#define TL_LEN_HS2 48u
#define TL_LEN_PAIR1 48u
#define TL_LEN_PAIR2 96u
#define TL_LEN_PAIR3 64u
#define TL_LEN_ALERT 8u
#define TL_LEN_DATA_56 72u
#define TL_LEN_DATA_120 136u
#define TL_LEN_DATA_226 242u

/* Before every payload. */
struct tl_header {
    /* version << 4 | frame kind */
    uint8_t version_kind;
    /* length of the payload */
    uint8_t n;
    /* session id */
    uint16_t session;
    /* of DATA, else 0 */
    uint32_t counter;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_header) == 8);
TL_ASSERT(offsetof(struct tl_header, version_kind) == 0);
TL_ASSERT(offsetof(struct tl_header, n) == 1);
TL_ASSERT(offsetof(struct tl_header, session) == 2);
TL_ASSERT(offsetof(struct tl_header, counter) == 4);

/* A record of the ring, encoded as in the ring. Plaintext of 56 bytes. */
struct tl_event_plaintext {
    /* 1 */
    uint8_t type;
    /* 0 in version 1 */
    uint8_t flags;
    /* the ring's random name, never 0 */
    uint32_t epoch;
    /* 1 for the first record of the ring, then one more each */
    uint32_t seq;
    /* starts of the device so far, this one included */
    uint32_t boot;
    /* device's clock when it happened: microseconds since this start */
    uint64_t t_us;
    /* id of the event */
    uint8_t kind;
    /* length of the event's fields */
    uint8_t len;
    /* the event's fields, then zeros */
    uint8_t body[24];
    /* BLAKE2b(chain of the record before || bytes 0 to 47), first 8 of 64 bytes */
    uint8_t chain[8];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_event_plaintext) == 56);
TL_ASSERT(offsetof(struct tl_event_plaintext, type) == 0);
TL_ASSERT(offsetof(struct tl_event_plaintext, flags) == 1);
TL_ASSERT(offsetof(struct tl_event_plaintext, epoch) == 2);
TL_ASSERT(offsetof(struct tl_event_plaintext, seq) == 6);
TL_ASSERT(offsetof(struct tl_event_plaintext, boot) == 10);
TL_ASSERT(offsetof(struct tl_event_plaintext, t_us) == 14);
TL_ASSERT(offsetof(struct tl_event_plaintext, kind) == 22);
TL_ASSERT(offsetof(struct tl_event_plaintext, len) == 23);
TL_ASSERT(offsetof(struct tl_event_plaintext, body) == 24);
TL_ASSERT(offsetof(struct tl_event_plaintext, chain) == 48);

/* A request of the host. Plaintext of 56 bytes. */
struct tl_command_plaintext {
    /* 2 */
    uint8_t type;
    /* 0 in version 1 */
    uint8_t flags;
    /* id of the command */
    uint8_t kind;
    /* length of the command's fields */
    uint8_t len;
    /* 1 for the first command of the host's boot, then one more each; a repeat has the same */
    uint32_t command_id;
    /* 64 random bits, drawn when the host starts, never 0 */
    uint64_t host_boot;
    /* the command's fields, then zeros up to the size (104 and 210 bytes in the larger sizes) */
    uint8_t body[40];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_command_plaintext) == 56);
TL_ASSERT(offsetof(struct tl_command_plaintext, type) == 0);
TL_ASSERT(offsetof(struct tl_command_plaintext, flags) == 1);
TL_ASSERT(offsetof(struct tl_command_plaintext, kind) == 2);
TL_ASSERT(offsetof(struct tl_command_plaintext, len) == 3);
TL_ASSERT(offsetof(struct tl_command_plaintext, command_id) == 4);
TL_ASSERT(offsetof(struct tl_command_plaintext, host_boot) == 8);
TL_ASSERT(offsetof(struct tl_command_plaintext, body) == 16);

/* The response to a command. Plaintext of 56 bytes. */
struct tl_reply_plaintext {
    /* 3 */
    uint8_t type;
    /* 0 in version 1 */
    uint8_t flags;
    /* id of the reply */
    uint8_t kind;
    /* length of the reply's fields */
    uint8_t len;
    /* of the command */
    uint32_t command_id;
    /* of the command */
    uint64_t host_boot;
    /* the reply's fields, then zeros up to the size (104 and 210 bytes in the larger sizes) */
    uint8_t body[40];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_reply_plaintext) == 56);
TL_ASSERT(offsetof(struct tl_reply_plaintext, type) == 0);
TL_ASSERT(offsetof(struct tl_reply_plaintext, flags) == 1);
TL_ASSERT(offsetof(struct tl_reply_plaintext, kind) == 2);
TL_ASSERT(offsetof(struct tl_reply_plaintext, len) == 3);
TL_ASSERT(offsetof(struct tl_reply_plaintext, command_id) == 4);
TL_ASSERT(offsetof(struct tl_reply_plaintext, host_boot) == 8);
TL_ASSERT(offsetof(struct tl_reply_plaintext, body) == 16);

/* Acknowledgements, heartbeats, clock requests. Never answered from a cache, never cached.
 * Plaintext of 56 bytes. */
struct tl_control_plaintext {
    /* 4 */
    uint8_t type;
    /* 0 in version 1 */
    uint8_t flags;
    /* id of the message */
    uint8_t kind;
    /* length of the message's fields */
    uint8_t len;
    /* the message's fields, then zeros */
    uint8_t body[52];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_control_plaintext) == 56);
TL_ASSERT(offsetof(struct tl_control_plaintext, type) == 0);
TL_ASSERT(offsetof(struct tl_control_plaintext, flags) == 1);
TL_ASSERT(offsetof(struct tl_control_plaintext, kind) == 2);
TL_ASSERT(offsetof(struct tl_control_plaintext, len) == 3);
TL_ASSERT(offsetof(struct tl_control_plaintext, body) == 4);

/* Frame HELLO. Opens a handshake or a pairing. The session id in its header is the one that the
 * host picked. */
struct tl_hello {
    /* lowest version that the host speaks (1 to 15) */
    uint8_t version_min;
    /* highest version that the host speaks (1 to 15) */
    uint8_t version_max;
    /* class that the host expects; a device of another class answers too (enum device_class) */
    uint8_t device_class;
    /* longest decoded frame that the host takes (enum frame_limit) */
    uint8_t largest;
    /* zero */
    uint8_t reserved[4];
    /* schema hash of the host's version_max */
    uint8_t schema[8];
    /* fingerprint of the host's key */
    uint8_t fingerprint[16];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_hello) == 32);
TL_ASSERT(offsetof(struct tl_hello, version_min) == 0);
TL_ASSERT(offsetof(struct tl_hello, version_max) == 1);
TL_ASSERT(offsetof(struct tl_hello, device_class) == 2);
TL_ASSERT(offsetof(struct tl_hello, largest) == 3);
TL_ASSERT(offsetof(struct tl_hello, reserved) == 4);
TL_ASSERT(offsetof(struct tl_hello, schema) == 8);
TL_ASSERT(offsetof(struct tl_hello, fingerprint) == 16);

/* Frame HELLO_RSP. The response to HELLO, under the same session id. */
struct tl_hello_rsp {
    /* lowest version that the device speaks (1 to 15) */
    uint8_t version_min;
    /* highest version that the device speaks (1 to 15) */
    uint8_t version_max;
    /* what the device is; never ANY (enum device_class but ANY) */
    uint8_t device_class;
    /* longest decoded frame that the device takes (enum frame_limit) */
    uint8_t largest;
    /* what the device can do (flags capabilities) */
    uint32_t capabilities;
    /* schema hash of the highest common version; of version_max where none is common */
    uint8_t schema[8];
    /* fingerprint of the device's key */
    uint8_t fingerprint[16];
    /* newly drawn for each HELLO_RSP */
    uint8_t random[8];
    /* maker */
    char maker[16];
    /* model */
    char model[16];
    /* serial number, as on the label and in the USB descriptor */
    char serial[20];
    /* how the device is (flags device_state) */
    uint16_t state;
    /* zero */
    uint8_t reserved[2];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_hello_rsp) == 96);
TL_ASSERT(offsetof(struct tl_hello_rsp, version_min) == 0);
TL_ASSERT(offsetof(struct tl_hello_rsp, version_max) == 1);
TL_ASSERT(offsetof(struct tl_hello_rsp, device_class) == 2);
TL_ASSERT(offsetof(struct tl_hello_rsp, largest) == 3);
TL_ASSERT(offsetof(struct tl_hello_rsp, capabilities) == 4);
TL_ASSERT(offsetof(struct tl_hello_rsp, schema) == 8);
TL_ASSERT(offsetof(struct tl_hello_rsp, fingerprint) == 16);
TL_ASSERT(offsetof(struct tl_hello_rsp, random) == 32);
TL_ASSERT(offsetof(struct tl_hello_rsp, maker) == 40);
TL_ASSERT(offsetof(struct tl_hello_rsp, model) == 56);
TL_ASSERT(offsetof(struct tl_hello_rsp, serial) == 72);
TL_ASSERT(offsetof(struct tl_hello_rsp, state) == 92);
TL_ASSERT(offsetof(struct tl_hello_rsp, reserved) == 94);

/* Frame HS1. Noise_KK, first message, with an empty payload. */
struct tl_hs1 {
    /* host's ephemeral public key (token e) */
    uint8_t ephemeral[32];
    /* the empty payload, sealed after tokens es, ss */
    uint8_t tag[16];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_hs1) == 48);
TL_ASSERT(offsetof(struct tl_hs1, ephemeral) == 0);
TL_ASSERT(offsetof(struct tl_hs1, tag) == 32);

/* Frame HS2. Noise_KK, second message, with an empty payload. */
struct tl_hs2 {
    /* device's ephemeral public key (token e) */
    uint8_t ephemeral[32];
    /* the empty payload, sealed after tokens ee, se */
    uint8_t tag[16];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_hs2) == 48);
TL_ASSERT(offsetof(struct tl_hs2, ephemeral) == 0);
TL_ASSERT(offsetof(struct tl_hs2, tag) == 32);

/* Frame PAIR1. Noise_XXpsk3, first message, with an empty payload. */
struct tl_pair1 {
    /* host's ephemeral public key (token e, which with a psk is mixed into the key too) */
    uint8_t ephemeral[32];
    /* the empty payload, sealed */
    uint8_t tag[16];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_pair1) == 48);
TL_ASSERT(offsetof(struct tl_pair1, ephemeral) == 0);
TL_ASSERT(offsetof(struct tl_pair1, tag) == 32);

/* Frame PAIR2. Noise_XXpsk3, second message, with an empty payload. */
struct tl_pair2 {
    /* device's ephemeral public key (token e) */
    uint8_t ephemeral[32];
    /* device's key, sealed (tokens ee, s) */
    uint8_t static_key[48];
    /* the empty payload, sealed after token es */
    uint8_t tag[16];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_pair2) == 96);
TL_ASSERT(offsetof(struct tl_pair2, ephemeral) == 0);
TL_ASSERT(offsetof(struct tl_pair2, static_key) == 32);
TL_ASSERT(offsetof(struct tl_pair2, tag) == 80);

/* Frame PAIR3. Noise_XXpsk3, third message, with an empty payload. */
struct tl_pair3 {
    /* host's key, sealed (token s) */
    uint8_t static_key[48];
    /* the empty payload, sealed after tokens se, psk */
    uint8_t tag[16];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_pair3) == 64);
TL_ASSERT(offsetof(struct tl_pair3, static_key) == 0);
TL_ASSERT(offsetof(struct tl_pair3, tag) == 48);

/* Frame ALERT. A hint in clear for diagnosis. It is displayed, never acted on. Session id 0. */
struct tl_alert {
    /* what happened (enum alert_code) */
    uint8_t code;
    /* zero */
    uint8_t reserved[3];
    /* as the code says, else 0 */
    uint32_t arg;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_alert) == 8);
TL_ASSERT(offsetof(struct tl_alert, code) == 0);
TL_ASSERT(offsetof(struct tl_alert, reserved) == 1);
TL_ASSERT(offsetof(struct tl_alert, arg) == 4);

/* Event POWER. The device has started. The first event of every start. */
struct tl_power {
    /* why (enum power_cause) */
    uint8_t cause;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_power) == 1);
TL_ASSERT(offsetof(struct tl_power, cause) == 0);

/* Event TAMPER. Tampering with the device was detected, or ended. */
struct tl_tamper {
    /* what (enum tamper_source) */
    uint8_t source;
    /* 1 it began, 0 it is over; a source that has no end sends 1 only (0 or 1) */
    uint8_t active;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_tamper) == 2);
TL_ASSERT(offsetof(struct tl_tamper, source) == 0);
TL_ASSERT(offsetof(struct tl_tamper, active) == 1);

/* Event FAULT. A fault was detected. */
struct tl_fault {
    /* what; never NONE (enum fault_code but NONE) */
    uint8_t code;
    /* as the code says, else 0 */
    uint32_t arg;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_fault) == 5);
TL_ASSERT(offsetof(struct tl_fault, code) == 0);
TL_ASSERT(offsetof(struct tl_fault, arg) == 1);

/* Event LOG_PRESSURE. The ring fills up: once when it reaches 75 %, once when it is full up to
 * its spare slots. */
struct tl_log_pressure {
    /* percent of the ring that is not acknowledged, rounded down (0 to 100) */
    uint8_t used;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_log_pressure) == 1);
TL_ASSERT(offsetof(struct tl_log_pressure, used) == 0);

/* Event PAIRED. A host was paired; it has replaced the former one. */
struct tl_paired {
    /* of the host's key */
    uint8_t fingerprint[16];
    /* pairings so far, this one included (1 to 0xFFFFFFFF) */
    uint32_t pairings;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_paired) == 20);
TL_ASSERT(offsetof(struct tl_paired, fingerprint) == 0);
TL_ASSERT(offsetof(struct tl_paired, pairings) == 16);

/* Event CARD_READ. A card has left the shoe and was read. Its fields fill the body. */
struct tl_card_read {
    /* number of its loading, as in LOADED; 0 before the first */
    uint32_t shoe;
    /* 1 for the first card of the loading, then one more for each card that leaves the shoe,
     * read or not, the cut card included (1 to 65535) */
    uint16_t pos;
    /* the card (0 to 51) */
    uint8_t card;
    /* how sure the reader is, percent (0 to 100) */
    uint8_t confidence;
    /* second candidate; 0xFE: no other candidate (0 to 51 or 0x40 or 0xFE) */
    uint8_t alternative;
    /* what was odd (flags card_flags) */
    uint8_t flags;
    /* milliseconds that the card was over the reader; 65535 for longer */
    uint16_t dwell;
    /* the maker's number of the card's back; 0 not recognised */
    uint8_t back;
    /* random, drawn for this record alone; without it the chain would reveal the card */
    uint8_t salt[11];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_card_read) == 24);
TL_ASSERT(offsetof(struct tl_card_read, shoe) == 0);
TL_ASSERT(offsetof(struct tl_card_read, pos) == 4);
TL_ASSERT(offsetof(struct tl_card_read, card) == 6);
TL_ASSERT(offsetof(struct tl_card_read, confidence) == 7);
TL_ASSERT(offsetof(struct tl_card_read, alternative) == 8);
TL_ASSERT(offsetof(struct tl_card_read, flags) == 9);
TL_ASSERT(offsetof(struct tl_card_read, dwell) == 10);
TL_ASSERT(offsetof(struct tl_card_read, back) == 12);
TL_ASSERT(offsetof(struct tl_card_read, salt) == 13);

/* Event CARD_RETRACTED. A card that had been reported went back into the shoe. */
struct tl_card_retracted {
    /* its position; the next card out has this position again (1 to 65535) */
    uint16_t pos;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_card_retracted) == 2);
TL_ASSERT(offsetof(struct tl_card_retracted, pos) == 0);

/* Event READ_FAIL. A card has left the shoe and was not read. */
struct tl_read_fail {
    /* its position (1 to 65535) */
    uint16_t pos;
    /* why (enum read_why) */
    uint8_t why;
    /* DOUBLE_FEED, CAME_FIRST and CAME_SECOND only (flags card_flags) */
    uint8_t flags;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_read_fail) == 4);
TL_ASSERT(offsetof(struct tl_read_fail, pos) == 0);
TL_ASSERT(offsetof(struct tl_read_fail, why) == 2);
TL_ASSERT(offsetof(struct tl_read_fail, flags) == 3);

/* Event CUT_CARD. The cut card has left the shoe. */
struct tl_cut_card {
    /* its position (1 to 65535) */
    uint16_t pos;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_cut_card) == 2);
TL_ASSERT(offsetof(struct tl_cut_card, pos) == 0);

/* Event LOADED. Cards were put in and the cover closed. Positions start again. */
struct tl_loaded {
    /* number of this loading, one more than the last, stored over restarts (1 to 0xFFFFFFFF) */
    uint32_t shoe;
    /* decks as set at the shoe; 0 unknown */
    uint8_t decks;
    /* cards as weighed or counted; 0 unknown */
    uint16_t count;
    /* number of the shuffle as read from the cassette; 0 unknown */
    uint32_t shuffle;
    /* kind of the decks as set at the shoe (enum deck_kind) */
    uint8_t kind;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_loaded) == 12);
TL_ASSERT(offsetof(struct tl_loaded, shoe) == 0);
TL_ASSERT(offsetof(struct tl_loaded, decks) == 4);
TL_ASSERT(offsetof(struct tl_loaded, count) == 5);
TL_ASSERT(offsetof(struct tl_loaded, shuffle) == 7);
TL_ASSERT(offsetof(struct tl_loaded, kind) == 11);

/* Event COVER. The cover was opened or closed. */
struct tl_cover {
    /* 1 opened, 0 closed (0 or 1) */
    uint8_t open;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_cover) == 1);
TL_ASSERT(offsetof(struct tl_cover, open) == 0);

/* Event SHOE_JAM. A jam in the shoe started or ended. */
struct tl_shoe_jam {
    /* where (enum jam_code) */
    uint8_t code;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_shoe_jam) == 1);
TL_ASSERT(offsetof(struct tl_shoe_jam, code) == 0);

/* Event STARTED. A shuffle has started. */
struct tl_started {
    /* number of this shuffle, one more than the last, stored over restarts (1 to 0xFFFFFFFF) */
    uint32_t shuffle;
    /* decks as START said (1 to 12) */
    uint8_t decks;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_started) == 5);
TL_ASSERT(offsetof(struct tl_started, shuffle) == 0);
TL_ASSERT(offsetof(struct tl_started, decks) == 4);

/* Event PROGRESS. Progress of the shuffle: at most one for every 5 percent. */
struct tl_progress {
    /* percent done (0 to 100) */
    uint8_t percent;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_progress) == 1);
TL_ASSERT(offsetof(struct tl_progress, percent) == 0);

/* Event DONE. The shuffle is finished and the cards wait. */
struct tl_done {
    /* its number (1 to 0xFFFFFFFF) */
    uint32_t shuffle;
    /* cards counted */
    uint16_t count;
    /* cards that the decks should have and this batch has not; 0 without DECK_CHECK */
    uint16_t missing;
    /* cards that this batch has beyond its decks; 0 without DECK_CHECK */
    uint16_t extra;
    /* 1: the random generator's own tests passed during this shuffle (0 or 1) */
    uint8_t rng_ok;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_done) == 11);
TL_ASSERT(offsetof(struct tl_done, shuffle) == 0);
TL_ASSERT(offsetof(struct tl_done, count) == 4);
TL_ASSERT(offsetof(struct tl_done, missing) == 6);
TL_ASSERT(offsetof(struct tl_done, extra) == 8);
TL_ASSERT(offsetof(struct tl_done, rng_ok) == 10);

/* Event COUNT_ERROR. The number of cards is wrong; no DONE follows for this shuffle. */
struct tl_count_error {
    /* cards that the decks should have */
    uint16_t expected;
    /* cards counted */
    uint16_t got;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_count_error) == 4);
TL_ASSERT(offsetof(struct tl_count_error, expected) == 0);
TL_ASSERT(offsetof(struct tl_count_error, got) == 2);

/* Event DOOR. The door was opened or closed, by hand or by EJECT. */
struct tl_door {
    /* 1 opened, 0 closed (0 or 1) */
    uint8_t open;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_door) == 1);
TL_ASSERT(offsetof(struct tl_door, open) == 0);

/* Event SHUFFLER_JAM. A jam in the shuffler started or ended. */
struct tl_shuffler_jam {
    /* where (enum jam_code) */
    uint8_t code;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_shuffler_jam) == 1);
TL_ASSERT(offsetof(struct tl_shuffler_jam, code) == 0);

/* Event BUTTON. An armed button was pressed, or one that was pressed while armed was released. */
struct tl_button {
    /* seat (1 to 15) */
    uint8_t seat;
    /* which (enum which_button) */
    uint8_t button;
    /* which way (enum edge) */
    uint8_t edge;
    /* UP: milliseconds that it was held, 65535 for longer; DOWN: 0 */
    uint16_t held;
    /* number of the press since the start; both edges carry it (1 to 0xFFFFFFFF) */
    uint32_t press;
    /* token of the ARM that was in force when the button went down */
    uint16_t token;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_button) == 11);
TL_ASSERT(offsetof(struct tl_button, seat) == 0);
TL_ASSERT(offsetof(struct tl_button, button) == 1);
TL_ASSERT(offsetof(struct tl_button, edge) == 2);
TL_ASSERT(offsetof(struct tl_button, held) == 3);
TL_ASSERT(offsetof(struct tl_button, press) == 5);
TL_ASSERT(offsetof(struct tl_button, token) == 9);

/* Event STUCK. A button has been down for 10 s. It does not count until it is released. */
struct tl_stuck {
    /* seat (1 to 15) */
    uint8_t seat;
    /* which (enum which_button) */
    uint8_t button;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_stuck) == 2);
TL_ASSERT(offsetof(struct tl_stuck, seat) == 0);
TL_ASSERT(offsetof(struct tl_stuck, button) == 1);

/* Event LAMP_FAULT. A lamp does not light. */
struct tl_lamp_fault {
    /* seat (1 to 15) */
    uint8_t seat;
    /* which of the seat's lamps, from 0 */
    uint8_t index;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_lamp_fault) == 2);
TL_ASSERT(offsetof(struct tl_lamp_fault, seat) == 0);
TL_ASSERT(offsetof(struct tl_lamp_fault, index) == 1);

/* Reply INFO_REPLY. Returns the firmware and state of the device. */
struct tl_info_reply {
    /* SHA-256 of the firmware image that runs */
    uint8_t firmware[32];
    /* starts of the device so far, this one included (1 to 0xFFFFFFFF) */
    uint32_t boot;
    /* why it started (enum power_cause) */
    uint8_t cause;
    /* records that the ring holds (128 to 65535) */
    uint16_t capacity;
    /* how the device is (flags device_state) */
    uint16_t state;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_info_reply) == 41);
TL_ASSERT(offsetof(struct tl_info_reply, firmware) == 0);
TL_ASSERT(offsetof(struct tl_info_reply, boot) == 32);
TL_ASSERT(offsetof(struct tl_info_reply, cause) == 36);
TL_ASSERT(offsetof(struct tl_info_reply, capacity) == 37);
TL_ASSERT(offsetof(struct tl_info_reply, state) == 39);

/* Command RESUME. Request to send events after the end of the host's record. Events are sent
 * after the response OK. */
struct tl_resume {
    /* the ring that the host knows; 0 none yet */
    uint32_t epoch;
    /* the first seq that the host has not got; 0 with epoch 0 */
    uint32_t next;
    /* chain of the record before it; zeros for next 1 and for ADOPT */
    uint8_t chain[8];
    /* how to continue (enum resume_mode) */
    uint8_t mode;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_resume) == 17);
TL_ASSERT(offsetof(struct tl_resume, epoch) == 0);
TL_ASSERT(offsetof(struct tl_resume, next) == 4);
TL_ASSERT(offsetof(struct tl_resume, chain) == 8);
TL_ASSERT(offsetof(struct tl_resume, mode) == 16);

/* Reply RESUME_REPLY. Returns the state of the ring. */
struct tl_resume_reply {
    /* the ring's name (1 to 0xFFFFFFFF) */
    uint32_t epoch;
    /* lowest seq in the ring; head + 1 when it is empty (1 to 0xFFFFFFFF) */
    uint32_t oldest;
    /* highest seq in the ring; 0 when nothing was ever recorded */
    uint32_t head;
    /* chain of `head`; zeros for head 0 */
    uint8_t chain[8];
    /* what it amounts to (enum verdict) */
    uint8_t verdict;
    /* highest seq that was acknowledged; 0 none. After OK it is `next` - 1 */
    uint32_t acked_seq;
    /* chain of `acked_seq`; zeros for 0, and if the device does not have it any more */
    uint8_t acked_chain[8];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_resume_reply) == 33);
TL_ASSERT(offsetof(struct tl_resume_reply, epoch) == 0);
TL_ASSERT(offsetof(struct tl_resume_reply, oldest) == 4);
TL_ASSERT(offsetof(struct tl_resume_reply, head) == 8);
TL_ASSERT(offsetof(struct tl_resume_reply, chain) == 12);
TL_ASSERT(offsetof(struct tl_resume_reply, verdict) == 20);
TL_ASSERT(offsetof(struct tl_resume_reply, acked_seq) == 21);
TL_ASSERT(offsetof(struct tl_resume_reply, acked_chain) == 25);

/* Reply SELFTEST_REPLY. Returns the first fault. Each fault is recorded as an event FAULT too. */
struct tl_selftest_reply {
    /* NONE when all is well (enum fault_code) */
    uint8_t code;
    /* as the code says, else 0 */
    uint32_t arg;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_selftest_reply) == 5);
TL_ASSERT(offsetof(struct tl_selftest_reply, code) == 0);
TL_ASSERT(offsetof(struct tl_selftest_reply, arg) == 1);

/* Reply REFUSED. The command was rejected. */
struct tl_refused {
    /* id of the command */
    uint8_t command;
    /* why (enum refusal) */
    uint8_t why;
    /* as the reason says, else 0 */
    uint16_t arg;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_refused) == 4);
TL_ASSERT(offsetof(struct tl_refused, command) == 0);
TL_ASSERT(offsetof(struct tl_refused, why) == 1);
TL_ASSERT(offsetof(struct tl_refused, arg) == 2);

/* Command LOCK. Locks the shoe or opens it. Refused UNSUPPORTED without LOCK; OPEN is refused
 * NOT_NOW while the ring is full. */
struct tl_lock {
    /* what it shall be (enum lock_state) */
    uint8_t state;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_lock) == 1);
TL_ASSERT(offsetof(struct tl_lock, state) == 0);

/* Reply LOCK_REPLY. Returns the state of the lock. */
struct tl_lock_reply {
    /* what it is (enum lock_state) */
    uint8_t state;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_lock_reply) == 1);
TL_ASSERT(offsetof(struct tl_lock_reply, state) == 0);

/* Command REREAD. Requests a record again, acknowledged or not. Needs no RESUME. */
struct tl_reread {
    /* the ring (1 to 0xFFFFFFFF) */
    uint32_t epoch;
    /* the record (1 to 0xFFFFFFFF) */
    uint32_t seq;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_reread) == 8);
TL_ASSERT(offsetof(struct tl_reread, epoch) == 0);
TL_ASSERT(offsetof(struct tl_reread, seq) == 4);

/* Reply REREAD_REPLY. Returns the record. */
struct tl_reread_reply {
    /* the plaintext of the event, just as it was sent */
    uint8_t record[56];
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_reread_reply) == 56);
TL_ASSERT(offsetof(struct tl_reread_reply, record) == 0);

/* Command START. Starts a shuffle. Refused NOT_NOW while the door is open, cards are stuck or a
 * shuffle runs; EMPTY without cards. */
struct tl_start {
    /* decks that were put in (1 to 12) */
    uint8_t decks;
    /* the maker's number of a way to shuffle; 0 the usual one */
    uint8_t profile;
    /* kind of the decks; never UNKNOWN (enum deck_kind but UNKNOWN) */
    uint8_t kind;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_start) == 3);
TL_ASSERT(offsetof(struct tl_start, decks) == 0);
TL_ASSERT(offsetof(struct tl_start, profile) == 1);
TL_ASSERT(offsetof(struct tl_start, kind) == 2);

/* Reply START_REPLY. The shuffle starts; STARTED reports when it has. */
struct tl_start_reply {
    /* number that STARTED will carry (1 to 0xFFFFFFFF) */
    uint32_t shuffle;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_start_reply) == 4);
TL_ASSERT(offsetof(struct tl_start_reply, shuffle) == 0);

/* Command ARM. Arms buttons of a seat for a limited time and with a token. Replaces the seat's
 * former ARM. */
struct tl_arm {
    /* seat (1 to 15) */
    uint8_t seat;
    /* buttons that count; 0 disarms (flags button_mask) */
    uint16_t mask;
    /* returned with each press */
    uint16_t token;
    /* milliseconds from now until the seat is disarmed automatically; 0 disarms */
    uint16_t ttl;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_arm) == 7);
TL_ASSERT(offsetof(struct tl_arm, seat) == 0);
TL_ASSERT(offsetof(struct tl_arm, mask) == 1);
TL_ASSERT(offsetof(struct tl_arm, token) == 3);
TL_ASSERT(offsetof(struct tl_arm, ttl) == 5);

/* Command LAMPS. Sets all lamps of a seat. Replaces their former state. */
struct tl_lamps {
    /* seat (1 to 15) */
    uint8_t seat;
    /* red, green, blue; without COLOUR the largest of the three is the brightness */
    uint8_t rgb[3];
    /* how (enum lamp_pattern) */
    uint8_t pattern;
    /* milliseconds of one period; OFF and STEADY ignore it; 0 for another pattern means STEADY */
    uint16_t period;
    /* milliseconds from now until the lamps go dark automatically; 0 at once */
    uint16_t lease;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_lamps) == 9);
TL_ASSERT(offsetof(struct tl_lamps, seat) == 0);
TL_ASSERT(offsetof(struct tl_lamps, rgb) == 1);
TL_ASSERT(offsetof(struct tl_lamps, pattern) == 4);
TL_ASSERT(offsetof(struct tl_lamps, period) == 5);
TL_ASSERT(offsetof(struct tl_lamps, lease) == 7);

/* Command BUZZ. Plays a sound once. Refused UNSUPPORTED without BUZZER. */
struct tl_buzz {
    /* which (enum buzz_pattern) */
    uint8_t pattern;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_buzz) == 1);
TL_ASSERT(offsetof(struct tl_buzz, pattern) == 0);

/* Control HOST_BEAT. Heartbeat of the host. It acknowledges as EVT_ACK does, as a retry of a
 * lost one. */
struct tl_host_beat {
    /* the ring; 0 before RESUME was answered with OK */
    uint32_t epoch;
    /* highest seq that the host has stored durably */
    uint32_t seq;
    /* how many records after seq may be on their way (0 to 8) */
    uint8_t window;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_host_beat) == 9);
TL_ASSERT(offsetof(struct tl_host_beat, epoch) == 0);
TL_ASSERT(offsetof(struct tl_host_beat, seq) == 4);
TL_ASSERT(offsetof(struct tl_host_beat, window) == 8);

/* Control DEVICE_BEAT. Heartbeat of the device, with its state. */
struct tl_device_beat {
    /* the ring (1 to 0xFFFFFFFF) */
    uint32_t epoch;
    /* highest seq in the ring */
    uint32_t head;
    /* starts of the device so far (1 to 0xFFFFFFFF) */
    uint32_t boot;
    /* device's clock */
    uint64_t t_us;
    /* percent of the ring that is not acknowledged, rounded down (0 to 100) */
    uint8_t used;
    /* how the device is (flags device_state) */
    uint16_t state;
    /* damaged frames since the start */
    uint32_t damaged;
    /* valid frames that were ignored, and malformed plaintexts, since the start */
    uint32_t refused;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_device_beat) == 31);
TL_ASSERT(offsetof(struct tl_device_beat, epoch) == 0);
TL_ASSERT(offsetof(struct tl_device_beat, head) == 4);
TL_ASSERT(offsetof(struct tl_device_beat, boot) == 8);
TL_ASSERT(offsetof(struct tl_device_beat, t_us) == 12);
TL_ASSERT(offsetof(struct tl_device_beat, used) == 20);
TL_ASSERT(offsetof(struct tl_device_beat, state) == 21);
TL_ASSERT(offsetof(struct tl_device_beat, damaged) == 23);
TL_ASSERT(offsetof(struct tl_device_beat, refused) == 27);

/* Control EVT_ACK. The host has stored all records up to this one durably. */
struct tl_evt_ack {
    /* the ring (1 to 0xFFFFFFFF) */
    uint32_t epoch;
    /* highest seq that the host has stored durably */
    uint32_t seq;
    /* how many records after seq may be on their way; 0 stops them (0 to 8) */
    uint8_t window;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_evt_ack) == 9);
TL_ASSERT(offsetof(struct tl_evt_ack, epoch) == 0);
TL_ASSERT(offsetof(struct tl_evt_ack, seq) == 4);
TL_ASSERT(offsetof(struct tl_evt_ack, window) == 8);

/* Control EVT_NAK. Request of the host to send records again. */
struct tl_evt_nak {
    /* the ring (1 to 0xFFFFFFFF) */
    uint32_t epoch;
    /* the first record that is wanted (1 to 0xFFFFFFFF) */
    uint32_t next;
    /* why (enum nak_why) */
    uint8_t why;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_evt_nak) == 9);
TL_ASSERT(offsetof(struct tl_evt_nak, epoch) == 0);
TL_ASSERT(offsetof(struct tl_evt_nak, next) == 4);
TL_ASSERT(offsetof(struct tl_evt_nak, why) == 8);

/* Control TIME_ASK. Request for the device's clock. */
struct tl_time_ask {
    /* host's clock when this was sent, microseconds */
    uint64_t t1;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_time_ask) == 8);
TL_ASSERT(offsetof(struct tl_time_ask, t1) == 0);

/* Control TIME_ANSWER. Returns the device's clock. */
struct tl_time_answer {
    /* as asked */
    uint64_t t1;
    /* device's clock when TIME_ASK arrived, microseconds */
    uint64_t t2;
    /* device's clock when this was sent, microseconds */
    uint64_t t3;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_time_answer) == 24);
TL_ASSERT(offsetof(struct tl_time_answer, t1) == 0);
TL_ASSERT(offsetof(struct tl_time_answer, t2) == 8);
TL_ASSERT(offsetof(struct tl_time_answer, t3) == 16);

/* Control PAIR_DONE. The device has stored the host's key. Sent exactly once, under the keys of
 * the pairing; any other message there is ignored. */
struct tl_pair_done {
    /* of the host's key that was stored */
    uint8_t fingerprint[16];
    /* as in PAIRED (1 to 0xFFFFFFFF) */
    uint32_t pairings;
} TL_PACKED;
TL_ASSERT(sizeof(struct tl_pair_done) == 20);
TL_ASSERT(offsetof(struct tl_pair_done, fingerprint) == 0);
TL_ASSERT(offsetof(struct tl_pair_done, pairings) == 16);

/* X(struct's name without tl_, field) for every field there is: for tests and dumps */
#define TL_EACH_FIELD(X) \
    X(header, version_kind) \
    X(header, n) \
    X(header, session) \
    X(header, counter) \
    X(event_plaintext, type) \
    X(event_plaintext, flags) \
    X(event_plaintext, epoch) \
    X(event_plaintext, seq) \
    X(event_plaintext, boot) \
    X(event_plaintext, t_us) \
    X(event_plaintext, kind) \
    X(event_plaintext, len) \
    X(event_plaintext, body) \
    X(event_plaintext, chain) \
    X(command_plaintext, type) \
    X(command_plaintext, flags) \
    X(command_plaintext, kind) \
    X(command_plaintext, len) \
    X(command_plaintext, command_id) \
    X(command_plaintext, host_boot) \
    X(command_plaintext, body) \
    X(reply_plaintext, type) \
    X(reply_plaintext, flags) \
    X(reply_plaintext, kind) \
    X(reply_plaintext, len) \
    X(reply_plaintext, command_id) \
    X(reply_plaintext, host_boot) \
    X(reply_plaintext, body) \
    X(control_plaintext, type) \
    X(control_plaintext, flags) \
    X(control_plaintext, kind) \
    X(control_plaintext, len) \
    X(control_plaintext, body) \
    X(hello, version_min) \
    X(hello, version_max) \
    X(hello, device_class) \
    X(hello, largest) \
    X(hello, reserved) \
    X(hello, schema) \
    X(hello, fingerprint) \
    X(hello_rsp, version_min) \
    X(hello_rsp, version_max) \
    X(hello_rsp, device_class) \
    X(hello_rsp, largest) \
    X(hello_rsp, capabilities) \
    X(hello_rsp, schema) \
    X(hello_rsp, fingerprint) \
    X(hello_rsp, random) \
    X(hello_rsp, maker) \
    X(hello_rsp, model) \
    X(hello_rsp, serial) \
    X(hello_rsp, state) \
    X(hello_rsp, reserved) \
    X(hs1, ephemeral) \
    X(hs1, tag) \
    X(hs2, ephemeral) \
    X(hs2, tag) \
    X(pair1, ephemeral) \
    X(pair1, tag) \
    X(pair2, ephemeral) \
    X(pair2, static_key) \
    X(pair2, tag) \
    X(pair3, static_key) \
    X(pair3, tag) \
    X(alert, code) \
    X(alert, reserved) \
    X(alert, arg) \
    X(power, cause) \
    X(tamper, source) \
    X(tamper, active) \
    X(fault, code) \
    X(fault, arg) \
    X(log_pressure, used) \
    X(paired, fingerprint) \
    X(paired, pairings) \
    X(card_read, shoe) \
    X(card_read, pos) \
    X(card_read, card) \
    X(card_read, confidence) \
    X(card_read, alternative) \
    X(card_read, flags) \
    X(card_read, dwell) \
    X(card_read, back) \
    X(card_read, salt) \
    X(card_retracted, pos) \
    X(read_fail, pos) \
    X(read_fail, why) \
    X(read_fail, flags) \
    X(cut_card, pos) \
    X(loaded, shoe) \
    X(loaded, decks) \
    X(loaded, count) \
    X(loaded, shuffle) \
    X(loaded, kind) \
    X(cover, open) \
    X(shoe_jam, code) \
    X(started, shuffle) \
    X(started, decks) \
    X(progress, percent) \
    X(done, shuffle) \
    X(done, count) \
    X(done, missing) \
    X(done, extra) \
    X(done, rng_ok) \
    X(count_error, expected) \
    X(count_error, got) \
    X(door, open) \
    X(shuffler_jam, code) \
    X(button, seat) \
    X(button, button) \
    X(button, edge) \
    X(button, held) \
    X(button, press) \
    X(button, token) \
    X(stuck, seat) \
    X(stuck, button) \
    X(lamp_fault, seat) \
    X(lamp_fault, index) \
    X(info_reply, firmware) \
    X(info_reply, boot) \
    X(info_reply, cause) \
    X(info_reply, capacity) \
    X(info_reply, state) \
    X(resume, epoch) \
    X(resume, next) \
    X(resume, chain) \
    X(resume, mode) \
    X(resume_reply, epoch) \
    X(resume_reply, oldest) \
    X(resume_reply, head) \
    X(resume_reply, chain) \
    X(resume_reply, verdict) \
    X(resume_reply, acked_seq) \
    X(resume_reply, acked_chain) \
    X(selftest_reply, code) \
    X(selftest_reply, arg) \
    X(refused, command) \
    X(refused, why) \
    X(refused, arg) \
    X(lock, state) \
    X(lock_reply, state) \
    X(reread, epoch) \
    X(reread, seq) \
    X(reread_reply, record) \
    X(start, decks) \
    X(start, profile) \
    X(start, kind) \
    X(start_reply, shuffle) \
    X(arm, seat) \
    X(arm, mask) \
    X(arm, token) \
    X(arm, ttl) \
    X(lamps, seat) \
    X(lamps, rgb) \
    X(lamps, pattern) \
    X(lamps, period) \
    X(lamps, lease) \
    X(buzz, pattern) \
    X(host_beat, epoch) \
    X(host_beat, seq) \
    X(host_beat, window) \
    X(device_beat, epoch) \
    X(device_beat, head) \
    X(device_beat, boot) \
    X(device_beat, t_us) \
    X(device_beat, used) \
    X(device_beat, state) \
    X(device_beat, damaged) \
    X(device_beat, refused) \
    X(evt_ack, epoch) \
    X(evt_ack, seq) \
    X(evt_ack, window) \
    X(evt_nak, epoch) \
    X(evt_nak, next) \
    X(evt_nak, why) \
    X(time_ask, t1) \
    X(time_answer, t1) \
    X(time_answer, t2) \
    X(time_answer, t3) \
    X(pair_done, fingerprint) \
    X(pair_done, pairings)

#endif
