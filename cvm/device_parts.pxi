# Parts of arrays on devices, which are views, and their lengths.

cdef object view_of(DeviceArrayBase x, int64_t offset, tuple shape, tuple strides):
    """Return a view of an array on a device, whose first element is ``offset`` bytes behind that of the array."""
    cdef DeviceArrayBase found = type(x).__new__(type(x))
    found.driver, found.device, found.memory = x.driver, x.device, x.memory
    found.offset, found.address = x.offset + offset, x.address + <uint64_t>offset
    found.dtype, found.shape, found.strides = x.dtype, shape, strides
    return found


def part_of(DeviceArrayBase x, tuple key):
    """Return a view: ``x[key]`` for numbers, slices, None and at most one ellipsis.

    Raises
    ------
    IndexError
        If a number is out of range, or there are too many entries.
    """
    cdef list shape = [], strides = []
    cdef int64_t offset = 0, length, stride, at
    cdef Py_ssize_t axis = 0, ndim = len(x.shape), rest
    cdef bint is_empty = False
    rest = ndim - len([entry for entry in key if entry is not None and entry is not Ellipsis])
    if rest < 0 or key.count(Ellipsis) > 1:
        raise IndexError(f"too many indices for {x!r}: {key}")
    for entry in key if Ellipsis in key else (*key, Ellipsis):
        if entry is None:
            shape.append(1)
            strides.append(0)
        elif entry is Ellipsis:
            shape += x.shape[axis : axis + rest]
            strides += x.strides[axis : axis + rest]
            axis += rest
        else:
            length, stride = x.shape[axis], x.strides[axis]
            if isinstance(entry, slice):
                start, stop, step = entry.indices(length)
                shape.append(len(range(start, stop, step)))
                strides.append(stride * max(-length, min(step, length)))  # longer ones are never taken
                at = start
            else:
                if not -length <= entry < length:
                    raise IndexError(f"index {entry} is out of bounds for axis {axis} with size {length}")
                at = entry
                at += length if at < 0 else 0
            offset += at * stride
            axis += 1
    return view_of(x, 0 if 0 in shape else offset, tuple(shape), tuple(strides))


@cython.final
@cython.auto_pickle(False)
cdef class PartOnDevice:
    """The function from an array on a device, and numbers, to a part of the array.

    Parameters
    ----------
    pattern : IndexPattern
        Whose numbers are given; without index arrays.
    """

    cdef tuple _pattern

    def __init__(self, tuple pattern):
        self._pattern = pattern

    def __call__(self, x, *numbers):
        """Return the view."""
        cdef list key = []
        cdef Py_ssize_t used = 0
        for entry in self._pattern:
            if isinstance(entry, Slice):
                parts = []
                for part in entry:
                    if part == SYMBOL:
                        part = int(numbers[used])
                        used += 1
                    parts.append(part)
                key.append(slice(parts[0], parts[1], parts[2]))
            elif entry == SYMBOL:
                key.append(int(numbers[used]))
                used += 1
            else:
                key.append(None if entry == NEW else Ellipsis if entry == NOTHING else entry)
        return part_of(x, tuple(key))


@cython.final
@cython.auto_pickle(False)
cdef class FirstOnDevice:
    """The function from an array on a device, and a number, to that many rows of it.

    Parameters
    ----------
    refuse : callable
        Raises the error of fewer rows.
    """

    cdef object _refuse

    def __init__(self, refuse):
        self._refuse = refuse

    def __call__(self, DeviceArrayBase x not None, n):
        """Return the view."""
        cdef int64_t wanted = int(n)
        if not 0 <= wanted <= <int64_t>x.shape[0]:
            self._refuse(x, n)
        return part_of(x, (slice(None, wanted),))


@cython.final
@cython.auto_pickle(False)
cdef class LengthOnDevice:
    """The function from an array on a device to the length of an axis, an array of the host.

    Parameters
    ----------
    axis : int
    """

    cdef Py_ssize_t _axis

    def __init__(self, Py_ssize_t axis):
        self._axis = axis

    def __call__(self, DeviceArrayBase x not None):
        """Return the length; the device is not waited for."""
        return np.array(x.shape[self._axis], np.int64)
