/* Lodgers: values of a run that lie in the array of a result before that is written. The array is made when the run
   begins, and the arena is smaller. */
#ifndef SYMCOMP_LODGERS_H
#define SYMCOMP_LODGERS_H

#include "sections.h"

/* Smaller values lie in the arena: it takes about as long to find a place as it saves. */
enum { LEAST_LODGER = 4096 };

/* The array that a loop which may end early makes of its rows, while a call runs; and these while the loop does. */
static int64_t bytes_of_rows(const Storage *x, int call)
{
    const int64_t grown = __atomic_load_n(&x->grown, __ATOMIC_RELAXED);
    if (grown == 0 || call < x->first)
        return 0;
    return __atomic_load_n(&x->bytes, __ATOMIC_RELAXED) + (call == x->first ? grown : 0);
}

/* The arrays of a segment while a call runs, or at its end. */
static int64_t bytes_of_arrays(const Segment *s, int call)
{
    int64_t bytes = 0;
    int i;
    for (i = s->first_own_storage; i < s->n_storages; i++) {
        const Storage *x = s->storages[i];
        if (x->kind == LATE)
            bytes += bytes_of_rows(x, call);
        if ((x->kind == RESULT && !s->code->is_nested) || x->kind == ARRAY)
            if (!is_made_late(s->code, x->kind, x->bytes) ||
                ((x->is_host || x->first <= call) && call < x->last))
                bytes += x->bytes;
    }
    return bytes;
}

/* The most bytes that the arrays of a segment take at once while its calls run. */
static int64_t peak_of_arrays(const Segment *s)
{
    int64_t most = 0;
    int call;
    for (call = 0; call <= s->n_calls; call++) {
        const int64_t bytes = bytes_of_arrays(s, call);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* The latest needed first; of equal ones the larger. */
static int compare_lodgers(const void *first, const void *second)
{
    const Storage *a = *(Storage *const *)first, *b = *(Storage *const *)second;
    if (a->last != b->last)
        return a->last < b->last ? 1 : -1;
    return compare_storages(first, second);
}

static int compare_hosts(const void *first, const void *second)
{
    const Storage *a = *(Storage *const *)first, *b = *(Storage *const *)second;
    if (a->first != b->first)
        return a->first < b->first ? 1 : -1;
    return compare_storages(first, second);
}

/* Give a host the values that are needed no more when it is written, as many as have room. */
static void fill_host(Storage *host, Storage *const *values, int n, Storage **by_offset)
{
    int i, count = 0;
    for (i = 0; i < n; i++) {
        Storage *x = values[i];
        if (x->host != NULL || x->last > host->first)
            continue;
        x->offset = lowest_offset(by_offset, count, x);
        if (x->offset + x->bytes > host->bytes)
            continue;
        x->host = host;
        host->is_host = 1;
        insert_by_offset(by_offset, count++, x);
    }
}

/* Let values lie in the arrays of results. 0: there is no memory. */
static int fill_hosts(Segment *s)
{
    const int n = s->n_storages - s->first_own_storage;
    Storage **own = s->storages + s->first_own_storage;
    Storage **hosts = (Storage **)malloc(3 * (size_t)(n > 0 ? n : 1) * sizeof(Storage *));
    Storage **values = hosts + n, **by_offset = values + n;
    int i, n_hosts = 0, n_values = 0;
    if (hosts == NULL)
        return 0;
    for (i = 0; i < n; i++)
        if (own[i]->kind == RESULT && own[i]->bytes >= MEDIUM_ARRAY)
            hosts[n_hosts++] = own[i];
        else if (own[i]->kind == ARENA && own[i]->bytes >= LEAST_LODGER)
            values[n_values++] = own[i];
    qsort(hosts, (size_t)n_hosts, sizeof(Storage *), compare_hosts);
    qsort(values, (size_t)n_values, sizeof(Storage *), compare_lodgers);
    for (i = 0; i < n_hosts; i++)
        fill_host(hosts[i], values, n_values, by_offset);
    free(hosts);
    return 1;
}

static void empty_hosts(Segment *s)
{
    int i;
    for (i = s->first_own_storage; i < s->n_storages; i++) {
        s->storages[i]->host = NULL;
        s->storages[i]->is_host = 0;
    }
}

/* Note the lodgers, and the hosts that are made when a run begins. 0: there is no memory. */
static int note_lodgers(Segment *s)
{
    int i;
    s->lodgers = (int *)pool_new(&s->pool, (size_t)s->n_storages * sizeof(int));
    if (s->lodgers == NULL)
        return 0;
    for (i = s->first_own_storage; i < s->n_storages; i++) {
        const Storage *x = s->storages[i];
        if (x->host != NULL)
            s->lodgers[s->n_lodgers++] = i;
        if (x->is_host && is_made_late(s->code, x->kind, x->bytes))
            s->made[s->n_made++] = i;
    }
    return 1;
}

/* Move values from the arena into arrays of results, if a run takes less memory then; not where sections change the
   order of calls. The bytes of the arena; -1: there is no memory. */
static int64_t plan_lodgers(Segment *s, int64_t arena_bytes)
{
    Storage **own = s->storages + s->first_own_storage;
    const int n = s->n_storages - s->first_own_storage;
    int64_t before, bytes;
    if (s->code->is_nested || s->n_sections > 0 || arena_bytes < LEAST_LODGER)
        return arena_bytes;
    before = peak_of_arrays(s) + arena_bytes;
    if (!fill_hosts(s))
        return -1;
    bytes = assign_offsets(own, n);
    if (bytes >= 0 && peak_of_arrays(s) + bytes < before)
        return note_lodgers(s) ? bytes : -1;
    empty_hosts(s);
    return assign_offsets(own, n);
}

#endif
