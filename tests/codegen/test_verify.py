"""The verifier of LoopIR accepts what schedules make, and refuses what would go wrong."""

from dataclasses import replace

import numpy as np
import pytest

from symcomp.codegen.kernel import scheduled
from symcomp.codegen.loopir import ir
from symcomp.codegen.loopir.bounds import facts_of, follows, form_of
from symcomp.codegen.loopir.expressions import (
    Accumulate,
    Convert,
    Get,
    IndexOp,
    Load,
    Primitive,
    Ref,
    Var,
    ZeroOrOne,
)
from symcomp.codegen.loopir.interpret import Interpreter
from symcomp.codegen.loopir.ir import (
    Accumulators,
    Define,
    Guard,
    KernelFunction,
    Kind,
    Let,
    Loop,
    Pointer,
    Set,
    Signature,
    Store,
)
from symcomp.codegen.loopir.kernel import Role
from symcomp.codegen.loopir.memory import AccessError, address_of
from symcomp.codegen.loopir.verify import Context, Extent, LoopError, check_function
from symcomp.codegen.loopir.verify_kernel import verify
from symcomp.codegen.printers.c_text import function_text
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce

KIND = "float64"
LENGTHS = Signature(("n", "m"), ("data",))
I, K, N, M = Var("i"), Var("k"), Var("n"), Var("m")
X, Z = Pointer("x", KIND, 0), Pointer("z", KIND, 1, writes=True)
ONE = ZeroOrOne(1, KIND)


def x(index):
    return Load("x", index, KIND)


def lanes(*body, kind=Kind.VECTOR, stop=N, index="i"):
    return Loop(kind, index, 0, stop, body)


def check(*body, totals=()):
    """Check a function over arrays of n elements, of which the second may be written."""
    extents = {0: Extent(KIND, None, N), 1: Extent(KIND, None, N, writes=True)}
    facts = [fact for pair in ((1, N), (N, M), (M, 4096)) for fact in facts_of(IndexOp("<=", pair))]
    context = Context(extents, dict(totals), {}, tuple(facts))
    check_function(KernelFunction("f", LENGTHS, body), context)


def test_what_is_right():
    check(X, Z, lanes(Let("v", x(I)), Store("z", I, Ref("v", KIND))))
    backwards = IndexOp("-", (IndexOp("-", (N, 1)), I))
    check(X, Z, lanes(Store("z", backwards, x(backwards))))
    blocks = IndexOp("+", (IndexOp("*", (I, 4)), K))
    inner = lanes(Guard(IndexOp("<", (blocks, N)), (Store("z", blocks, ONE),)), index="k", stop=4)
    check(Z, lanes(inner, kind=Kind.PARALLEL, stop=N))
    check(
        X, Accumulators("p", KIND), lanes(Set("p", I, ONE), kind=Kind.INDEPENDENT),
        lanes(Set("p", I, Accumulate("sum", Get("p", I, KIND), x(I)))),
    )  # fmt: skip


WRONG = {
    "used where it is not defined": (X, Z, lanes(Store("z", I, Ref("v", KIND)))),
    "v is defined twice": (X, Let("v", x(0)), Let("v", x(0))),
    "v of float64 is used as float32": (Let("v", ONE), Let("w", Ref("v", "float32"))),
    "float32 is stored to z, of float64": (Z, lanes(Store("z", I, Convert(ONE, "float32")))),
    "x points to array 0 as float32": (Pointer("x", "float32", 0),),
    "points to array 0 as float64, or to write it": (replace(X, writes=True),),
    "points to array 2, which the function does not": (replace(X, array=2),),
    "that an element of x is before its end": (X, lanes(Let("v", x(I)), stop=M)),
    "that an element of x is at 0 or behind": (X, Let("v", x(IndexOp("-", (N, 2))))),
    "before its end is not proven": (X, lanes(Let("v", x(IndexOp("+", (I, 1)))))),
    "x is not there to write": (X, lanes(Store("x", I, ONE))),
    "p are read before they begin": (
        Accumulators("p", KIND), lanes(Set("p", I, Accumulate("sum", Get("p", I, KIND), ONE))),
    ),
    "enough lanes is not proven": (Define("big", IndexOp("*", (M, 2))), Accumulators("p", KIND)),
    "iterations of i write the same element of 1": (Z, lanes(Store("z", 0, ONE))),
    "iterations of k write the same element": (
        Z, lanes(lanes(Store("z", I, ONE), index="k"), kind=Kind.SERIAL),
    ),
    "may access the element of 1 that another writes": (
        Z, lanes(Store("z", I, Load("z", 0, KIND)), kind=Kind.PARALLEL),
    ),
    "is joined to totals of float64": (
        Let("v", Accumulate("sum", ONE, ZeroOrOne(1, "float32"))),
    ),
    "rounding does not fit its arguments": (Let("v", Primitive("rounding", (ONE, ONE), KIND)),),
    "so it has an order": (ir.Counter("i", 0), Loop(Kind.VECTOR, "i", None, N, ())),
    "the step of i is not proven to be positive": (Loop(Kind.SERIAL, "i", 0, N, (), 0),),
    "the condition of the loop over i depends on it": (
        ir.Counter("i", 0), Loop(Kind.REDUCE, "i", None, N, (), condition=IndexOp("<", (I, M))),
    ),
    "holds no totals of float64": (ir.MergeSums(KIND, (("data", 0),) * 4),),
    "is a copy of given": (ir.CopyTable("own", "given", 2),),
}  # fmt: skip


@pytest.mark.parametrize("problem", WRONG)
def test_what_is_wrong(problem):
    body = WRONG[problem]
    if "enough lanes" in problem:
        with pytest.raises(LoopError, match="enough lanes"):
            extents = {0: Extent(KIND, None, N)}
            check_function(KernelFunction("f", LENGTHS, body), Context(extents, {}, {}, ()))
        return
    with pytest.raises(LoopError, match=problem):
        check(*body)


def sum_of_rows():
    step = Step(Reduce(REDUCTIONS["sum"], (1,)), (0,), KIND)
    made = scheduled(Formula((KIND,), (), (step,), (Result(1, (1,)),)), [(False, False)])
    return made.kernel


def sum_of_columns():
    """x + y for a column y, which is one number for each row."""
    step = Step(ROWS["add"](), (0, 1), KIND)
    formula = Formula((KIND, KIND), (), (step,), (Result(2),))
    return scheduled(formula, [(False, False), (False, True)]).kernel


def test_kernels_that_do_not_fit_together():
    loops = sum_of_rows()
    verify(loops)
    stage, *_ = loops.sweep.stages
    roles = tuple(reversed(stage.along.roles))
    for sweep in (
        replace(loops.sweep, stages=(replace(stage, lanes="none"),)),
        replace(loops.sweep, stages=(replace(stage, parts=stage.parts - 1),)),
        replace(loops.sweep, stages=(replace(stage, along=replace(stage.along, roles=roles)),)),
        replace(loops.sweep, dtypes=("float32", *loops.sweep.dtypes[1:])),
    ):
        with pytest.raises(LoopError):
            verify(replace(loops, sweep=sweep))
    roles = (stage.across.roles[0], Role.NUMBER, *stage.across.roles[2:])
    with pytest.raises(LoopError, match="array 1 has another role in body0 than in body0"):
        other = replace(stage, across=replace(stage.across, roles=roles))
        verify(replace(loops, sweep=replace(loops.sweep, stages=(other,))))
    columns = sum_of_columns()
    verify(columns)
    with pytest.raises(LoopError, match="array 1 is no one number"):
        verify(replace(columns, sweep=replace(columns.sweep, bodies=columns.sweep.bodies[:1])))
    with pytest.raises(LoopError, match="not before it"):
        verify(replace(loops, functions=loops.functions[::-1]))


def test_inequalities():
    facts = facts_of(IndexOp("<", (I, N))) + facts_of(IndexOp("<=", (0, I)))
    assert follows(form_of(IndexOp("-", (N, 1))), facts)
    assert not follows(form_of(IndexOp("-", (N, 2))), facts)
    assert follows(form_of(IndexOp("-", (IndexOp("*", (N, 3)), IndexOp("*", (I, 2))))), facts)


def test_loops_of_a_grid():
    """Blocks of 32 threads, the last of which has some that do nothing."""
    b, t = Var("b"), Var("t")
    place = IndexOp("+", (IndexOp("*", (b, 32)), t))
    store = Guard(
        IndexOp("<", (place, N)), (Store("z", place, Accumulate("sum", x(place), ONE)),)
    )
    threads = Loop(Kind.BLOCK, "t", 0, 32, (store,))
    count = IndexOp("//", (IndexOp("+", (N, 31)), 32))
    body = (X, Z, Loop(Kind.GRID, "b", 0, count, (threads,)))
    check(*body)
    function = KernelFunction("f", LENGTHS, body)
    values, found = np.arange(100.0), np.zeros(100)
    data = [address_of(values), address_of(found)]
    Interpreter([function]).call("f", 100, 100, data)
    np.testing.assert_array_equal(found, values + 1)
    assert "for (int64_t b = 0; b < (n + 31) / 32; b++) {" in "\n".join(
        function_text(function, "k")
    )


def test_the_interpreter_refuses_what_lies_outside():
    function = KernelFunction("f", LENGTHS, (X, Z, lanes(Store("z", I, x(I)), stop=M)))
    values = np.arange(10.0)
    data = [address_of(values), address_of(np.zeros(10))]
    Interpreter([function]).call("f", 10, 10, data)
    with pytest.raises(AccessError, match="bytes 0 to 88 of an array of 80"):
        Interpreter([function]).call("f", 10, 11, data)
