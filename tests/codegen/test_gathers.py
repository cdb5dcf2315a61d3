"""Kernels that read tables at positions: C and interpreted LoopIR are the same, and verified."""

import numpy as np
import pytest

from symcomp.codegen.kernel import print_kernel, scheduled
from symcomp.codegen.loopir.expressions import Load, Position, Ref, Var, ZeroOrOne
from symcomp.codegen.loopir.ir import KernelFunction, Let, Pointer
from symcomp.codegen.loopir.run import run
from symcomp.codegen.loopir.verify import Context, Extent, LoopError, check_function
from symcomp.codegen.loopir.verify_kernel import verify
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import GATHER, Formula, Literal, Result, Step
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.tests.codegen.running import addresses, assert_same_bits, attempt
from symcomp.tests.codegen.test_loopir import formula_with, values_of
from symcomp.tests.codegen.test_verify import LENGTHS

TABLE = 37
FORMULAS = {
    "gathered and multiplied": Formula(
        ("int64", "float64", "float64"), (),
        (Step(GATHER, (2, 0), "float64"), Step(ROWS["mul"](), (3, 1), "float64")), (Result(4),),
    ),
    "two tables, one of half precision": Formula(
        ("int64", "float64", "float16", "float64", "int64"), (Literal.of(np.float64(0.5)),),
        (
            Step(GATHER, (2, 0), "float16"), Step(ROWS["mul"](), (6, 1), "float64"),
            Step(GATHER, (3, 4), "float64"), Step(ROWS["add"](), (7, 8, 5), "float64"),
        ),
        (Result(7), Result(9)),
    ),
    "a table of bool, and sums": Formula(
        ("int64", "float64", "bool"), (Literal.of(np.float64(2)),),
        (
            Step(GATHER, (2, 0), "bool"), Step(ROWS["switch"](), (4, 1, 3), "float64"),
            Step(Reduce(REDUCTIONS["sum"], (0,)), (5,), "float64"),
            Step(ROWS["sub"](), (5, 6), "float64"),
        ),
        (Result(6), Result(7)),
    ),
    "heavy functions, of which the rest is a block": Formula(
        ("int64", "float64", "float64"), (),
        (
            Step(GATHER, (2, 0), "float64"), Step(ROWS["mul"](), (3, 1), "float64"),
            Step(ROWS["sqrt"](), (4,), "float64"), Step(ROWS["exp"](), (4,), "float64"),
        ),
        (Result(5), Result(6)),
    ),
}  # fmt: skip


def made_of(formula, rank):
    return scheduled(formula, [(False,) * rank] * len(formula.inputs))


@pytest.fixture(scope="module")
def kernels():
    """Return, by name and rank, the kernels that there are, in LoopIR and as C."""
    found = {
        (name, rank): made_of(formula, rank)
        for name, formula in FORMULAS.items()
        for rank in (1, 2)
    }
    functions = addresses([print_kernel(made) for made in found.values()])
    return dict(zip(found, zip(found.values(), functions, strict=True), strict=True))


def arrays_of(rng, formula, shape):
    """Return inputs, and the same with tables as what the C reads of them: an address."""
    positions = {*formula.tables.values()}
    inputs = [
        values_of(rng, dtype, (TABLE,) if i in formula.tables else shape)
        for i, dtype in enumerate(formula.inputs)
    ]
    for i in positions:
        inputs[i][...] = rng.integers(0, TABLE, shape)
    for i in formula.tables:
        inputs[i] = np.ascontiguousarray(inputs[i])
    one = (1,) * len(shape)
    short = [x[:1].reshape(one) if i in formula.tables else x for i, x in enumerate(inputs)]
    return inputs, short


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("name", FORMULAS)
def test_printed_c_equals_interpreted_ir(kernels, name, rank):
    formula, (made, function) = FORMULAS[name], kernels[name, rank]
    rng = np.random.default_rng(13)
    numbers = [np.array(one.array) for one in made.literals]
    every = formula.patterns([(False,) * rank] * len(formula.inputs))
    for shape in ((1,), (15,), (700,), (3001,)) if rank == 1 else ((2, 3), (40, 33), (3, 600)):
        for threads in (1, 2):
            inputs, short = arrays_of(rng, formula, shape)
            outputs = [
                np.empty([1 if o else n for o, n in zip(every[r.value], shape, strict=True)],
                         formula.dtypes[r.value])
                for r in formula.results
            ]
            others = [np.empty_like(z) for z in outputs]
            given = formula_with(formula, made.literals), short, outputs
            status, found = attempt(function.optimized, *given, threads=threads)
            assert status == run(made.kernel, [*inputs, *others, *numbers]) == 0
            for z, other in zip(found, others, strict=True):
                if "heavy" in name:
                    np.testing.assert_allclose(z, other, rtol=1e-14)
                else:
                    assert_same_bits(z, other)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("rank", [1, 2])
def test_kernels_are_verified(name, rank):
    made = made_of(FORMULAS[name], rank)
    assert made is not None
    verify(made.kernel)
    results = range(len(FORMULAS[name].results))
    assert {(r, table) for r in results for table in FORMULAS[name].tables} <= made.apart


def test_positions_of_all_integers_have_one_kernel():
    formula = FORMULAS["gathered and multiplied"]
    short = Formula(("int16", *formula.inputs[1:]), (), formula.steps, formula.results)
    assert print_kernel(made_of(formula, 1)).name == print_kernel(made_of(short, 1)).name


WRONG = {
    "tables, and they alone, are read at positions": [
        (Pointer("t", "float64", 0), Let("v", Load("t", Var("n"), "float64"))),
        (Pointer("x", "float64", 1), Let("v", Load("x", Position(Ref("p", "int64")), "float64"))),
    ],
    "does not point to the beginning": [
        (
            Pointer("t", "float64", 0, elements=1),
            Let("v", Load("t", Position(Ref("p", "int64")), "float64")),
        )
    ],
    "at a position of int32": [
        (
            Pointer("t", "float64", 0), Let("q", ZeroOrOne(1, "int32")),
            Let("v", Load("t", Position(Ref("q", "int32")), "float64")),
        )
    ],
    "used where it is not defined": [
        (
            Pointer("t", "float64", 0),
            Let("v", Load("t", Position(Ref("q", "int64")), "float64")),
        )
    ],
}  # fmt: skip


@pytest.mark.parametrize("problem", WRONG)
def test_what_is_refused(problem):
    extents = {
        0: Extent("float64", None, 0, table=True),
        1: Extent("float64", None, Var("n")),
    }
    for body in WRONG[problem]:
        whole = (Let("p", ZeroOrOne(1, "int64")), *body)
        with pytest.raises(LoopError, match=problem):
            check_function(KernelFunction("f", LENGTHS, whole), Context(extents, {}, {}, ()))


@pytest.mark.parametrize(
    ("inputs", "steps"),
    [
        # The first input is a table.
        (("float64", "int64"), (Step(GATHER, (0, 1), "float64"),)),
        # A table is read as elements, too; so are positions.
        (("int64", "float64"), (Step(GATHER, (1, 0), "float64"),
                                Step(ROWS["add"](), (1, 2), "float64"))),
        (("int64", "float64"), (Step(GATHER, (1, 0), "float64"),
                                Step(ROWS["add"](), (0, 2), "float64"))),
        # Positions are computed.
        (("int64", "float64"), (Step(ROWS["neg"](), (0,), "int64"),
                                Step(GATHER, (1, 2), "float64"))),
    ],
)  # fmt: skip
def test_formulas_that_are_refused(inputs, steps):
    with pytest.raises(ValueError, match="tables and positions"):
        Formula(inputs, (), steps, (Result(len(inputs) + len(steps) - 1),))


def test_the_text_of_a_gather():
    assert str(Fused(FORMULAS["gathered and multiplied"])) == "Fused{x2[x0] * x1}"
