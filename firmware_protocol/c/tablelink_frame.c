#include "tablelink_frame.h"

#include <string.h>

uint32_t tl_crc32c(const uint8_t *data, size_t n)
{
    /* Half a byte a step: 64 bytes of table instead of 1 KiB. */
    static const uint32_t table[16] = {
        0x00000000u, 0x105EC76Fu, 0x20BD8EDEu, 0x30E349B1u, 0x417B1DBCu, 0x5125DAD3u,
        0x61C69362u, 0x7198540Du, 0x82F63B78u, 0x92A8FC17u, 0xA24BB5A6u, 0xB21572C9u,
        0xC38D26C4u, 0xD3D3E1ABu, 0xE330A81Au, 0xF36E6F75u,
    };
    uint32_t crc = 0xFFFFFFFFu;

    for (size_t at = 0; at < n; at++) {
        crc ^= data[at];
        crc = (crc >> 4) ^ table[crc & 0xFu];
        crc = (crc >> 4) ^ table[crc & 0xFu];
    }
    return ~crc;
}

size_t tl_cobs_encode(const uint8_t *in, size_t n, uint8_t *out)
{
    /* With at most 254 bytes no run needs the code 0xFF followed by another run, so every input
     * byte keeps its place, one further on, and zeros become codes. */
    size_t code_at = 0;

    if (n > TL_MAX_DECODED)
        return 0;
    memmove(out + 1, in, n);
    for (size_t at = 1; at <= n; at++) {
        if (out[at] == 0) {
            out[code_at] = (uint8_t)(at - code_at);
            code_at = at;
        }
    }
    out[code_at] = (uint8_t)(n + 1 - code_at);
    return n + 1;
}

int tl_cobs_decode(const uint8_t *in, size_t n, uint8_t *out)
{
    size_t at = 0, made = 0;

    if (n > TL_MAX_ENCODED)
        return -1;
    while (at < n) {
        size_t code = in[at];

        if (code == 0 || code > n - at)
            return -1;
        for (size_t i = 1; i < code; i++) {
            if (in[at + i] == 0)
                return -1;
            out[made++] = in[at + i];
        }
        at += code;
        if (at < n)
            out[made++] = 0;
    }
    return (int)made;
}

void tl_header_encode(uint8_t out[TL_HEADER_SIZE], unsigned version, enum tl_frame_kind kind,
                      uint16_t session, uint32_t counter, size_t n)
{
    out[0] = (uint8_t)(version << 4 | (unsigned)kind);
    out[1] = (uint8_t)n;
    out[2] = (uint8_t)session;
    out[3] = (uint8_t)(session >> 8);
    for (int i = 0; i < 4; i++)
        out[4 + i] = (uint8_t)(counter >> (8 * i));
}

bool tl_payload_size_ok(unsigned kind, size_t n)
{
    switch (kind) {
    case TL_FRAME_KIND_HELLO:
        return n == TL_LEN_HELLO;
    case TL_FRAME_KIND_HELLO_RSP:
        return n == TL_LEN_HELLO_RSP;
    case TL_FRAME_KIND_HS1:
        return n == TL_LEN_HS1;
    case TL_FRAME_KIND_HS2:
        return n == TL_LEN_HS2;
    case TL_FRAME_KIND_PAIR1:
        return n == TL_LEN_PAIR1;
    case TL_FRAME_KIND_PAIR2:
        return n == TL_LEN_PAIR2;
    case TL_FRAME_KIND_PAIR3:
        return n == TL_LEN_PAIR3;
    case TL_FRAME_KIND_DATA:
        return n == TL_LEN_DATA_56 || n == TL_LEN_DATA_120 || n == TL_LEN_DATA_226;
    case TL_FRAME_KIND_ALERT:
        return n == TL_LEN_ALERT;
    default:
        return false;
    }
}

/* Only ALERT is of no session, and only DATA is counted. */
static bool header_fits(unsigned kind, uint16_t session, uint32_t counter)
{
    return (session == 0) == (kind == TL_FRAME_KIND_ALERT) &&
           (counter == 0 || kind == TL_FRAME_KIND_DATA);
}

size_t tl_frame_encode(uint8_t out[TL_MAX_WIRE], unsigned version, enum tl_frame_kind kind,
                       uint16_t session, uint32_t counter, const uint8_t *payload, size_t n)
{
    uint8_t *decoded = out + 1; /* COBS moves everything one byte on */
    size_t size = TL_HEADER_SIZE + n;
    uint32_t crc;

    if (!tl_payload_size_ok(kind, n) || !header_fits(kind, session, counter))
        return 0;
    tl_header_encode(decoded, version, kind, session, counter, n);
    memcpy(decoded + TL_HEADER_SIZE, payload, n);
    crc = tl_crc32c(decoded, size);
    for (int i = 0; i < 4; i++)
        decoded[size++] = (uint8_t)(crc >> (8 * i));
    size = tl_cobs_encode(decoded, size, out);
    out[size++] = 0;
    return size;
}

static uint32_t read_u32(const uint8_t *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static bool kind_known(unsigned kind)
{
    return kind <= TL_FRAME_KIND_PAIR3 || kind == TL_FRAME_KIND_DATA ||
           kind == TL_FRAME_KIND_ALERT;
}

static bool version_ok(unsigned version, unsigned kind)
{
    /* What is sent in clear is the same in all versions, and carries the first. */
    if (kind == TL_FRAME_KIND_HELLO || kind == TL_FRAME_KIND_HELLO_RSP ||
        kind == TL_FRAME_KIND_ALERT)
        return version == 1;
    return version >= 1 && version <= TL_VERSION;
}

static enum tl_heard read_frame(uint8_t *held, size_t count, struct tl_frame *frame)
{
    int decoded = tl_cobs_decode(held, count, held);
    size_t size;
    unsigned version, kind;

    if (decoded < 0)
        return TL_HEARD_COBS;
    if ((size_t)decoded < TL_HEADER_SIZE + TL_CRC_SIZE)
        return TL_HEARD_GARBAGE;
    size = (size_t)decoded - TL_CRC_SIZE;
    if (tl_crc32c(held, size) != read_u32(held + size))
        return TL_HEARD_CRC;
    version = held[0] >> 4;
    kind = held[0] & 0xFu;
    if (!version_ok(version, kind))
        return TL_HEARD_VERSION;
    if (!kind_known(kind))
        return TL_HEARD_KIND;
    if (held[1] != size - TL_HEADER_SIZE || !tl_payload_size_ok(kind, held[1]))
        return TL_HEARD_LENGTH;
    if (!header_fits(kind, (uint16_t)(held[2] | held[3] << 8), read_u32(held + 4)))
        return TL_HEARD_HEADER;
    frame->version = version;
    frame->kind = (enum tl_frame_kind)kind;
    frame->session = (uint16_t)(held[2] | held[3] << 8);
    frame->counter = read_u32(held + 4);
    frame->n = held[1];
    frame->header = held;
    frame->payload = held + TL_HEADER_SIZE;
    return TL_HEARD_FRAME;
}

void tl_deframer_reset(struct tl_deframer *deframer)
{
    deframer->count = 0;
    deframer->drowned = false;
}

enum tl_heard tl_deframer_feed(struct tl_deframer *deframer, uint8_t byte, struct tl_frame *frame)
{
    size_t count = deframer->count;

    if (byte != 0) {
        if (deframer->drowned)
            return TL_HEARD_NOTHING;
        if (count == TL_MAX_ENCODED) {
            /* Told at the byte that is one too many: the next 0x00 may never come. */
            deframer->count = 0;
            deframer->drowned = true;
            return TL_HEARD_OVERSIZE;
        }
        deframer->held[count] = byte;
        deframer->count = (uint8_t)(count + 1);
        return TL_HEARD_NOTHING;
    }
    deframer->count = 0;
    if (deframer->drowned) {
        deframer->drowned = false;
        return TL_HEARD_NOTHING;
    }
    if (count == 0)
        return TL_HEARD_NOTHING; /* two 0x00 in a row mean nothing */
    return read_frame(deframer->held, count, frame);
}
