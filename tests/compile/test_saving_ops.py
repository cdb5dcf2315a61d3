"""Every op of symcomp is saved and loaded: bit by bit the same, with the same gradients."""

from functools import cache
from importlib import import_module

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp import typed_list as lists
from symcomp.autodiff.stable import Pin
from symcomp.compile.saving.moved import MOVED, RENAMED
from symcomp.compile.saving.values import named_class
from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Type
from symcomp.core.op import Op
from symcomp.core.walk import graph_inputs, toposort
from symcomp.gradient import (
    disconnected_grad,
    grad_clip,
    grad_scale,
    jacobian,
    undefined_grad,
    zero_grad,
)
from symcomp.ifelse import ifelse
from symcomp.ops.control.conditions import assert_op
from symcomp.ops.control.debugging import PdbBreakpoint, Print, Raise
from symcomp.ops.control.graph_op import GraphOp
from symcomp.ops.control.python_op import PythonOp
from symcomp.ops.elementwise.plus_scalar import PlusScalar
from symcomp.ops.fourier.transforms import Fourier
from symcomp.ops.indexing.gather_labels import AsRows, GatherLabels, ScatterLabels
from symcomp.ops.indexing.index_pattern import MaskFits
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.contraction import MatrixChain, SumOfProducts
from symcomp.ops.linalg.determinant import Adjugate
from symcomp.ops.linalg.products import SameLengths
from symcomp.ops.linalg.qr import QR, QRRaw
from symcomp.ops.linalg.stable_linalg import (
    InverseForm,
    Invertible,
    Magnitude,
    StableInverse,
    StableSLogDet,
    StableSolve,
)
from symcomp.ops.linalg.svd import SingularValues
from symcomp.ops.linalg.tridiagonal import FactorTridiagonal, SolveFactoredTridiagonal
from symcomp.ops.nnet.entropy import Divergence, NegativeEntropy
from symcomp.ops.nnet.labels import Labels
from symcomp.ops.nnet.softmax import (
    LogMeanExp,
    RootSoftmax,
    SubtractWeightedMean,
    WeightedLogSumExp,
    WeightedSoftmax,
)
from symcomp.ops.nnet.unit_vector import (
    Cosine,
    ProjectionLength,
    SignedMean,
    UnitPowerSum,
    UnitVector,
)
from symcomp.ops.nnet.weighted_mean import SoftmaxPowerSum, WeightedDeviation, WeightedMean
from symcomp.ops.reductions.cumulative import LinearRecurrence
from symcomp.ops.reductions.stable_reduce import Centered, LogProd, Norm, Variance
from symcomp.ops.shapes.contiguous import Contiguous
from symcomp.ops.shapes.shape import ForgetLengths
from symcomp.ops.windows.convolution import ConvolveInputs, ConvolveKernels
from symcomp.ops.windows.geometry import Geometry
from symcomp.ops.windows.pooling import AtPositions
from symcomp.scan.budget import ChunkLength
from symcomp.scan.rows import Continued, FirstRows, LastRows, LeadingRows
from symcomp.sparse.rows import AdamRows, MomentumRows
from symcomp.tensor.shared_randomstreams import RandomStreams
from symcomp.tests.repository import modules_without_extras
from symcomp.vm.destinations import Reserve

RNG = np.random.default_rng(0)
x, X, Y, t3 = T.dvector("x"), T.dmatrix("X"), T.dmatrix("Y"), T.dtensor3("t3")
k, ks, image = T.lscalar("k"), T.lvector("ks"), T.dtensor4("image")
matrix = RNG.normal(size=(4, 4))
VALUES = {
    x: RNG.normal(size=4), X: matrix @ matrix.T + np.eye(4), Y: RNG.normal(size=(4, 4)),
    t3: RNG.normal(size=(2, 4, 4)), k: np.int64(2), ks: np.array([1, 3, 1, 0]),
    image: RNG.normal(size=(1, 2, 6, 6)),
}  # fmt: skip
# Ops that are in no file: ops of users, and ops that only derivatives and programs contain.
NOT_SAVED = {PythonOp, Pin, Reserve}
SQUARE = Geometry(("valid",) * 2, (1, 1), (1, 1))


def in_loops():
    """Return results of loops, and ops on rows around them."""
    states, _ = symcomp.scan(lambda v, s: T.tanh(v + s.dot(X)), Y, [x])
    squares, _ = symcomp.map(lambda v: T.dot(v, v), Y)
    last, _ = symcomp.scan(
        lambda s: (s * 2, symcomp.until(s.sum() > 50)), outputs_info=[x**2], n_steps=9
    )
    kept, _ = symcomp.scan_checkpoints(lambda v, s: T.tanh(v + s), Y, [x], save_every_N=2)
    rows = [FirstRows("a row")(Y, k), LastRows(1)(k, Y), LeadingRows()(Y, k + 4), Continued()(X, Y)]
    return [states, squares, last[-1], kept, *rows]


def of_graphs():
    """Ops made of graphs."""
    pair = symcomp.OpFromGraph([x, X], [x * 2, X.sum(axis=0) - x], name="pair")
    inlined = GraphOp(ClosedGraph([x], [T.exp(x)]), inline=True)
    return [
        *pair(x, Y),
        inlined(x),
        jacobian(T.tanh(x) * x[0], x),
        T.grad(jacobian(x**2, x)[0, 0], x),
    ]


def of_random_numbers():
    """Draws, and their states."""
    streams = RandomStreams(7)
    draws = [
        streams.normal((3,)), streams.uniform((2, 3)), streams.binomial((3,), n=4, p=0.3),
        streams.permutation(n=5), streams.choice((3,), a=4, p=[0.1, 0.2, 0.3, 0.4]),
        streams.multinomial((2,), n=3, pvals=[0.2, 0.8]), streams.binomial((3,), p=1 / (k + 2)),
    ]  # fmt: skip
    return draws


def of_lists():
    """Typed lists."""
    made = lists.make_list([X, Y])
    longer = lists.insert(lists.append(made, X), T.constant(1, dtype="int64"), Y)
    both = lists.reverse(lists.extend(made, longer))
    return [
        lists.getitem(both, T.constant(1, dtype="int64")), lists.length(lists.remove(both, X)),
        lists.count(both, Y), lists.index_(both, X), lists.length(both[1:3]),
    ]  # fmt: skip


def of_matrices():
    """Linear algebra."""
    s = T.slinalg
    return [
        s.cholesky(X), s.expm(Y / 4), s.solve(X, Y), s.solve_triangular(X, x, lower=True),
        T.nlinalg.det(Y), T.nlinalg.pinv(Y), T.nlinalg.matrix_inverse(Y), *T.nlinalg.eigh(X),
        s.eigvalsh(X, T.eye(4)), *T.nlinalg.qr(Y), *T.nlinalg.svd(Y), *T.nlinalg.slogdet(X),
        *T.nlinalg.eig(Y), T.nlinalg.svd(Y, compute_uv=False), T.nlinalg.lstsq(Y, x, -1)[0],
        T.nlinalg.lstsq(Y, x, x[0] * 0.0)[0],
        QR(True)(Y)[0], QRRaw()(Y)[0], *T.nlinalg.qr(Y, pivoting=True),
        T.nlinalg.qr(Y, "raw", pivoting=True)[0], Adjugate()(Y), SingularValues()(Y),
        Invertible()(Y), InverseForm()(x, X, x), StableInverse()(Y), *StableSLogDet()(X),
        Magnitude()(x), StableSolve("gen", False, False)(X, x), *s.lu(X),
        T.abs_(s.schur(X, "complex")[0]),
        *s.qz(X, Y), s.solve_sylvester(X, Y, Y), s.solve_tridiagonal(x[1:], x, x[1:], x),
        SolveFactoredTridiagonal()(*FactorTridiagonal()(x[1:], x, x[1:]), Y), T.diag(x),
        T.diagonal(Y),
    ]  # fmt: skip


def of_products():
    """Products, and what BLAS does."""
    a = T.constant(0.5)
    return [
        X.dot(Y), T.batched_dot(t3, t3), MatrixChain(((0, 1), 2))(X, Y, X), X.dot(x) + x,
        SumOfProducts((0,))(X, Y), Gemm()(X, a, X, Y, a), Gemv()(x, a, X, x, a), Ger()(X, a, x, x),
        BatchedGemm()(t3, a, t3, t3, a), ScaledDot()(a, X, Y), PlusScalar()(X, a),
        SameLengths("these", ((0, 0),))(x, X[0]), T.tensordot(t3, X, 1),
        T.einsum("ij,jk->ik", X, Y),
    ]  # fmt: skip


def of_shapes():
    """Views, parts, and what moves elements."""
    taken = T.set_subtensor(X[1:3, ::-1], 0.5) + T.inc_subtensor(X[ks, ks], 2.0)
    return [
        taken, X[k, None, 1:], X[Y > 0], X[..., ks], X.reshape((2, -1)), X.T, T.shape(X),
        X.shape[0], T.stack([X, Y]), T.concatenate([X, Y], axis=1), *T.split(X, [1, 3], 2, axis=1),
        X.sum() * 1,
        T.alloc(x, 3, 4), T.arange(k), T.sort(X, axis=0), T.argsort(X), T.topk(X, 2), T.argmax(X),
        T.searchsorted(T.sort(x), x), *T.unique(ks, True, True, True),
        T.specify_shape(X, (4, None)), ForgetLengths((0,))(X[:1]), Contiguous()(X.T),
        T.nonzero(X)[0], T.cumsum(X, axis=0), T.cumprod(x), T.max(X, axis=1),
        T.argmin(X, axis=0), AsRows(1, None)(X, T.constant(np.ones(1, "int64"))),
        LinearRecurrence(0)(X, Y), T.repeat(x, 2), T.diag(x), T.tril(X),
        MaskFits(((0, 0),))(ks, T.constant(4), T.constant(4)), T.stack([k, k + 1]),
        Labels("labels")(ks, T.constant(4)),
    ]  # fmt: skip


def of_lines():
    """Functions of lines and of images."""
    fft = T.fft
    return [
        T.nnet.softmax(X), T.nnet.logsoftmax(X), T.logsumexp(X, axis=0), T.var(X, axis=0), T.std(X),
        LogMeanExp((0,))(X), SubtractWeightedMean((1,), False)(X, Y),
        WeightedLogSumExp((0,))(X, T.exp(Y)),
        WeightedSoftmax((1,))(X, T.exp(Y)), WeightedMean((0,))(X, Y), WeightedDeviation((0,))(X, Y),
        SoftmaxPowerSum((1,), 2)(X),
        NegativeEntropy((0,))(X), Divergence((0,))(X, Y), RootSoftmax(1)(X), UnitVector((1,))(X),
        ProjectionLength((1,))(X, Y), Cosine((0,))(X, Y), Centered((0,))(X),
        UnitPowerSum((1,), 3)(X), SignedMean((1,))(X, Y),
        LogProd((0,))(T.exp(X)),
        Norm((1,))(X), Variance((1,))(X), GatherLabels((1,))(X, T.reshape(ks, (4, 1))),
        ScatterLabels((1,))(X, T.reshape(ks, (4, 1)), T.reshape(x, (4, 1))),
        fft.rfft(X), fft.irfft(fft.rfft(X)), Fourier((0,), False)(T.cast(X, "complex128")),
        AtPositions(2)(image, T.constant(np.arange(8).reshape((1, 2, 2, 2)))),
        T.nnet.conv2d(image, image[:, :, :3, :3], border_mode="half"),
        ConvolveInputs(SQUARE, 1)(image[:, :, :3, :3], image[:, :1], T.constant(8), T.constant(8)),
        ConvolveKernels(SQUARE, 1)(image, image[:, :1, :3, :3], T.constant(4), T.constant(4)),
        T.signal.pool.pool_2d(image, (2, 2), ignore_border=True),
        T.signal.pool.pool_2d(image, (2, 3), ignore_border=False, mode="sum"),
        T.grad(T.signal.pool.pool_2d(image, (2, 2), True, mode="max").sum(), image),
        T.grad(T.signal.pool.pool_2d(image, (2, 2), True, mode="average_inc_pad").sum(), image),
    ]  # fmt: skip


def of_control():
    """Branches, checks, gradients changed on the way."""
    return [
        ifelse(k > 1, x, x * 2), assert_op(x, k > 0),
        T.eye(k), disconnected_grad(x) * x, zero_grad(x) * x,
        undefined_grad(x), grad_clip(x, -0.1, 0.1) ** 2, grad_scale(x, 2.0) ** 2, T.clip(x, -1, 1),
        Print("seen", ("shape",))(x), PdbBreakpoint("stop", 1)(T.constant(False), x)[0],
        ifelse(k > 1, x, Raise("never", KeyError)(x)), T.cast(x, "float32"), T.switch(x > 0, x, -x),
        ChunkLength(1000, "states")(k, k, k), T.nnet.sigmoid(x) + T.erf(x) - T.gammaln(x**2),
    ]  # fmt: skip


def of_sparse():
    """Sparse matrices, made of dense ones, and what reads them."""
    s = sparse
    a, b = s.csr_from_dense(X), s.csc_from_dense(T.switch(Y > 0, Y, 0))
    ids, half = T.constant(np.array([0, 3, 0])), T.cast(k, "int64")
    unsorted = s.CSR(x, T.cast(ks[::-1], "int32"), np.array([0, 2, 2, 4, 4]), (k + 2, 4))
    blocks = s.tobsr(a, (2, 2))
    softmax = s.structured_softmax(a)
    number = T.constant(0.5)
    rows, places = X[:2] * Y[:2], T.constant(np.array([1, 3]))
    updates = [*MomentumRows()(number, number, X, Y, rows, places)]
    updates += AdamRows()(*[number] * 4, X, Y, X, rows, places)
    counts = RandomStreams(7).gen(s.multinomial, 5, s.csr_from_dense(np.eye(3)))
    matrices = [
        RandomStreams(7).gen(s.random, 4, 4, 0.5), counts, a + b, a - b, a * b,
        a * Y, a * x, s.maximum(a, b), s.lt(a, b), -a, a.T.tocoo().tocsr(),
        s.cast(a, "float32"), s.remove0(a * (X > 1)), s.vstack([a, a]), s.hstack([a, a], "csr"),
        a[1:half], a[:, 1:half], a[[1, 0]], a[:, ids], a[ids][:, ids], s.true_dot(a, b),
        s.structured_dot(a, a), s.from_triplets(x, ks, ks, (4, 4)), unsorted, blocks.tocsr() * 2.0,
        s.block_diag(a, a), softmax, s.sampling_dot(X, Y, a), s.kron(a[:2, :2], a[:2, :2]),
        s.with_index_dtype(s.with_index_dtype(a, "int64"), "int32"), s.row_scale(a, x),
    ]  # fmt: skip
    dense = [
        s.dot(a, Y), s.dot(b, x) * 2 + x, s.dot(blocks, Y), a.sum(axis=0), a[[0, 1], [1, 2]],
        s.max(a, axis=1), s.segment_max(x, ks), s.segment_sum(x, ks, 4), Y + a.toarray(),
        s.spsolve(a, x), s.spsolve_triangular(a, x), s.expm_multiply(a, x), a.shape,
        T.grad(s.structured_dot(a, a).toarray().sum(), X), s.structured_add_s_v(a, x).toarray(),
        T.grad(s.expm_multiply(a, x).sum(), X), T.grad(s.sqr(a[ids]).sum(), X),
        s.CSR(x, ks, [0, 4], (1, 4)).toarray(),
    ]  # fmt: skip
    return [*(m.toarray() for m in matrices), *dense, *updates]


# Expressions are saved as they are built; ops of devices come when functions are compiled.
ELSEWHERE = (
    "symcomp.tests", "symcomp.compat", "symcomp.codegen._prebuilt", "symcomp.gpu",
    "symcomp.compile.device_matrices",
    "symcomp.compile.device_patterns",
    "symcomp.compile.device_slices",
    "symcomp.compile.device_sparse_products",
)  # fmt: skip

GROUPS = [
    in_loops, of_graphs, of_random_numbers, of_lists, of_matrices, of_products, of_shapes,
    of_lines, of_control, of_sparse,
]  # fmt: skip


def inside(outputs):
    """Return the classes of the ops of a graph, and of the graphs in them."""
    found, pending = set(), [outputs]
    while pending:
        for node in toposort(pending.pop()):
            found.add(type(node.op))
            pending += [inner for _, inner in node.op.inner_graphs_of(node)]
    return found


def slopes(inputs, output):
    """Return the gradients with respect to real inputs; empty if there are none."""
    wanted = [v for v in inputs if v.dtype == "float64"]
    if getattr(output, "dtype", "") not in ("float32", "float64") or not wanted:
        return []
    try:
        return T.grad(output.sum(), wanted, disconnected_inputs="ignore")
    except (NotImplementedError, symcomp.NullTypeGradError):
        return []


@cache
def functions(group):
    """For each expression: its inputs, and functions as it is written and of its gradients, and
    as it is rewritten.
    """
    found = []
    for output in group():
        inputs = [v for v in VALUES if v in graph_inputs([output])]
        rewritten = symcomp.function(inputs, output)
        found.append((inputs, output, as_written(inputs, [output]), rewritten))
    return found


def as_written(inputs, outputs):
    mode = symcomp.Mode(optimizer="None")
    return symcomp.function(inputs, outputs, mode=mode, on_unused_input="ignore")


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_ops_are_the_same_when_loaded(group, tmp_path):
    path = tmp_path / "ops.zip"
    for inputs, output, written, rewritten in functions(group):
        symcomp.save(path, {"inputs": inputs, "output": output, "functions": [written, rewritten]})
        loaded = symcomp.load(path)
        written2, rewritten2 = loaded["functions"]
        values = [VALUES[v] for v in inputs]
        # In the same order, as draws change the states that all of them share.
        original = results(inputs, output, written, rewritten, values)
        assert_same(
            results(loaded["inputs"], loaded["output"], written2, rewritten2, values), original
        )


def results(inputs, output, written, rewritten, values):
    """Compute an expression, functions of it, and its gradients."""
    gradients = as_written(inputs, slopes(inputs, output))
    found = [written(*values), [rewritten(*values)], gradients(*values)]
    return [*as_written(inputs, [output])(*values), *(value for part in found for value in part)]


def test_every_op_is_among_them():
    """Found in the expressions, their gradients, and what rewriting makes of them."""
    seen = set()
    for group in GROUPS:
        for inputs, output, _, rewritten in functions(group):
            seen |= inside([output, *slopes(inputs, output)])
            seen |= inside(rewritten.maker.fgraph.outputs)
    missing = every_op() - seen - NOT_SAVED
    assert not missing, sorted(cls.__qualname__ for cls in missing)
    assert not NOT_SAVED & seen


def every_op():
    """Return the classes of symcomp's ops that can be in a graph."""
    for module in modules_without_extras():
        if not module.startswith(ELSEWHERE) and not module.endswith("__main__"):
            import_module(module)
    found, pending = set(), [Op]
    while pending:
        for cls in pending.pop().__subclasses__():
            pending.append(cls)
            if cls.__module__.startswith("symcomp.") and not cls.__module__.startswith(ELSEWHERE):
                found.add(cls)
    return {cls for cls in found if "__fields__" in vars(cls) and cls.__name__[0] != "_"}


@pytest.mark.parametrize("old", MOVED)
def test_files_may_name_modules_by_their_old_names(old):
    module = import_module(MOVED[old])
    classes = [
        cls
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Op | Type) and cls.__module__ == MOVED[old]
    ]
    assert classes
    for cls in classes:
        assert named_class(f"{old}:{cls.__name__}", Op, Type) is cls


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_files_may_name_classes_by_their_old_names(old, new):
    cls = named_class(old, Op)
    assert f"{cls.__module__}:{cls.__name__}" == new
