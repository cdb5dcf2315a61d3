"""debugprint: print graphs, functions and programs as trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symcomp.compile.callable import Function
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.output import written
from symcomp.core.tree import ID_STYLES, Tree, TreeOptions
from symcomp.printing.values import min_informative_str
from symcomp.vm.machine import UNSET
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Program


def debugprint(
    obj: Any,
    depth: int = -1,
    print_type: bool = False,
    file: Any = None,
    ids: str = "CHAR",
    stop_on_name: bool = False,
    done: dict[Any, str] | None = None,
    print_storage: bool = False,
    print_clients: bool = False,
    used_ids: dict[Any, str] | None = None,
    *,
    print_destroy_map: bool = True,
    print_view_map: bool = True,
    print_source: bool = False,
    print_inner_graphs: bool = True,
) -> Any:
    """Print graphs as trees: each node above its inputs.

    Parameters
    ----------
    obj : Variable, Apply, FunctionGraph, Function, Program, or list or tuple of them
        For a Function, print the rewritten graph, its updates at the end, and for each node the
        number of the instruction that computes it (``#3``); for a Program, its listing first.
    depth : int
        The number of levels to print; -1: all.
    print_type : bool
        Add the types: dtypes and static shapes.
    file : file object or "str", optional
        The file to write to, standard output if not given; ``"str"`` returns the text instead.
    ids : {"CHAR", "int", "id", "auto", ""}
        The labels of nodes: ``[id A]``, ``[id 0]``, their address, as CHAR, or none.
    stop_on_name : bool
        Do not go below variables that have names.
    done : dict, optional
        The labels given so far; pass the same dict to continue them: nodes in it are not printed
        again. ``used_ids`` is another name for it.
    print_storage : bool
        Add the values that a function holds: of shared variables and defaults, and values kept from
        the last call (``linker="cvm_nogc"``).
    print_clients : bool
        Add the clients of nodes that have several.
    print_destroy_map, print_view_map : bool
        Add the input that an output of an op overwrites (``d={output: [inputs]}``), or may be a
        view of (``v=``).
    print_source : bool
        Add the lines of your program that made the nodes.
    print_inner_graphs : bool
        Show the graphs inside ops, at the end: bodies of loops, steps of fused loops.

    Returns
    -------
    The file, or the text with ``file="str"``.

    Raises
    ------
    TypeError
        If ``obj`` is nothing that has a graph.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x, y = T.dvectors("x", "y")
    >>> _ = symcomp.printing.debugprint(T.exp(x + y) * (x + y).sum())
    mul [id A]
     ├─ exp [id B]
     │  └─ add [id C]
     │     ├─ x [id D]
     │     └─ y [id E]
     └─ DimShuffle{x} [id F] v={0: [0]}
        └─ sum{axis=0} [id G]
           └─ add [id H]
              ├─ x [id D]
              └─ y [id E]
    """
    if ids not in ID_STYLES:
        known = ", ".join(map(repr, ID_STYLES))
        raise ValueError(f"debugprint: ids={ids!r} does not exist; there are {known}")
    options = TreeOptions(
        depth, print_type, ids, stop_on_name, print_clients, print_destroy_map, print_view_map,
        print_source, print_inner_graphs,
    )  # fmt: skip
    labels = used_ids if used_ids is not None else done
    tree = Tree(options, labels if labels is not None else {}, describe=min_informative_str)
    for part in obj if isinstance(obj, list | tuple) else [obj]:
        _add(tree, part, print_storage)
    return written("\n".join(tree.lines), file)


def _add(tree: Tree, obj: Any, print_storage: bool) -> None:
    """Add the graphs of one object."""
    if isinstance(obj, Function):
        if print_storage:
            tree.values = _storage(obj)
        _add_program(tree, obj.program)
        tree.add(obj.maker.fgraph.outputs)
    elif isinstance(obj, FunctionGraph):
        tree.add(obj.outputs)
    elif isinstance(obj, Program):
        tree.lines += [*obj.listing().split("\n"), ""]
        _add_program(tree, obj)
        tree.add([obj.variables[slot] for slot in obj.outputs])
    elif isinstance(obj, Apply):
        tree.add(obj.outputs)
    elif isinstance(obj, Variable):
        tree.add([obj])
    else:
        raise TypeError(
            f"debugprint: {obj!r} is a {type(obj).__name__}; a variable, a node, a function, a "
            "FunctionGraph, a Program or a list of them was expected"
        )


def _add_program(tree: Tree, program: Program) -> None:
    """Record which instruction computes each node."""
    tree.positions = {
        step.node: i
        for i, step in enumerate(program.instructions)
        if step.node is not None and step.opcode in (Opcode.CALL, Opcode.BRANCH)
    }


def _storage(f: Function) -> Mapping[Variable, Any]:
    """Return the values that a function holds, by the variables of its graph."""
    found: dict[Variable, Any] = {}
    for variable, value in zip(f.program.variables, f.kept_values() or (), strict=False):
        if value is not UNSET and not isinstance(variable, Constant):
            found[variable] = value
    for variable, spec in zip(f.maker.fgraph.inputs, f.maker.inputs, strict=True):
        if spec.has_default:
            found[variable] = spec.container.read()
    return found
