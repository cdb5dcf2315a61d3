"""Print kernels in C: tables for the shared loops, and the entry function.

The function NAME of a kernel is

    int NAME(char *const *data, const int64_t *shape, const int64_t *strides,
             const struct team *team)

with the pointers of inputs, outputs and literals, the lengths of all axes, a row of strides in
bytes for each input and output, and the team that shares large loops: a number of threads and a
function that runs parts of some work on them (``nest.h``). It returns 0, or 1 if an axis that must
not be empty is empty. Without pointers it only keeps what it derives from lengths and strides, for
later calls with the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from symcomp.codegen.loopir.ir import Statement
from symcomp.codegen.loopir.kernel import (
    Kept,
    Loops,
    NestPart,
    Nests,
    Role,
    RowFunction,
    Sweep,
)
from symcomp.codegen.printers.c_text import Lines, function_text
from symcomp.core.record import record
from symcomp.ops.formulas.formula import Literal

# Placeholders for a kernel's own name, which is a hash of its text.
_SELF, _LOOPS = "NAME", "LOOPS"


@record
class Kernel:
    """A function in C.

    Attributes
    ----------
    name : str
        The name of the function; a hash of the source.
    source : str
        The function, and static functions that it alone calls.
    literals : tuple of Literal
        Arguments of the function after the outputs: pointers to these numbers.
    elementwise : bool
        Whether it may be called without a team: all arrays lie in C order then, none is stretched,
        and the first length is the number of elements.
    needs : tuple of str
        Sources of functions that it calls, as others may: loops over any lengths, kernels.
    """

    name: str
    source: str
    literals: tuple[Literal, ...]
    elementwise: bool = False
    needs: tuple[str, ...] = ()


def print_loops(loops: Loops, literals: tuple[Literal, ...]) -> Kernel:
    """Print the kernel of one nest."""
    functions = [line for f in loops.functions for line in function_text(f, _SELF)]
    prefix, needed = _named("loops", functions)
    sweep = loops.sweep
    lines = [*_tables(sweep), *_entry(_body_of_nest(sweep))]
    name, source = _named("kernel", [line.replace(_LOOPS, prefix) for line in lines])
    return Kernel(name, source, literals, sweep.in_order is not None, (needed,))


def print_nests(nests: Nests, literals: tuple[Literal, ...]) -> Kernel:
    """Print the kernel of several nests, which calls those of its parts."""
    kernels = [print_loops(part.loops, ()) for part in nests.parts]
    body = [
        "int failed = 0, keeps = !data;",
        "int64_t bytes = 0, part_bytes = 0, most = 0;",
        f"static char *const none[{nests.given + len(literals)}];",
        "struct team own = *team;",
        f"const void **orders = nest_orders(team, {len(kernels)}, keeps);",
        "if (keeps && !orders)",
        "    return 1;",
        "data = keeps ? none : data;",
        "own.bytes = keeps ? &part_bytes : 0;",
    ]
    if nests.kept:
        body += _kept_tables(nests)
    body.append("own.memory = keeps ? 0 : team->memory + bytes;")
    for number, (kernel, part) in enumerate(zip(kernels, nests.parts, strict=True)):
        body += ["if (!failed) {", *_indented(_call(nests, number, kernel.name, part)), "}"]
    body += ["if (keeps)", "    *team->bytes = bytes + most;", "return failed;"]
    name, source = _named("kernel", [*_entry(body), ""])
    needs = tuple(text for kernel in kernels for text in (*kernel.needs, kernel.source))
    return Kernel(name, source, literals, needs=needs)


def print_straight(body: Sequence[Statement]) -> Kernel:
    """Print straight code: a function of the addresses of storages, and of results.

    It is no kernel: it takes two tables of addresses, and nothing else.
    """
    head = f"void {_SELF}(char *const *data, char *const *to)"
    lines = [f"{head};", head, "{", *Lines(_SELF).block(body, "    "), "}"]
    return Kernel(*_named("straight", lines), ())


def _named(kind: str, lines: Sequence[str]) -> tuple[str, str]:
    """Return a name that is a hash of the lines, and their text with it."""
    text = "\n".join(lines) + "\n"
    name = f"{kind}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return name, text.replace(_SELF, name)


def _entry(body: Iterable[str]) -> list[str]:
    """Return the entry function of a kernel."""
    head = f"int {_SELF}(KERNEL_ARGUMENTS)"
    return [f"{head};", head, "{", *_indented(body), "}"]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _numbers(entries: Iterable[int]) -> str:
    return ", ".join(str(int(entry)) for entry in entries)


# -- one nest


def _tables(sweep: Sweep) -> list[str]:
    """Return the tables that describe the kernel to the shared loops."""
    total = len(sweep.dtypes)
    padding = [False] * (total - len(sweep.stretched))
    stretched = [[p[axis] for p in sweep.stretched] + padding for axis in range(sweep.rank)]
    lines = [
        _table("size", sweep.sizes),
        _table("stretched", [one for row in stretched for one in row]),
        _table("reduced", sweep.reduced),
    ]
    bodies = sweep.bodies or [b for s in sweep.stages for b in (s.along, s.across, s.section)]
    roles = {one: i for i, one in enumerate(dict.fromkeys(body.roles for body in bodies))}
    lines += [_table(f"role{i}", one) for one, i in roles.items()]
    if sweep.stages:
        entries = []
        for number, stage in enumerate(sweep.stages):
            lines += [_table(f"chosen{number}", stage.chosen)] if stage.chosen else []
            functions = [stage.lanes, *(stage.totals or [""] * 3)]
            fields = [
                *(_body(body, roles) for body in (stage.along, stage.across, stage.section)),
                str(stage.parts),
                f"{len(stage.chosen)}, {_SELF}_chosen{number}" if stage.chosen else "0, 0",
                *(f"{_LOOPS}_{function}" if function else "0" for function in functions),
                str(int(stage.ready)),
            ]
            entries.append(f"{{{', '.join(fields)}}}")
        lines.append(f"static const struct stage {_SELF}_stages[] = {{{', '.join(entries)}}};")
    else:
        entries = [_body(body, roles) for body in sweep.bodies]
        lines.append(f"static const struct body {_SELF}_bodies[] = {{{', '.join(entries)}}};")
    numbers = _numbers(
        (sweep.rank, len(sweep.stretched), sweep.temporaries, total, len(entries),
         sweep.nonempty, sweep.width, sweep.buffer, sweep.lanes)
    )  # fmt: skip
    tables = ", ".join(f"{_SELF}_{name}" for name in ("size", "stretched", "reduced"))
    nests = f"0, {_SELF}_stages" if sweep.stages else f"{_SELF}_bodies, 0"
    lines.append(f"static const struct kernel {_SELF}_kernel = {{{numbers}, {tables}, {nests}}};")
    return lines


def _table(name: str, entries: Iterable[int]) -> str:
    return f"static const uint8_t {_SELF}_{name}[] = {{{_numbers(entries) or 0}}};"


def _body(body: RowFunction, roles: dict[tuple[Role, ...], int]) -> str:
    return f"{{{_LOOPS}_{body.function}, {_SELF}_role{roles[body.roles]}}}"


def _body_of_nest(sweep: Sweep) -> list[str]:
    """Call the shared loops; or, without a team, the body for arrays in order."""
    loops = "nest_reduction" if sweep.stages else "nest_elementwise"
    call = f"return {loops}(&{_SELF}_kernel, data, shape, strides, team);"
    if sweep.in_order is None:
        return [call]
    return [
        "if (!team) {",
        f"    static const int64_t none[{len(sweep.dtypes)}];",
        f"    {_LOOPS}_{sweep.in_order.function}(1, shape[0], data, none);",
        "    return 0;",
        "}",
        call,
    ]


# -- several nests


def _kept_tables(nests: Nests) -> list[str]:
    """Return the declarations of the temporary arrays, and the calls that fill them."""
    rank, kept = nests.rank, nests.kept
    lines = [
        f"static const uint8_t size[] = {{{_numbers(np.dtype(k.dtype).itemsize for k in kept)}}};",
        f"static const uint8_t stretched[] = {{{_numbers(x for k in kept for x in k.stretched)}}};",
        f"int64_t at[{len(kept)}], by[{len(kept) * rank}];",
        "char *kept = team->memory;",
        f"bytes = kept_arrays({len(kept)}, {rank}, size, stretched, shape, at, by);",
    ]
    filled = [
        f"failed |= {_filled(nests, i, one)};" for i, one in enumerate(kept) if one.axis is not None
    ]
    return [*lines, *(["if (!keeps) {", *_indented(filled), "}"] if filled else [])]


def _filled(nests: Nests, number: int, kept: Kept) -> str:
    """Return the call that fills an array."""
    rank, to = nests.rank, f"(int32_t *)(kept + at[{number}])"
    source = kept.positions_of
    if source is None:
        return f"count_up(shape[{kept.axis}], {to})"
    dtype = np.dtype(nests.dtypes[source])
    kind = dtype.itemsize if dtype.kind == "i" else -dtype.itemsize
    return (
        f"read_positions({kind}, {rank}, {kept.axis}, stretched + {number * rank}, shape, "
        f"data[{source}], strides + {source * rank}, {to})"
    )


def _call(nests: Nests, number: int, name: str, part: NestPart) -> list[str]:
    """Call the kernel of a part, with its arrays and its order."""
    rank, given = nests.rank, nests.given
    pointers, rows = [], []
    for array in part.arrays:
        if array < given:
            pointers.append(f"data[{array}]")
            rows.append(f"strides + {array * rank}")
        else:
            pointers.append(f"kept + at[{array - given}]")
            rows.append(f"by + {(array - given) * rank}")
    pointers += [f"data[{given + literal}]" for literal in part.literals]
    lengths = ["1" if one else f"shape[{axis}]" for axis, one in enumerate(part.ones)]
    lines = [
        f"char *const part[] = {{{', '.join(pointers)}}};",
        f"const int64_t lengths[] = {{{', '.join(lengths)}}};",
        f"int64_t steps[{len(rows) * rank}];",
    ]
    lines += [f"memcpy(steps + {i * rank}, {row}, {8 * rank});" for i, row in enumerate(rows)]
    return [
        *lines,
        f"own.order = orders ? orders + {number} : 0;",
        f"failed = {name}(keeps ? 0 : part, lengths, steps, &own);",
        "most = part_bytes > most ? part_bytes : most;",
    ]
