/* Memory that is taken piece by piece and given back all at once. */
#ifndef SYMCOMP_POOL_H
#define SYMCOMP_POOL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Each chunk is twice as large as the one before, up to the largest. */
enum { FIRST_CHUNK = 2016, LARGEST_CHUNK = 1 << 16 };

typedef struct Chunk {
    struct Chunk *next;
    size_t size;
} Chunk;

/* The latest chunk first, of which the bytes from ``at`` to ``end`` are free. */
typedef struct {
    Chunk *first;
    char *at, *end;
} Pool;

/* Zero memory by the function of the C library. Where compilers know the size, they may write an instruction
   that takes tens of cycles to begin ("rep stos"). */
static inline void set_to_zero(void *memory, size_t size)
{
    __asm__("" : "+r"(size));
    memset(memory, 0, size);
}

/* All of the latest chunk is free. */
static void begin_again(Pool *pool)
{
    pool->at = (char *)(pool->first + 1);
    pool->end = pool->at + pool->first->size;
}

/* Add a chunk; 0 if there is no memory. */
static int add_chunk(Pool *pool, size_t size)
{
    Chunk *chunk = (Chunk *)malloc(sizeof(Chunk) + size);
    if (chunk == NULL)
        return 0;
    chunk->next = pool->first;
    chunk->size = size;
    pool->first = chunk;
    begin_again(pool);
    return 1;
}

/* Begin a chunk with room for a piece; 0 if there is no memory. */
static int begin_chunk(Pool *pool, size_t size)
{
    size_t room = pool->first == NULL ? FIRST_CHUNK : 2 * pool->first->size;
    room = room > LARGEST_CHUNK ? LARGEST_CHUNK : room;
    return add_chunk(pool, room < size ? size : room);
}

/* Return memory, aligned to 16 bytes, that lives as long as the pool; NULL if there is none. */
static inline void *pool_take(Pool *pool, size_t size)
{
    void *found;
    size = (size + 15) & ~(size_t)15;
    if ((size_t)(pool->end - pool->at) <= size && !begin_chunk(pool, size))
        return NULL;
    found = pool->at;
    pool->at += size;
    return found;
}

/* The same, zeroed. */
static inline void *pool_new(Pool *pool, size_t size)
{
    void *found = pool_take(pool, size);
    if (found != NULL)
        set_to_zero(found, size);
    return found;
}

/* Return a copy that lives as long as the pool; NULL if there is no memory. */
static inline void *pool_copy(Pool *pool, const void *from, size_t size)
{
    void *found = pool_take(pool, size);
    if (found != NULL && size)
        memcpy(found, from, size);
    return found;
}

static void pool_free(Pool *pool)
{
    Chunk *chunk = pool->first;
    while (chunk != NULL) {
        Chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    memset(pool, 0, sizeof(Pool));
}

/* Give back everything but the latest chunk, which is used again unless it is very large. */
static void pool_reset(Pool *pool)
{
    Chunk *latest = pool->first;
    if (latest == NULL)
        return;
    if (latest->size > LARGEST_CHUNK) {
        pool_free(pool);
        return;
    }
    pool->first = latest->next;
    pool_free(pool);
    latest->next = NULL;
    pool->first = latest;
    begin_again(pool);
}

/* Enlarge an array to ``wanted`` elements; 0 if there is no memory. */
static int enlarge(void **elements, int wanted, int *capacity, size_t size)
{
    void *larger = realloc(*elements, (size_t)wanted * size);
    if (larger == NULL)
        return 0;
    *elements = larger;
    *capacity = wanted;
    return 1;
}

/* Make room for one more element in a growing array; 0 if there is no memory. */
static inline int make_room(void **elements, int n, int *capacity, size_t size)
{
    return n < *capacity || enlarge(elements, *capacity ? 2 * *capacity : 16, capacity, size);
}

#endif
