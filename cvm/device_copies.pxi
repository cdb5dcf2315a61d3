# Copies between the host and devices, and between devices, as functions in C.

cdef object new_device_array(
    type array_type, DeviceStream stream, DeviceMemory memory, int64_t offset, dtype, tuple shape, tuple strides
):
    """Return an array on a device, of a subclass of DeviceArrayBase."""
    cdef DeviceArrayBase found = array_type.__new__(array_type)
    found.driver, found.device, found.memory, found.offset = stream.driver, stream.device, memory, offset
    found.address = memory.address + <uint64_t>offset
    found.dtype, found.shape, found.strides = dtype, shape, strides
    return found


cdef tuple dense_strides(tuple shape, int64_t step):
    """Return the strides of an array in C order, whose elements have ``step`` bytes."""
    cdef list found = []
    for length in reversed(shape):
        found.append(step)
        step *= max(<int64_t>length, 1)
    found.reverse()
    return tuple(found)


#: The streams of the devices that were started in this process, by their names.
DEVICE_STREAMS = {}


@cython.final
@cython.auto_pickle(False)
cdef class CopyToDevice:
    """The function from arrays of the host, or on other devices, to arrays on a device.

    Those of the host come in C order; others keep their strides, if they can be copied without the host.

    Parameters
    ----------
    device : str
        Its name.
    dtype : numpy.dtype
        Of the results, in the byte order of the machine.
    array_type : type
        Of the results, a subclass of DeviceArrayBase.
    start : callable (str) -> Driver
        Starts a device that was not started yet.
    """

    cdef str _device
    cdef object _dtype, _start
    cdef type _array_type

    def __init__(self, str device, dtype, type array_type, start):
        self._device, self._dtype, self._array_type, self._start = device, dtype, array_type, start

    def __call__(self, x):
        """Enqueue the copy of an array, which may be changed at once; return its result."""
        cdef DeviceStream stream = DEVICE_STREAMS.get(self._device)
        if stream is None:
            stream = self._start(self._device).queue
        if isinstance(x, DeviceArrayBase):
            if (<DeviceArrayBase>x).driver is stream.driver:
                return x
            with cython.critical_section(machine_lock):
                found = copy_between(<DeviceArrayBase>x, stream)
            if found is not None:
                return found
            x = copies_on_host((x,))[0]
        elif not cnp.PyArray_Check(x):
            x = np.asarray(x)
        with cython.critical_section(machine_lock):
            return self._run(stream, x)

    cdef object _run(self, DeviceStream stream, cnp.ndarray x):
        cdef int64_t size = self._dtype.itemsize
        cdef DeviceMemory memory = stream.pool.take(cnp.PyArray_SIZE(x) * size, x)
        cdef int axis
        stream.send(memory, 0, x, self._dtype)
        shape = tuple([cnp.PyArray_DIM(x, axis) for axis in range(cnp.PyArray_NDIM(x))])
        return new_device_array(
            self._array_type, stream, memory, 0, self._dtype, shape, dense_strides(shape, size)
        )


cdef object copy_between(DeviceArrayBase x, DeviceStream stream):
    """Return an array on another device, without the host, and with the same strides; None where that cannot be, or
    the gaps between elements are more than the elements.
    """
    cdef DeviceStream peer = x.driver.queue
    cdef DeviceMemory memory
    cdef int64_t low, nbytes, span = span_of(x, &low, &nbytes)
    if type(peer.driver) is not type(stream.driver) or span > 2 * nbytes:
        return None
    memory = stream.pool.take(span, x)
    if span:
        stream.copy_from_peer(memory, peer, x.memory, x.offset + low, span)
    return new_device_array(type(x), stream, memory, -low, x.dtype, x.shape, x.strides)


def copy_within(DeviceArrayBase x):
    """Return a copy of an array on its device, with the same strides."""
    cdef DeviceStream stream = x.driver.queue
    cdef DeviceMemory memory
    cdef int64_t low, nbytes, span = span_of(x, &low, &nbytes)
    with cython.critical_section(machine_lock):
        memory = stream.pool.take(span, x)
        if span:
            stream.copy(memory, 0, x.memory, x.offset + low, span)
    return new_device_array(type(x), stream, memory, -low, x.dtype, x.shape, x.strides)


@cython.final
@cython.auto_pickle(False)
cdef class CopyToHost:
    """The function from arrays on devices to arrays of the host: it waits once for each device.

    Parameters
    ----------
    several : bool
        Whether the result is a tuple, or the only array.
    """

    cdef bint _several

    def __init__(self, bint several):
        self._several = several

    def __call__(self, *arrays):
        """Return the arrays in C order."""
        found = copies_on_host(arrays)
        return tuple(found) if self._several else found[0]


def copies_on_host(tuple arrays):
    """Return arrays of the host, in C order, with the elements of arrays on devices; wait once for each device.

    Raises
    ------
    IndexError, DeviceError
        If work that was enqueued before has failed; the message names the op.
    """
    cdef list found = [], streams = [(<DeviceArrayBase?>x).driver.queue for x in arrays]
    cdef DeviceStream stream
    cdef Py_ssize_t i
    with cython.critical_section(machine_lock):
        for i in range(len(arrays)):
            stream = streams[i]
            found.append(stream.receive(<DeviceArrayBase>arrays[i]))
        for i in range(len(arrays)):
            stream = streams[i]
            if streams.index(stream) == i:
                stream.join()
    return found
