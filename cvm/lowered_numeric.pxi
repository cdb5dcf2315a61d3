# Lowered instructions of products, decompositions, windows and distributions.

# -- products and matrices

def product(
    step, int ndim, int c, int alpha, int a, int b, int beta, transposed, bint outer, bint destroys,
    dtype, int threads=0
):
    """Lower beta c + alpha op(a) op(b).

    Parameters
    ----------
    ndim : int
        Of the result.
    c, alpha, a, b, beta : int
        Inputs of the instruction; -1: no c, and 1 for a factor.
    transposed : (bool, bool)
        Whether a and b are.
    outer : bool
        Whether a vector is a column as a and a row as b, not the other way round.
    destroys : bool
        Whether the result is left in c.
    threads : int
        The number of threads that share large products; 0: these are left to BLAS.
    """
    cdef Lowered found = new_lowered(step, "product", plan_product, sizeof(ProductSpec))
    cdef ProductSpec *spec = <ProductSpec *>found.spec
    find_blas()
    spec.ndim, spec.outer, spec.destroys_c = ndim, outer, destroys
    spec.c, spec.alpha, spec.a, spec.b, spec.beta = c, alpha, a, b, beta
    spec.trans_a, spec.trans_b = transposed
    spec.threads = min(threads, MOST_THREADS)
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    return found


def chain(step, order, dtype, int threads=0):
    """Lower the product of several matrices; ``order`` is that in which it was written."""
    cdef Lowered found = new_lowered(step, "product", plan_chain, sizeof(ChainSpec))
    cdef ChainSpec *spec = <ChainSpec *>found.spec
    find_blas()
    spec.threads = min(threads, MOST_THREADS)
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    if len(order) != len(step.inputs) - 1:
        raise ValueError(f"{len(order)} products of {len(step.inputs)} matrices")
    for i, pair in enumerate(order):
        for k in pair:
            checked(k, 0, len(step.inputs) + i - 1, "a factor")
    spec.written = found.ints([k for pair in order for k in pair])
    return found


def decomposition(
    step, str name, order, cores, shapes, bint square, bint lower, int option, rcond, bint wide, dtypes,
    int threads=1, BlasLimit limit=None
):
    """Lower functions of LAPACK of stacks of matrices.

    Parameters
    ----------
    name : str
        Of the function (see refined_solve.h).
    order : sequence of int
        The inputs in the order in which it takes them, the matrices first.
    cores : sequence of int
        How many axes a matrix of each has; 1: a vector.
    shapes : sequence of str
        Of the results for one matrix: a letter for each axis, m and n for rows and columns of the
        first input, p for the less of them, k for the columns of the second; r for those of
        residuals, of which there are none if the rank, the result after them, is not n < m. Empty:
        the first input is passed on.
    square, lower : bool
    option : int
    rcond : (float, float)
        A number, and one that is multiplied by the longer side.
    wide : bool
        Whether numbers of single precision are computed with in double precision.
    dtypes : sequence of numpy.dtype
        Of the first input and the outputs.
    threads : int
        The number of threads that share the matrices of large stacks.
    limit : BlasLimit or None
        Within which BLAS uses threads for a large matrix; None: as many as it is set to.
    """
    cdef Lowered found = new_lowered(step, "decompose", plan_matrices, sizeof(MatricesSpec))
    cdef MatricesSpec *spec = <MatricesSpec *>found.spec
    cdef int i
    find_lapack()
    spec.function = decomposition_named(name.encode())
    if spec.function == NULL:
        raise ValueError(f"no function decomposes by {name}")
    spec.threads = min(threads, MOST_THREADS)
    if limit is not None:
        found._kept.append(limit)
        spec.limit = <PyObject *>limit
    spec.n_given, spec.n_found = len(order), len(shapes)
    spec.order, spec.cores = found.ints(order), found.ints(cores)
    spec.types = found.ints([np.dtype(d).num for d in dtypes])
    spec.itemsizes = found.ints([np.dtype(d).itemsize for d in dtypes])
    spec.residuals = shapes.index("r") if "r" in shapes else -1
    # Residuals are a vector, as long as the second input has columns.
    letters = [shape.replace("r", "k").encode() for shape in shapes]
    found._kept.append(letters)
    spec.shapes = <char **>found.memory(max(len(letters), 1) * sizeof(char *))
    for i in range(len(letters)):
        spec.shapes[i] = <char *><bytes>letters[i]
    spec.is_square, spec.lower, spec.option = square, lower, option
    spec.rcond, spec.rcond_of_side = rcond
    spec.kind = lapack_kind(spec.types[0])
    if spec.kind < 0:
        return python_call(step)
    spec.wide = wide and spec.kind in (SINGLE, SINGLE_COMPLEX)
    return found


# -- windows

def convolution(
    step, int part, padding, strides, dilation, int groups, dtype, int threads
):
    """Lower a convolution, or one of its adjoints.

    Parameters
    ----------
    part : {0, 1, 2}
        The value to compute: the result, from images and kernels; images, from kernels and the
        gradient of the result; or kernels, from images and that gradient.
    padding : sequence of (int, int)
        For each spatial axis zeros before and after; -1: all windows that meet the image; -2: half
        a window.
    strides, dilation : sequence of int
    groups : int
    threads : int
        How many share large ones.
    """
    cdef Lowered found = new_lowered(step, "convolution", plan_convolution, sizeof(ConvolutionSpec))
    cdef ConvolutionSpec *spec = <ConvolutionSpec *>found.spec
    cdef int axis
    check_windows(len(strides), strides=strides, dilation=dilation)
    checked(groups, 1, LARGEST_OF_WINDOWS, "the number of groups")
    if len(padding) != len(strides):
        raise ValueError(f"padding must be {len(strides)} pairs, got {tuple(padding)}")
    checked(len(step.inputs), 2, 2 + len(strides), "the number of inputs")
    find_blas()
    spec.part, spec.ndim, spec.groups = checked(part, 0, 2, "the part"), len(strides), groups
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    spec.threads = min(threads, MOST_THREADS)
    for axis in range(spec.ndim):
        before, after = padding[axis]
        if before != after:
            checked(min(before, after), 0, LARGEST_OF_WINDOWS, "the padding")
        spec.padding[2 * axis] = checked(before, -2, LARGEST_OF_WINDOWS, "the padding")
        spec.padding[2 * axis + 1] = checked(after, -2, LARGEST_OF_WINDOWS, "the padding")
        spec.strides[axis], spec.dilation[axis] = strides[axis], dilation[axis]
    return found


def pool(
    step, int what, int ndim, window, strides, padding, bint partial, dtype, int threads,
    int divided=0
):
    """Lower a pool of images, or an adjoint of one.

    Parameters
    ----------
    what : {0, 1, 2, 3}
        The largest of each window and where it is; sums; the adjoint of sums; numbers added at
        positions.
    ndim : int
        Of the images.
    window, strides, padding : sequence of int
        For each of the last axes.
    partial : bool
        Whether there is one more window, where elements are left.
    threads : int
        How many share large ones.
    divided : {0, 1, 2}
        Sums are divided by nothing, by the number of elements within the padded image, or by that
        of those within the image.
    """
    cdef Lowered found = new_lowered(step, "pool", plan_pool, sizeof(PoolSpec))
    cdef PoolSpec *spec = <PoolSpec *>found.spec
    cdef int axis
    check_windows(len(window), window=window, strides=strides)
    checked(len(window), 1, min(rank_of(ndim), SPATIAL), "the number of spatial axes")
    if not len(window) == len(strides) == len(padding):
        raise ValueError(f"window {window}, strides {strides} and padding {padding} differ in length")
    spec.what, spec.ndim = checked(what, 0, 3, "the kind of pool"), ndim
    spec.spatial, spec.partial = len(window), partial
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    spec.threads, spec.divided = threads, divided
    for axis in range(spec.spatial):
        spec.window[axis], spec.strides[axis] = window[axis], strides[axis]
        # A window beyond the image would have no element.
        spec.padding[axis] = checked(padding[axis], 0, window[axis] - 1, "the padding")
    return found


def check_windows(int count, **fields):
    """Raise ValueError unless each field has ``count`` positive numbers."""
    if not 1 <= count <= SPATIAL:
        raise ValueError(f"windows have 1 to {SPATIAL} axes, got {count}")
    for name, values in fields.items():
        if len(values) != count or any([not 1 <= n <= LARGEST_OF_WINDOWS for n in values]):
            raise ValueError(f"{name} must be {count} positive integers, got {tuple(values)}")


def draw(step, str distribution, int ndim, dtype, parameters, bint gives_vectors):
    """Lower draws of a distribution: the state after them, and numbers. None if no kernel draws it.

    Parameters
    ----------
    ndim : int
        How many lengths there are.
    dtype : str
        Of the numbers.
    parameters : sequence of (str, bool, sequence of bool)
        Of each: the dtype; whether the last axis is that of a draw; the axes of known length 1.
    gives_vectors : bool
        Whether a draw has an axis.
    """
    cdef Lowered found
    cdef DrawSpec *spec
    cdef bytes name = distribution.encode()
    cdef kernel_function *kernel = draw_kernel(name, dtype == "float32")
    if kernel == NULL or ndim + 1 > MOST_AXES or len(parameters) > MOST_PARAMETERS:
        return None
    found = new_lowered(step, "draw", plan_draw, sizeof(DrawSpec))
    spec = <DrawSpec *>found.spec
    spec.draw, spec.ndim, spec.n = kernel, ndim, len(parameters)
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    spec.gives_vectors = gives_vectors
    for k, (kind, is_vector, ones) in enumerate(parameters):
        spec.types[k], spec.is_vector[k] = np.dtype(kind).num, is_vector
        spec.stretching[k] = sum([1 << axis for axis in range(ndim) if ones[axis]])
    return found
