"""Kernels that add to tables at positions: C and interpreted LoopIR are the same, and verified."""

import numpy as np
import pytest

from symcomp.codegen.kernel import print_kernel, scheduled
from symcomp.codegen.loopir.ir import Accumulators, KernelFunction, Kind, Loop, Pointer, Scatter
from symcomp.codegen.loopir.run import run
from symcomp.codegen.loopir.verify import Context, Extent, LoopError, check_function
from symcomp.codegen.loopir.verify_kernel import verify
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import GATHER, SCATTER, Formula, Literal, Result, Step
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.tests.codegen.running import addresses, assert_same_bits, attempt
from symcomp.tests.codegen.test_loopir import formula_with, values_of
from symcomp.tests.codegen.test_verify import LENGTHS

TABLE = 37


def added(dtype, function="sqr"):
    """Return the formula that adds a function of the elements of a vector to a table."""
    steps = Step(ROWS[function](), (0,), dtype), Step(SCATTER, (2, 3, 1), dtype)
    return Formula((dtype, "int64", dtype), (), steps, (Result(4),))


def total(name):
    return Reduce(REDUCTIONS[name], (0,))


FORMULAS = {
    **{f"squares of {d}": added(d) for d in ("int8", "uint32", "float16", "float64", "complex64")},
    "truths": Formula(
        ("float64", "int64", "bool"), (Literal.of(np.float64(0)),),
        (Step(ROWS["gt"](), (0, 3), "bool"), Step(SCATTER, (2, 4, 1), "bool")), (Result(5),),
    ),
    "heavy functions": added("float64", "exp"),
    "a value for two tables, and another one": Formula(
        ("float64", "int64", "float64", "int64", "float64", "int64", "float32"), (),
        (
            Step(ROWS["sqr"](), (0,), "float64"), Step(ROWS["cast"]("float32"), (7,), "float32"),
            Step(SCATTER, (2, 7, 1), "float64"), Step(SCATTER, (4, 7, 3), "float64"),
            Step(SCATTER, (6, 8, 5), "float32"), Step(ROWS["neg"](), (0,), "float64"),
        ),
        (Result(9), Result(10), Result(11), Result(12)),
    ),
    "one table read, another added to, and a sum": Formula(
        ("int64", "float64", "float64", "int64", "float64"), (),
        (
            Step(GATHER, (2, 0), "float64"), Step(ROWS["sub"](), (1, 5), "float64"),
            Step(total("sum"), (6,), "float64"), Step(SCATTER, (4, 6, 3), "float64"),
        ),
        (Result(7), Result(8)),
    ),
    "a maximum of heavy functions, and what is below it": Formula(
        ("float64", "int64", "float64"), (),
        (
            Step(ROWS["exp"](), (0,), "float64"), Step(total("max"), (3,), "float64"),
            Step(ROWS["sub"](), (3, 4), "float64"), Step(SCATTER, (2, 5, 1), "float64"),
        ),
        (Result(4), Result(6)),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def kernels():
    """Return, by name, each kernel in LoopIR and as C."""
    found = {
        name: scheduled(formula, [(False,)] * len(formula.inputs))
        for name, formula in FORMULAS.items()
    }
    functions = addresses([print_kernel(made) for made in found.values()])
    return dict(zip(found, zip(found.values(), functions, strict=True), strict=True))


def inputs_of(rng, formula, count):
    """Return inputs: vectors in any layout, adjacent tables, and positions, some repeated."""
    found = [
        np.ascontiguousarray(values_of(rng, d, (TABLE,)))
        if i in formula.tables
        else values_of(rng, d, (count,))
        for i, d in enumerate(formula.inputs)
    ]
    for i in formula.tables.values():
        places = rng.integers(0, TABLE, count)
        found[i] = np.sort(places) if i % 2 else places
    return found


@pytest.mark.parametrize("name", FORMULAS)
def test_printed_c_equals_interpreted_ir(kernels, name):
    formula, (made, function) = FORMULAS[name], kernels[name]
    rng = np.random.default_rng(13)
    numbers = [np.array(one.array) for one in made.literals]
    every = formula.patterns([(False,)] * len(formula.inputs))
    for count in (1, 15, 16, 33, 700, 3001):
        inputs = inputs_of(rng, formula, count)
        # The C reads only the address of a table.
        short = [x[:1] if i in formula.tables else x for i, x in enumerate(inputs)]
        outputs = [
            inputs[formula.scatters[r.value]]
            if r.value in formula.scatters
            else np.empty(1 if every[r.value][0] else count, formula.dtypes[r.value])
            for r in formula.results
        ]
        own, others = [z.copy() for z in outputs], [z.copy() for z in outputs]
        given = formula_with(formula, made.literals), short, own
        status, found = attempt(function.optimized, *given)
        assert status == run(made.kernel, [*inputs, *others, *numbers]) == 0
        computed = Fused(formula).perform(*inputs)
        for z, other, reference in zip(found, others, computed, strict=True):
            if np.dtype(z.dtype).kind in "fc" and ("heavy" in name or "sum" in name):
                np.testing.assert_allclose(z, other, rtol=1e-13, atol=1e-11)
                np.testing.assert_allclose(z, reference.reshape(z.shape), rtol=1e-12, atol=1e-10)
            else:
                assert_same_bits(z, other)
                assert_same_bits(z, reference)


@pytest.mark.parametrize("name", FORMULAS)
def test_kernels_are_verified(name):
    made = scheduled(FORMULAS[name], [(False,)] * len(FORMULAS[name].inputs))
    verify(made.kernel)
    formula = FORMULAS[name]
    own = {(i, formula.scatters.get(r.value)) for i, r in enumerate(formula.results)}
    pairs = {(i, table) for i in range(len(formula.results)) for table in formula.tables}
    assert pairs - own <= made.apart
    assert not own & made.apart


def test_what_has_no_loop():
    # Positions in a matrix, and one number that is added everywhere.
    formula = FORMULAS["squares of float64"]
    assert scheduled(formula, [(False, False)] * 3) is None
    assert scheduled(formula, [(True,), (False,), (False,)]) is None


TABLE_POINTER = Pointer("t", "float64", 0, writes=True)
PLACES, BUFFER = Pointer("p", "int64", 1), Accumulators("b", "float64", lanes=16)
WRONG = {
    "in any order": [
        TABLE_POINTER, PLACES, BUFFER,
        Loop(Kind.VECTOR, "i", 0, 4, (Scatter("t", "p", 0, "b", 1, "float64"),)),
    ],
    "does not point to the beginning": [
        Pointer("t", "float64", 0, elements=1, writes=True), PLACES, BUFFER,
        Scatter("t", "p", 0, "b", 1, "float64"),
    ],
    "as many b is not proven": [
        TABLE_POINTER, PLACES, BUFFER, Scatter("t", "p", 0, "b", 17, "float64"),
    ],
    "before its end is not proven": [
        TABLE_POINTER, PLACES, BUFFER, Scatter("t", "p", 3, "b", 2, "float64"),
    ],
    "at positions of float64": [
        TABLE_POINTER, Pointer("p", "float64", 2), BUFFER, Scatter("t", "p", 0, "b", 1, "float64"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("problem", WRONG)
def test_what_is_refused(problem):
    extents = {
        0: Extent("float64", None, 0, writes=True, table=True),
        1: Extent("int64", None, 4),
        2: Extent("float64", None, 4),
    }
    with pytest.raises(LoopError, match=problem):
        function = KernelFunction("f", LENGTHS, tuple(WRONG[problem]))
        check_function(function, Context(extents, {}, {}, ()))


SCATTERED = Step(SCATTER, (2, 0, 1), "float64")


@pytest.mark.parametrize(
    ("steps", "results", "problem"),
    [
        # The table is read as elements, or is added.
        ((SCATTERED, Step(ROWS["neg"](), (2,), "float64")), (3, 4), "tables and positions"),
        ((Step(SCATTER, (2, 2, 1), "float64"),), (3,), "tables and positions"),
        # A scattered value is read, or no result.
        ((SCATTERED, Step(ROWS["neg"](), (3,), "float64")), (3, 4), "must be results"),
        ((SCATTERED, Step(ROWS["neg"](), (0,), "float64")), (4,), "must be results"),
    ],
)
def test_formulas_that_are_refused(steps, results, problem):
    with pytest.raises(ValueError, match=problem):
        Formula(("float64", "int64", "float64"), (), steps, tuple(map(Result, results)))


def test_the_text_of_a_scatter():
    assert str(Fused(FORMULAS["squares of float64"])) == "Fused{x2[x1] += sqr(x0)}"
