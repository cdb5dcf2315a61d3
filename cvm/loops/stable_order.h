/* The positions that sort elements, those of equal ones in their order. Elements are ordered by keys: integers without
   signs, in the order of the elements, or complex numbers themselves. */
#ifndef SYMCOMP_STABLE_ORDER_H
#define SYMCOMP_STABLE_ORDER_H

#include <string.h>
#include "sorting.h"

/* Up to FEW_KEYS keys are sorted by insertion. From MANY_KEYS on, they are sorted by their higher bytes, until these tell
   BITS_BESIDE bits more than the number of keys has. The numbers were measured. */
enum { FEW_KEYS = 16, MANY_KEYS = 512, BITS_BESIDE = 6 };

/* Keys of numbers: those of integers with signs, and of floats, whose zeros are one number, and NaN the last one. */
#define KEYS_OF_INTEGERS(BITS)                                                                     \
    static inline uint##BITS##_t key_of_signed_##BITS(uint##BITS##_t bits)                         \
    {                                                                                              \
        return bits ^ (uint##BITS##_t)1 << (BITS - 1);                                             \
    }
#define KEYS_OF_FLOATS(BITS, INFINITY_BITS)                                                        \
    static inline uint##BITS##_t key_of_float_##BITS(uint##BITS##_t bits)                          \
    {                                                                                              \
        const uint##BITS##_t sign = (uint##BITS##_t)1 << (BITS - 1), size = bits & ~sign;          \
        if (size > INFINITY_BITS)                                                                  \
            return (uint##BITS##_t)-1;                                                             \
        return size == 0 ? sign : bits & sign ? (uint##BITS##_t)~bits : bits | sign;               \
    }
#define KEY_ITSELF(key) key

KEYS_OF_INTEGERS(8)
KEYS_OF_INTEGERS(16)
KEYS_OF_INTEGERS(32)
KEYS_OF_INTEGERS(64)
KEYS_OF_FLOATS(16, 0x7c00)
KEYS_OF_FLOATS(32, UINT32_C(0x7f800000))
KEYS_OF_FLOATS(64, UINT64_C(0x7ff0000000000000))

#define LIST_KEYS(KEY, KEY_OF)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                              \
        KEY bits;                                                                                  \
        memcpy(&bits, x + i * step, sizeof(KEY));                                                  \
        keys[i] = KEY_OF(bits);                                                                    \
    }

#define INSERT_KEYS(NAME, KEY, IS_BEFORE)                                                          \
    static void insert_##NAME(int64_t n, KEY *key, int64_t *place)                                 \
    {                                                                                              \
        for (int64_t k, i = 1; i < n; i++) {                                                       \
            const KEY moved = key[i];                                                              \
            const int64_t its_place = place[i];                                                    \
            for (k = i; k > 0 && IS_BEFORE(moved, key[k - 1]); k--) {                              \
                key[k] = key[k - 1];                                                               \
                place[k] = place[k - 1];                                                           \
            }                                                                                      \
            key[k] = moved;                                                                        \
            place[k] = its_place;                                                                  \
        }                                                                                          \
    }

/* The first half of keys that are no few is in the spare memory while it is merged with the other one. */
#define MERGE_KEYS(NAME, KEY, IS_BEFORE)                                                           \
    INSERT_KEYS(NAME, KEY, IS_BEFORE)                                                              \
    static void merge_##NAME(int64_t n, KEY *key, int64_t *place, KEY *spare, int64_t *spare_place) \
    {                                                                                              \
        const int64_t half = n / 2;                                                                \
        int64_t i = 0, k = half, at = 0;                                                           \
        if (n <= FEW_KEYS) {                                                                       \
            insert_##NAME(n, key, place);                                                          \
            return;                                                                                \
        }                                                                                          \
        merge_##NAME(half, key, place, spare, spare_place);                                        \
        merge_##NAME(n - half, key + half, place + half, spare, spare_place);                      \
        if (!IS_BEFORE(key[half], key[half - 1]))                                                  \
            return;                                                                                \
        memcpy(spare, key, (size_t)half * sizeof(KEY));                                            \
        memcpy(spare_place, place, (size_t)half * sizeof(int64_t));                                \
        while (i < half && k < n) {                                                                \
            const int64_t second = IS_BEFORE(key[k], spare[i]);                                    \
            const KEY *from = second ? key + k : spare + i;                                        \
            const int64_t *its_place = second ? place + k : spare_place + i;                       \
            key[at] = *from;                                                                       \
            place[at++] = *its_place;                                                              \
            k += second;                                                                           \
            i += 1 - second;                                                                       \
        }                                                                                          \
        memcpy(key + at, spare + i, (size_t)(half - i) * sizeof(KEY));                             \
        memcpy(place + at, spare_place + i, (size_t)(half - i) * sizeof(int64_t));                 \
    }

#define IS_LESS(x, y) ((x) < (y))

INSERT_KEYS(8, uint8_t, IS_LESS)
INSERT_KEYS(16, uint16_t, IS_LESS)
MERGE_KEYS(32, uint32_t, IS_LESS)
MERGE_KEYS(64, uint64_t, IS_LESS)
MERGE_KEYS(c8, float _Complex, IS_SMALLER_c8)
MERGE_KEYS(c16, double _Complex, IS_SMALLER_c16)

/* Put positions in the order of the byte of their keys that begins at a bit; those of n elements in their order if
   `from` is 0. */
#define ORDER_BY_BYTE(BITS)                                                                        \
    static void order_by_byte_##BITS(int64_t n, const uint##BITS##_t *keys, int bit,               \
                                     const int64_t *from, int64_t *to)                             \
    {                                                                                              \
        int64_t next[256] = {0}, total = 0;                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            next[keys[i] >> bit & 255]++;                                                          \
        for (int digit = 0; digit < 256; digit++) {                                                \
            const int64_t count = next[digit];                                                     \
            next[digit] = total;                                                                   \
            total += count;                                                                        \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const int64_t place = from ? from[i] : i;                                              \
            to[next[keys[place] >> bit & 255]++] = place;                                          \
        }                                                                                          \
    }

ORDER_BY_BYTE(8)
ORDER_BY_BYTE(16)

/* About how many bits of a number the bytes tell that were counted. */
static inline int bits_told(const int64_t *counts)
{
    int distinct = 0;
    for (int digit = 0; digit < 256; digit++)
        distinct += counts[digit] > 0;
    return 31 - __builtin_clz((unsigned)distinct);
}

/* Sort keys and positions by one byte of the keys after the other, but for bytes that are the same in all keys: Knuth,
   TAOCP 3, 5.2.5, algorithm R. Where the higher bytes tell nearly all keys apart, merging does the rest: it is fast for
   keys nearly in order. Keys in order stay where they are. */
#define ORDER_BY_BYTES(BITS)                                                                       \
    static void order_by_bytes_##BITS(int64_t n, uint##BITS##_t *keys, int64_t *places,            \
                                      uint##BITS##_t *spare, int64_t *spare_places)                \
    {                                                                                              \
        int64_t next[BITS / 8][256] = {{0}}, in_order = 1, *given = places;                        \
        int lowest = BITS / 8, bits = __builtin_clzll((unsigned long long)n) - 64 - BITS_BESIDE;   \
        for (int64_t i = 1; in_order < n && keys[i] >= keys[i - 1]; i++)                           \
            in_order++;                                                                            \
        if (in_order == n)                                                                         \
            return;                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const uint##BITS##_t key = keys[i];                                                    \
            _Pragma("GCC unroll 8")                                                                \
            for (int byte = 0; byte < BITS / 8; byte++)                                            \
                next[byte][key >> 8 * byte & 255]++;                                               \
        }                                                                                          \
        while (lowest > 0 && bits < 0)                                                             \
            bits += bits_told(next[--lowest]);                                                     \
        lowest = lowest > 1 ? lowest : 0; /* Merging takes as long as one byte. */                 \
        for (int byte = lowest; byte < BITS / 8; byte++) {                                         \
            int64_t *at = next[byte], total = 0;                                                   \
            uint##BITS##_t *other = spare;                                                         \
            int64_t *other_places = spare_places;                                                  \
            if (at[keys[0] >> 8 * byte & 255] == n)                                                \
                continue;                                                                          \
            for (int digit = 0; digit < 256; digit++) {                                            \
                const int64_t count = at[digit];                                                   \
                at[digit] = total;                                                                 \
                total += count;                                                                    \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const int64_t to = at[keys[i] >> 8 * byte & 255]++;                                \
                spare[to] = keys[i];                                                               \
                spare_places[to] = places[i];                                                      \
            }                                                                                      \
            spare = keys;                                                                          \
            spare_places = places;                                                                 \
            keys = other;                                                                          \
            places = other_places;                                                                 \
        }                                                                                          \
        if (lowest > 0)                                                                            \
            merge_##BITS(n, keys, places, spare, spare_places);                                    \
        if (places != given)                                                                       \
            memcpy(given, places, (size_t)n * sizeof(int64_t));                                    \
    }

ORDER_BY_BYTES(32)
ORDER_BY_BYTES(64)

/* Memory for keys, and behind it, at whole words, for spare ones and for spare positions: halves of them for merging. */
static int64_t bytes_of_keys(int64_t size, int64_t n)
{
    return (size * n + 7) / 8 * 8;
}

int64_t memory_of_order(char kind, int64_t size, int64_t n)
{
    const int known = kind == 'c' ? size == 8 || size == 16
                                  : (kind == 'f' ? size > 1 : kind == 'i' || kind == 'u' || kind == 'b') && size <= 8;
    if (!known)
        return -1;
    if (kind != 'c' && size <= 2)
        return bytes_of_keys(size, n) + (size == 2 ? 8 * n : 0);
    const int64_t spare = kind == 'c' || n < MANY_KEYS ? n / 2 : n;
    return bytes_of_keys(size, n) + bytes_of_keys(size, spare) + 8 * spare;
}

#define BY_BYTES(BITS, KEY_OF)                                                                     \
    {                                                                                              \
        uint##BITS##_t *keys = (uint##BITS##_t *)memory;                                           \
        int64_t *spare = (int64_t *)(memory + bytes_of_keys(size, n));                             \
        LIST_KEYS(uint##BITS##_t, KEY_OF)                                                          \
        if (n <= (BITS == 8 ? FEW_KEYS : 2 * FEW_KEYS)) {                                          \
            for (int64_t i = 0; i < n; i++)                                                        \
                places[i] = i;                                                                     \
            insert_##BITS(n, keys, places);                                                        \
            return;                                                                                \
        }                                                                                          \
        order_by_byte_##BITS(n, keys, 0, 0, BITS == 8 ? places : spare);                           \
        if (BITS == 16)                                                                            \
            order_by_byte_##BITS(n, keys, 8, spare, places);                                       \
        return;                                                                                    \
    }
#define BY_MERGING(NAME, KEY, KEY_OF)                                                              \
    {                                                                                              \
        KEY *keys = (KEY *)memory, *spare = (KEY *)(memory + bytes_of_keys(size, n));              \
        LIST_KEYS(KEY, KEY_OF)                                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            places[i] = i;                                                                         \
        merge_##NAME(n, keys, places, spare,                                                       \
                     (int64_t *)((char *)spare + bytes_of_keys(size, n / 2)));                     \
        return;                                                                                    \
    }
#define BY_KEYS(BITS, KEY_OF)                                                                      \
    {                                                                                              \
        uint##BITS##_t *keys = (uint##BITS##_t *)memory;                                           \
        uint##BITS##_t *spare = (uint##BITS##_t *)(memory + bytes_of_keys(size, n));               \
        if (n < MANY_KEYS)                                                                         \
            BY_MERGING(BITS, uint##BITS##_t, KEY_OF)                                               \
        LIST_KEYS(uint##BITS##_t, KEY_OF)                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            places[i] = i;                                                                         \
        order_by_bytes_##BITS(n, keys, places, spare,                                              \
                              (int64_t *)((char *)spare + bytes_of_keys(size, n)));                \
        return;                                                                                    \
    }
void order_of(char kind, int64_t size, int64_t n, const char *x, int64_t step, int64_t *places,
              char *memory)
{
    if (kind == 'c') {
        if (size == 8)
            BY_MERGING(c8, float _Complex, KEY_ITSELF)
        BY_MERGING(c16, double _Complex, KEY_ITSELF)
    }
    switch (size) {
    case 1:
        if (kind == 'i')
            BY_BYTES(8, key_of_signed_8)
        BY_BYTES(8, KEY_ITSELF)
    case 2:
        if (kind == 'f')
            BY_BYTES(16, key_of_float_16)
        if (kind == 'i')
            BY_BYTES(16, key_of_signed_16)
        BY_BYTES(16, KEY_ITSELF)
    case 4:
        if (kind == 'f')
            BY_KEYS(32, key_of_float_32)
        if (kind == 'i')
            BY_KEYS(32, key_of_signed_32)
        BY_KEYS(32, KEY_ITSELF)
    default:
        if (kind == 'f')
            BY_KEYS(64, key_of_float_64)
        if (kind == 'i')
            BY_KEYS(64, key_of_signed_64)
        BY_KEYS(64, KEY_ITSELF)
    }
}

#endif
