"""The law of the layers: what a module may import. `test_layers.py` holds the code to it.

The layers, low to high, are in `LAYERS`. A module imports from its own layer and from those below,
by the full name, at the top of the file. Features (sparse, scan, gpu) do not know one another.
No module imports `symcomp` itself, for the facade is for users (only `symcomp/__init__.py` may
write `from symcomp import tensor`), and no two modules import each other, directly or around.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from symcomp.tests.repository import path_of_module

#: Low to high. The facade, which users import, is followed by what other libraries are given.
LAYERS = (
    ("symcomp.lazy", "symcomp.errors", "symcomp.config"),
    ("symcomp.core",),
    ("symcomp.ops",),
    ("symcomp.codegen",),
    ("symcomp.rewrite",),
    ("symcomp.autodiff",),
    ("symcomp.vm",),
    ("symcomp.cvm",),
    ("symcomp.sparse", "symcomp.scan", "symcomp.gpu"),
    ("symcomp.drawing", "symcomp.profiling"),
    ("symcomp.compile",),
    (
        "symcomp",
        "symcomp.__main__",
        "symcomp.commands",
        "symcomp.compat",
        "symcomp.gradient",
        "symcomp.ifelse",
        "symcomp.deferred_names",
        "symcomp.nuts",
        "symcomp.printing",
        "symcomp.sandbox",
        "symcomp.scan_module",
        "symcomp.sparse_checks",
        "symcomp.sparse_solvers",
        "symcomp.sparse_updates",
        "symcomp.tensor",
        "symcomp.typed_list",
    ),
    ("symcomp.pytensor_backend",),
    ("symcomp.pymc",),
)
FEATURES = {"symcomp.sparse", "symcomp.scan", "symcomp.gpu"}

#: `from a.b import (`, `import a.b`, `from a.b cimport c`: what Cython files are read with.
CYTHON_IMPORT = re.compile(r"^([ \t]*)(?:from\s+([\w.]+)\s+c?import\b|c?import\s+([\w.]+))", re.M)


@dataclass(frozen=True)
class Import:
    """One imported module: its name as written, the names taken from it, and where it stands."""

    module: str
    names: tuple[str, ...]
    line: int
    nested: bool
    relative: bool = False


def violations(folders: dict[str, Path]) -> list[str]:
    """Say every breach of the law in the packages of these folders."""
    included = {f"{name}.pxi": path for name, path in path_of_module(folders, "*.pxi").items()}
    path_of = path_of_module(folders) | path_of_module(folders, "*.pyx") | included
    mapped = {folder.name for package, folder in folders.items() if package != "symcomp"}
    found, edges = [], {}
    for module, path in path_of.items():
        edges[module] = set()
        for entry in imports_of(path):
            breach = breach_of_form(module, entry, mapped)
            for target in targets_of(entry, path_of):
                breach = breach or breach_of_order(module, target)
                edges[module] |= {target} - {module}
            if breach:
                found.append(f"{module}, line {entry.line}: {breach}")
        if layer_of(module) is None:
            found.append(f"{module}: is in no layer; add it to LAYERS")
    found += [f"import cycle: {' > '.join(cycle)}" for cycle in cycles(edges)]
    return found


def imports_of(path: Path) -> Iterator[Import]:
    """Yield the imports of a Python or Cython file, wherever they stand in it."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from cython_imports(source)
        return
    tree = ast.parse(source, filename=str(path))
    nested = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), node.lineno, id(node) in nested)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            yield Import(node.module or "", names, node.lineno, id(node) in nested, node.level > 0)
        elif isinstance(node, ast.Call) and (module := module_by_call(node)):
            yield Import(module, (), node.lineno, id(node) in nested)


def module_by_call(call: ast.Call) -> str | None:
    """Return "m" for `import_module("m")` and its like, which import as well."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    name = call.func.id if isinstance(call.func, ast.Name) else name
    if name in {"import_module", "lazy_module", "__import__"} and call.args:
        first = call.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return first.value
        if isinstance(first, ast.JoinedStr) and first.values:
            start = first.values[0]
            return str(start.value).rstrip(".") if isinstance(start, ast.Constant) else None
    return None


def cython_imports(source: str) -> Iterator[Import]:
    """Yield the imports of a Cython file, read line by line."""
    for match in CYTHON_IMPORT.finditer(source):
        indent, from_module, module = match.groups()
        name = from_module or module
        line = source.count("\n", 0, match.start()) + 1
        yield Import(name, (), line, bool(indent), name.startswith("."))


def targets_of(entry: Import, path_of: dict[str, Path]) -> list[str]:
    """Name the modules of symcomp that an import loads: `from a import b` may load a.b."""
    if entry.relative or entry.module.split(".")[0] != "symcomp":
        return []
    submodules = [f"{entry.module}.{name}" for name in entry.names]
    loaded = [name if name in path_of else entry.module for name in submodules]
    return list(dict.fromkeys(loaded)) or [entry.module]


def breach_of_form(module: str, entry: Import, mapped: set[str]) -> str | None:
    """Describe an import that is not written in the required form; None if it is."""
    if entry.relative:
        return f"relative import of {entry.module or 'its package'!r}: write the full name"
    if entry.module == "symcomp" and not (module == "symcomp" and entry.names):
        return "imports 'symcomp' itself: import from the module that defines the name"
    if entry.module.split(".")[0] in mapped:
        return f"imports {entry.module!r}: its name is 'symcomp.{entry.module}'"
    if entry.nested:
        return f"imports {entry.module!r} inside a function or class: move it to the top"
    return None


def breach_of_order(module: str, target: str) -> str | None:
    """Say why `module` may not import `target`, if so."""
    own, other = layer_of(module), layer_of(target)
    if own is None or other is None:
        return None
    if other > own:
        return f"imports {target!r}, which is in a higher layer"
    own_feature, other_feature = package_of(module), package_of(target)
    if own_feature != other_feature and {own_feature, other_feature} <= FEATURES:
        return f"imports {target!r}: features do not know one another"
    return None


def layer_of(module: str) -> int | None:
    """Return the number of a module's layer, or None for a module that has none."""
    for number, packages in enumerate(LAYERS):
        if package_of(module) in packages:
            return number
    return None


def package_of(module: str) -> str:
    """Return the first two parts of a module's name: "symcomp.ops" for "symcomp.ops.convert"."""
    return ".".join(module.split(".")[:2])


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Find import cycles: for each group of modules that reach one another, one way around."""
    found, settled = [], set()
    for start in sorted(edges):
        if start in settled:
            continue
        path = shortest_way_back(start, edges)
        if path:
            found.append(path)
            settled.update(path)
    return found


def shortest_way_back(start: str, edges: dict[str, set[str]]) -> list[str] | None:
    """Return the shortest path from a module over its imports to itself."""
    came_from: dict[str, str] = {}
    frontier = [start]
    while frontier:
        reached = []
        for module in frontier:
            for target in sorted(edges.get(module, ())):
                if target == start:
                    path = [start, module]
                    while path[-1] != start:
                        path.append(came_from[path[-1]])
                    return path[::-1]
                if target not in came_from:
                    came_from[target] = module
                    reached.append(target)
        frontier = reached
    return None
