/* Included for each dtype T of entries and INDEX of indices: entries sorted by their indices. */

static void NAME(insert_entries)(INDEX *v, T *z, int64_t n)
{
    int64_t i, k;
    for (i = 1; i < n; i++) {
        const INDEX moved = v[i];
        const T entry = z[i];
        for (k = i; k > 0 && v[k - 1] > moved; k--) {
            v[k] = v[k - 1];
            z[k] = z[k - 1];
        }
        v[k] = moved;
        z[k] = entry;
    }
}

/* Sort entries by their indices; those at one place stay in their order. The spare
   memory has room for half of them: there lies the first half while the halves of more than FEW_INDICES are merged. */
static void NAME(sort_entries)(INDEX *v, T *z, int64_t n, INDEX *spare, T *spare_z)
{
    const int64_t half = n / 2;
    int64_t i = 0, k = half, at = 0;
    if (n <= FEW_INDICES) {
        NAME(insert_entries)(v, z, n);
        return;
    }
    NAME(sort_entries)(v, z, half, spare, spare_z);
    NAME(sort_entries)(v + half, z + half, n - half, spare, spare_z);
    if (v[half - 1] <= v[half])
        return;
    memcpy(spare, v, (size_t)half * sizeof(INDEX));
    memcpy(spare_z, z, (size_t)half * sizeof(T));
    while (i < half && k < n)
        if (spare[i] <= v[k]) {
            v[at] = spare[i];
            z[at++] = spare_z[i++];
        } else {
            v[at] = v[k];
            z[at++] = z[k++];
        }
    memcpy(v + at, spare + i, (size_t)(half - i) * sizeof(INDEX));
    memcpy(z + at, spare_z + i, (size_t)(half - i) * sizeof(T));
}
