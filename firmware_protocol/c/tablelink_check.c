/* Holds tablelink_frame and tablelink_messages.h to the golden vectors: a line in, a line out.
 *
 *   crc HEX                              checksum as 8 digits
 *   cobs HEX | uncobs HEX                the other form, or "no"
 *   frame VERSION KIND SESSION COUNTER HEX   the frame on the wire, or "no"
 *   feed HEX                             for each frame and damage its words, then "."
 *   fields STRUCT HEX                    field=HEX for each field, as the struct lies over the bytes
 *
 * HEX is "-" for no bytes. Numbers are decimal. Ends with 1 at a line that it does not know. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tablelink_frame.h"

#define LINE 200000

static uint8_t bytes[LINE / 2];

static size_t read_hex(const char *text)
{
    size_t n = 0;
    unsigned value;

    if (strcmp(text, "-") == 0)
        return 0;
    while (text[2 * n] != '\0' && sscanf(text + 2 * n, "%2x", &value) == 1)
        bytes[n++] = (uint8_t)value;
    return n;
}

static void print_hex(const uint8_t *data, size_t n)
{
    if (n == 0)
        fputs("-", stdout);
    for (size_t at = 0; at < n; at++)
        printf("%02x", data[at]);
}

static void feed(size_t n)
{
    static const char *const causes[] = {"", "", "oversize", "cobs", "garbage",
                                         "crc", "version", "kind", "length", "header"};
    struct tl_deframer deframer;
    struct tl_frame frame;

    tl_deframer_reset(&deframer);
    for (size_t at = 0; at < n; at++) {
        enum tl_heard heard = tl_deframer_feed(&deframer, bytes[at], &frame);

        if (heard == TL_HEARD_FRAME) {
            printf("frame:%u:%u:%u:%" PRIu32 ":", frame.version, (unsigned)frame.kind,
                   (unsigned)frame.session, frame.counter);
            print_hex(frame.payload, frame.n);
            fputs(" ", stdout);
        } else if (heard != TL_HEARD_NOTHING) {
            printf("damage:%s ", causes[heard]);
        }
    }
    fputs(".", stdout);
}

static void fields(const char *name, size_t n)
{
#define PRINT(structure, field)                                                                    \
    if (strcmp(name, #structure) == 0 && n == sizeof(struct tl_##structure)) {                     \
        struct tl_##structure laid;                                                                \
        memcpy(&laid, bytes, sizeof laid);                                                         \
        printf(#field "=");                                                                        \
        print_hex((const uint8_t *)&laid + offsetof(struct tl_##structure, field),                 \
                  sizeof laid.field);                                                              \
        fputs(" ", stdout);                                                                        \
    }
    TL_EACH_FIELD(PRINT)
#undef PRINT
    fputs(".", stdout);
}

static bool run(char *line)
{
    static uint8_t out[TL_MAX_WIRE];
    static const char blank[] = " \n";
    const char *word = strtok(line, blank);
    const char *first = strtok(NULL, blank);
    size_t n;

    if (word == NULL || first == NULL)
        return false;
    if (strcmp(word, "crc") == 0) {
        n = read_hex(first);
        printf("%08" PRIx32, tl_crc32c(bytes, n));
    } else if (strcmp(word, "cobs") == 0) {
        n = read_hex(first);
        n = tl_cobs_encode(bytes, n, out);
        n == 0 ? (void)fputs("no", stdout) : print_hex(out, n);
    } else if (strcmp(word, "uncobs") == 0) {
        int decoded;

        n = read_hex(first);
        decoded = tl_cobs_decode(bytes, n, bytes);
        decoded < 0 ? (void)fputs("no", stdout) : print_hex(bytes, (size_t)decoded);
    } else if (strcmp(word, "frame") == 0) {
        unsigned long numbers[3];

        for (int i = 0; i < 3; i++) {
            const char *next = strtok(NULL, blank);

            if (next == NULL)
                return false;
            numbers[i] = strtoul(next, NULL, 10);
        }
        word = strtok(NULL, blank);
        if (word == NULL)
            return false;
        n = read_hex(word);
        n = tl_frame_encode(out, (unsigned)strtoul(first, NULL, 10),
                            (enum tl_frame_kind)numbers[0], (uint16_t)numbers[1],
                            (uint32_t)numbers[2], bytes, n);
        n == 0 ? (void)fputs("no", stdout) : print_hex(out, n);
    } else if (strcmp(word, "feed") == 0) {
        feed(read_hex(first));
    } else if (strcmp(word, "fields") == 0) {
        const char *hex = strtok(NULL, blank);

        if (hex == NULL)
            return false;
        fields(first, read_hex(hex));
    } else {
        return false;
    }
    fputs("\n", stdout);
    return true;
}

int main(void)
{
    static char line[LINE];

    while (fgets(line, sizeof line, stdin) != NULL) {
        if (!run(line)) {
            fputs("a line that is not known\n", stderr);
            return 1;
        }
    }
    return 0;
}
