/* The memory of large arrays of NumPy: it begins at a cache line, so that vectors read from it lie in one line each.
   NumPy's own begins 16 bytes after one where it is large. The arrays own it, so calls may write over them. */
#ifndef SYMCOMP_ARRAY_MEMORY_H
#define SYMCOMP_ARRAY_MEMORY_H

#include <sys/mman.h>

#define CACHE_LINE 64
#define ALIGNED_ARRAY 4096       /* bytes; making smaller ones may take longer than computing them */
#define LARGE_PAGES (4 << 20)    /* bytes from which NumPy, too, asks for large pages */
#define PAGE 4096

/* The first cache line in a block of malloc that leaves room for the block's address before it. */
static char *line_in(const char *block)
{
    return (char *)(((uintptr_t)block + CACHE_LINE) & ~(uintptr_t)(CACHE_LINE - 1));
}

static void *from_cache_line(char *found, size_t size)
{
    char *start = line_in(found);
    if (found == NULL)
        return NULL;
    ((char **)start)[-1] = found;
#ifdef MADV_HUGEPAGE
    if (size >= LARGE_PAGES) {
        const uintptr_t first = ((uintptr_t)start + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
        madvise((void *)first, size - (first - (uintptr_t)start), MADV_HUGEPAGE);
    }
#endif
    return start;
}

static int is_too_large(size_t size) { return size > SIZE_MAX - CACHE_LINE; }

static void *malloc_from_line(void *context, size_t size)
{
    (void)context;
    return is_too_large(size) ? NULL : from_cache_line((char *)malloc(size + CACHE_LINE), size);
}

static void *calloc_from_line(void *context, size_t n, size_t each)
{
    size_t size;
    (void)context;
    if (__builtin_mul_overflow(n, each, &size) || is_too_large(size))
        return NULL;
    return from_cache_line((char *)calloc(size + CACHE_LINE, 1), size);
}

static void free_from_line(void *context, void *start, size_t size)
{
    (void)context;
    (void)size;
    if (start != NULL)
        free(((char **)start)[-1]);
}

/* Elements keep their distance from the beginning of the block, and the cache line may not. */
static void *realloc_from_line(void *context, void *start, size_t size)
{
    char *before, *found;
    size_t gap;
    if (start == NULL)
        return malloc_from_line(context, size);
    before = ((char **)start)[-1];
    gap = (size_t)((char *)start - before);
    found = is_too_large(size) ? NULL : (char *)realloc(before, size + CACHE_LINE);
    if (found == NULL)
        return NULL;
    memmove(line_in(found), found + gap, size);
    return from_cache_line(found, size);
}

static PyDataMem_Handler from_lines = {
    "symcomp_cache_lines", 1,
    {NULL, malloc_from_line, calloc_from_line, realloc_from_line, free_from_line},
};

/* Let arrays that are made from here on begin at cache lines. Returns what ``end_cache_lines`` needs; NULL: an
   exception. */
static PyObject *__attribute__((noinline, cold)) begin_cache_lines(void)
{
    static PyObject *handler;
    if (handler == NULL)
        handler = PyCapsule_New(&from_lines, "mem_handler", NULL);
    return handler == NULL ? NULL : PyDataMem_SetHandler(handler);
}

/* Let NumPy make arrays as before; returns the array, or NULL. */
static PyObject *__attribute__((noinline, cold)) end_cache_lines(PyObject *before, PyObject *array)
{
    PyObject *ours = PyDataMem_SetHandler(before);
    Py_DECREF(before);
    if (ours == NULL)
        Py_CLEAR(array);
    Py_XDECREF(ours);
    return array;
}

/* A copy of an array that keeps its order. */
static PyObject *__attribute__((noinline)) own_copy(PyObject *array)
{
    PyObject *before;
    if (PyArray_NBYTES((PyArrayObject *)array) < ALIGNED_ARRAY)
        return PyArray_NewCopy((PyArrayObject *)array, NPY_KEEPORDER);
    before = begin_cache_lines();
    if (before == NULL)
        return NULL;
    return end_cache_lines(before, PyArray_NewCopy((PyArrayObject *)array, NPY_KEEPORDER));
}

#endif
