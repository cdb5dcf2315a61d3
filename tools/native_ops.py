"""Which ops of the examples in tests/cvm run natively, and which through Python.

Run as ``python tools/native_ops.py``.
"""

from collections import Counter

import symcomp
from symcomp.core.tensor import TensorType
from symcomp.cvm.machine import PythonCall
from symcomp.cvm.prepare import actions_of
from symcomp.tests.cvm.examples import EXAMPLES


def program_of(build, values):
    """The program of an example."""
    inputs = [
        TensorType(v.dtype, [1 if n == 1 else None for n in v.shape])(f"x{i}")
        for i, v in enumerate(values)
    ]
    return symcomp.function(inputs, build(*inputs), mode=symcomp.Mode("cvm")).program


def main() -> None:
    """Print a line for each op, and one for each example in which Python is called."""
    native: Counter[str] = Counter()
    python: Counter[str] = Counter()
    for name, (build, values) in EXAMPLES.items():
        code = program_of(build, values).instructions
        slow = []
        for step, action in zip(code, actions_of(code), strict=True):
            label = "copy" if step.node is None else type(step.node.op).__name__
            if type(action) is PythonCall:
                slow.append(str(step.node.op if step.node else "copy"))
                python[label] += 1
            elif action is not None:
                native[label] += 1
        if slow:
            print(f"{name}: {'; '.join(slow)}")
    for label in sorted({*native, *python}):
        print(f"{label:20} {native[label]:4} native {python[label]:4} Python")


main()
