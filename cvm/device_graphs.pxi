# Work on devices that the driver recorded, and enqueues again by one call.

cdef enum:
    # Regions of fewer, or more, pieces of work are not enqueued as graphs.
    FEWEST_IN_GRAPH = 3
    MOST_IN_GRAPH = 4096
    # The most graphs of a plan, each for other addresses.
    MOST_GRAPHS = 16


#: The most pieces of work of a graph.
MOST_PIECES = MOST_IN_GRAPH


# Whether work was enqueued as a graph; CANNOT: it cannot be one, or graphs are left out.
cdef enum GraphUse:
    NOT_YET
    AS_GRAPH
    CANNOT


@cython.final
@cython.auto_pickle(False)
cdef class RecordedGraph:
    """The work of a plan with all its addresses, recorded by the driver."""

    cdef DeviceLibrary _library
    cdef void *_made

    def __dealloc__(self):
        if self._made != NULL and self._library.enter() == 0:
            self._library.functions.drop_made(self._made)
            self._library.leave()


@cython.final
@cython.auto_pickle(False)
cdef class RecordedParts:
    """The graphs of all parts of a plan, for a run."""

    cdef list graphs
    cdef void **handles
    cdef int64_t times

    def __cinit__(self, Py_ssize_t n):
        self.graphs, self.handles = [], <void **>_zeros(n, sizeof(void *))

    cdef void add(self, RecordedGraph graph, int64_t times):
        self.handles[len(self.graphs)] = graph._made
        self.graphs.append(graph)
        self.times += times

    def __dealloc__(self):
        PyMem_Free(self.handles)
