/* TableLink frames for firmware: COBS, CRC-32C, frames in and out. No malloc, no I/O; one deframer
 * takes 258 bytes. C11; needs nothing but tablelink_messages.h and <string.h>. */
#ifndef TABLELINK_FRAME_H
#define TABLELINK_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tablelink_messages.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TL_MAX_PAYLOAD (TL_MAX_DECODED - TL_HEADER_SIZE - TL_CRC_SIZE)
#define TL_MAX_WIRE (TL_MAX_ENCODED + 1u)

/* CRC-32C (Castagnoli) of n bytes. */
uint32_t tl_crc32c(const uint8_t *data, size_t n);

/* COBS of n <= 254 bytes into n + 1. `out` may be one byte before `in`, else they do not overlap.
 * Returns the length, 0 if n is too large. */
size_t tl_cobs_encode(const uint8_t *in, size_t n, uint8_t *out);

/* The n <= 255 bytes that stand between two 0x00 back to at most 254. `out` may be `in`.
 * Returns the length, or -1 if they are no COBS. */
int tl_cobs_decode(const uint8_t *in, size_t n, uint8_t *out);

/* The 8 bytes of a header, which are the associated data of DATA. */
void tl_header_encode(uint8_t out[TL_HEADER_SIZE], unsigned version, enum tl_frame_kind kind,
                      uint16_t session, uint32_t counter, size_t n);

/* A whole frame with its 0x00 into at most TL_MAX_WIRE bytes. Returns the length, 0 if the kind may
 * not have this length, session or counter. */
size_t tl_frame_encode(uint8_t out[TL_MAX_WIRE], unsigned version, enum tl_frame_kind kind,
                       uint16_t session, uint32_t counter, const uint8_t *payload, size_t n);

/* Whether a payload of this kind may have this length. */
bool tl_payload_size_ok(unsigned kind, size_t n);

struct tl_frame {
    unsigned version;
    enum tl_frame_kind kind;
    uint16_t session;
    uint32_t counter;
    size_t n;
    const uint8_t *header;  /* 8 bytes; valid until the next byte is fed */
    const uint8_t *payload; /* n bytes; likewise */
};

/* What a byte completed. All above TL_HEARD_FRAME is damage, in the order in which it is looked
 * for; count it. */
enum tl_heard {
    TL_HEARD_NOTHING = 0,
    TL_HEARD_FRAME,
    TL_HEARD_OVERSIZE, /* more than TL_MAX_ENCODED bytes without a 0x00 */
    TL_HEARD_COBS,     /* a COBS code points beyond the end */
    TL_HEARD_GARBAGE,  /* too short for header and CRC */
    TL_HEARD_CRC,      /* wrong CRC: noise, or a part was lost */
    TL_HEARD_VERSION,  /* CRC right, version unknown */
    TL_HEARD_KIND,     /* CRC right, kind unknown */
    TL_HEARD_LENGTH,   /* CRC right, n disagrees with the frame's length or with its kind */
    TL_HEARD_HEADER,   /* CRC right, session id or counter is none that the kind may have */
};

struct tl_deframer {
    uint8_t held[TL_MAX_ENCODED];
    uint8_t count;
    bool drowned;
};

/* All zeros is a fresh deframer, too. */
void tl_deframer_reset(struct tl_deframer *deframer);

/* Feed one byte. `frame` is written when TL_HEARD_FRAME is returned. */
enum tl_heard tl_deframer_feed(struct tl_deframer *deframer, uint8_t byte, struct tl_frame *frame);

#ifdef __cplusplus
}
#endif

#endif
