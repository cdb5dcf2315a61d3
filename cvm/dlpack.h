/* DLPack, version 1: how libraries give arrays to one another without copies. The layout is the
   interface's; https://dmlc.github.io/dlpack describes it. */
#ifndef SYMCOMP_DLPACK_H
#define SYMCOMP_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0 };
enum { DLPACK_READ_ONLY = 1, DLPACK_IS_COPY = 2 };

typedef struct {
    int32_t type, number;
} dlpack_device;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} dlpack_dtype;

/* Strides count elements; none: C order. */
typedef struct {
    void *data;
    dlpack_device device;
    int32_t ndim;
    dlpack_dtype dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dlpack_tensor;

typedef struct dlpack_managed {
    dlpack_tensor tensor;
    void *owner;
    void (*deleter)(struct dlpack_managed *);
} dlpack_managed;

typedef struct dlpack_versioned {
    uint32_t major, minor;
    void *owner;
    void (*deleter)(struct dlpack_versioned *);
    uint64_t flags;
    dlpack_tensor tensor;
} dlpack_versioned;

#endif
