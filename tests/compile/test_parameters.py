"""Parameters of ops that make no sense are refused, by constructors and by ``load``; whatever is
accepted does no harm in the native machine.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.compile.saving.graphs import GraphReader, GraphWriter
from symcomp.core.op import Op
from symcomp.cvm import machine
from symcomp.errors import AxisError, LoadError, ParameterError
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import Slice
from symcomp.ops.linalg.contraction import MatrixChain
from symcomp.ops.linalg.determinant import Det
from symcomp.ops.nnet.softmax import Softmax
from symcomp.ops.reductions.cumulative import CumOp
from symcomp.ops.reductions.reduce import REDUCTIONS, ArgReduce, Reduce
from symcomp.ops.shapes.join import Join
from symcomp.ops.sorting.sort import Unique
from symcomp.ops.sorting.topk import ArgTopK
from symcomp.ops.windows.convolution import Convolve
from symcomp.ops.windows.geometry import Geometry
from symcomp.ops.windows.pooling import MaxPool, SumPool
from symcomp.scan.layout import Layout
from symcomp.tests.compile.mutations import fields_of, valid_nodes
from symcomp.tests.compile.test_saving_ops import every_op
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction

SQUARE = Geometry(("valid",) * 2, (1, 1), (1, 1))


def test_changed_parameters_are_refused_or_do_no_harm():
    """Every field of every op: missing and extra parts, other types, negative, zero, huge."""
    done = subprocess.run(
        [sys.executable, "-m", "symcomp.tests.compile.mutations"],
        env=os.environ | {"SYMCOMP_FLAGS": "kernels=False"}, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaxPool((2, 2), (1, -1), (0, 0), False), r"MaxPool\.strides is \(1, -1\)"),
        (lambda: MaxPool((2, 2), (1, 1), (0,), False), "one entry for each spatial axis"),
        (lambda: SumPool((2, 2), (0, 1), (0, 0), False, "sum"), r"SumPool\.strides is \(0, 1\)"),
        (lambda: SumPool((2,), (1,), (0,), False, "mean"), r"SumPool\.mode is 'mean': str that is"),
        (lambda: MaxPool((2,), (1,), (2,), True), "must be smaller than the window"),
        (lambda: MaxPool((2,), (1,), (1,), True), "must be 0 where the last window"),
        (lambda: Geometry(("valid",), (1, 1), (1, 1)), "one entry for each spatial axis"),
        (lambda: Geometry(((0, -1),), (1,), (1,)), r"Geometry\.padding is \(\(0, -1\),\)"),
        (lambda: Geometry(("none",), (1,), (1,)), r"Geometry\.padding is \('none',\)"),
        (lambda: Geometry((), (), ()), "at least one"),
        (lambda: Convolve(SQUARE, 0), r"Convolve\.groups is 0: int from 1 to"),
        (lambda: Join(-1), r"Join\.axis is -1: an axis counted from the start"),
        (lambda: Softmax(1.0), r"Softmax\.axis is 1\.0"),
        (lambda: Reduce(REDUCTIONS["sum"], (1, 1)), "different axes|all different"),
        (lambda: Reduce(REDUCTIONS["sum"], (1,), "float9"), "str that names a dtype or None"),
        (lambda: ArgReduce("max", (0,)), "'argmax' or 'argmin' is needed"),
        (lambda: Subtensor((Slice(None, None, 0),)), "is no entry of an index expression"),
        (lambda: Subtensor(("y",)), "'y' is no entry of an index expression"),
        (lambda: MatrixChain(((0, 2), 1)), "from 0 and in their order"),
        (lambda: Layout(((),), 0, 0, 0), "each state needs one"),
        (lambda: Literal("float64", b"1234"), "4 bytes are no number of float64"),
        (lambda: Step(Det(), (0,), "float64"), "no function of elements"),
        (lambda: Formula(("float64",), (), (), (Result(-1),)), "not all values of steps"),
    ],
)  # fmt: skip
def test_constructors_name_the_parameter(make, message):
    with pytest.raises((ParameterError, ValueError), match=message):
        make()


X = T.dmatrix("X")


@pytest.mark.parametrize(
    "op",
    [
        CumOp(2, "add"),
        ArgTopK(2),
        Unique(2, True, False, False),
        Softmax(2),
        Join(2),
        Reduce(REDUCTIONS["max"], (0, 2)),
    ],
    ids=str,
)
def test_axes_that_an_input_has_not(op):
    inputs = [X, T.constant(1)] if isinstance(op, ArgTopK) else [X]
    with pytest.raises(AxisError, match=r"axis 2 does not exist in X \(float64 matrix\)"):
        op(*inputs)


def test_numbers_of_numpy_become_those_of_python():
    op = MaxPool((np.int64(2), 2), (1, np.int8(1)), (0, 0), np.True_)
    assert op == MaxPool((2, 2), (1, 1), (0, 0), True)
    assert all(type(n) is int for n in (*op.window, *op.strides)) and op.partial is True


def lowered(make, *arguments, inputs=1, outputs=1):
    """Lower an instruction that would compute nothing."""
    step = Instruction(Opcode.CALL, tuple(range(inputs)), tuple(range(inputs, inputs + outputs)))
    return make(step, *arguments)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lowered(machine.running, "add", -1, "float64"),
        lambda: lowered(machine.sorted_along, 99, False),
        lambda: lowered(machine.extreme, True, (40,)),
        lambda: lowered(machine.joined, -1, False),
        lambda: lowered(machine.transpose, 2, (0, 2)),
        lambda: lowered(machine.transpose, 2, (-1,) * 20),
        lambda: lowered(machine.reshape, 99),
        lambda: lowered(machine.lengths, -2),
        lambda: lowered(machine.diagonal, -1, 0),
        lambda: lowered(machine.fill, 20, (), inputs=21),
        lambda: lowered(machine.passed, 1, []),
        lambda: lowered(machine.passed, 0, [("length", 0, -1, 0, 2)]),
        lambda: lowered(machine.passed, 0, [("lengths", 0, 0, 5, 0)]),
        lambda: lowered(machine.reserve, 0, [(2, 2), (2,)], "float64"),
        lambda: lowered(machine.chain, [(0, 1)], "float64", inputs=3),
        lambda: lowered(machine.chain, [(0, 1), (9, 2)], "float64", inputs=3),
        lambda: pool(window=(2, 2, 2, 2)),
        lambda: pool(strides=(1,)),
        lambda: pool(strides=(1, 0)),
        lambda: pool(padding=(0, 5)),
        lambda: convolution(strides=(1, -1)),
        lambda: convolution(dilation=(1,)),
        lambda: convolution(padding=((0, -3), (0, 0))),
        lambda: convolution(groups=0),
        lambda: convolution(part=3),
    ],
)  # fmt: skip
def test_native_calls_check_again(make):
    with pytest.raises(ValueError, match=r"is -?\d+; it must be from|\d"):
        make()


def pool(window=(2, 2), strides=(1, 1), padding=(0, 0)):
    arguments = (0, 4, window, strides, padding, False, "float64", 1)
    return lowered(machine.pool, *arguments, outputs=2)


def convolution(
    part=0, padding=((0, 0), (0, 0)), strides=(1, 1), dilation=(1, 1), groups=1
):  # fmt: skip
    arguments = (part, padding, strides, dilation, groups, "float64", 1)
    return lowered(machine.convolution, *arguments, inputs=2)


# In the place of a field of an op in a file.
WRONG = [
    None, -1, 0, 2**40, "x", "\ud800", {"float": "nan"}, {"tuple": []}, {"tuple": [-1]},
    {"tuple": [{"tuple": [0, 0, 0]}]}, {"int": "9" * 5000}, {"list": []}, [], {},
]  # fmt: skip


def test_changed_fields_in_files():
    """A loaded op can be applied, or loading is a LoadError."""
    refused = 0
    for cls, nodes in valid_nodes().items():
        node = nodes[0][0]
        if cls not in every_op() or not fields_of(node.op):
            continue
        inputs = [x.type() for x in node.inputs]
        writer = GraphWriter()
        text = json.dumps(writer.graph(inputs, node.op.make_node(*inputs).outputs))
        for name in fields_of(node.op):
            for value in WRONG:
                changed = json.loads(text)
                fields = changed["nodes"][0]["op"]["fields"]
                fields[name] = value
                refused += is_refused(changed, writer.arrays)
            del fields[name]
            assert is_refused(changed, writer.arrays) or name in cls.__fields__.defaults
        assert is_refused({**changed, "nodes": [{}]}, writer.arrays)
    assert refused > 1000


def is_refused(text, arrays):
    try:
        GraphReader([], arrays).graph(text)
    except LoadError:
        return True
    except (TypeError, ValueError, LookupError):  # symcomp.load makes a LoadError of it
        return True
    return False


def test_classes_that_are_no_ops():
    """Base classes, which define no output_types."""
    abstract, pending = set(), [Op]
    while pending:
        for cls in pending.pop().__subclasses__():
            pending.append(cls)
            if cls.__module__.startswith(("symcomp.ops.", "symcomp.scan.")):
                abstract.add(cls)
    writer = GraphWriter()
    for cls in abstract - every_op() | {Op}:
        text = writer.graph([X], [T.exp(X)])
        name = f"{cls.__module__}:{cls.__name__}"
        text["nodes"][0]["op"] = {"class": name, "fields": {}}
        with pytest.raises(LoadError, match="is no op by itself|unknown are|missing"):
            GraphReader([], []).graph(text)
