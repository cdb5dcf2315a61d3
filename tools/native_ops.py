"""List the ops of the examples in tests/cvm that run natively, and the others, which run in Python.

Run as ``python tools/native_ops.py``.
"""

from collections import Counter

import symcomp
from symcomp.core.tensor import TensorType
from symcomp.cvm.machine import NativeMachine
from symcomp.tests.cvm.examples import EXAMPLES


def machine_of(build, values):
    """Return the machine of an example."""
    inputs = [
        TensorType(v.dtype, [1 if n == 1 else None for n in v.shape])(f"x{i}")
        for i, v in enumerate(values)
    ]
    return symcomp.function(inputs, build(*inputs), mode=symcomp.Mode("cvm")).executable.machine


def main() -> None:
    """Print a line for each op, and one for each example in which Python is called."""
    native: Counter[str] = Counter()
    python: Counter[str] = Counter()
    for name, (build, values) in EXAMPLES.items():
        machine = machine_of(build, values)
        assert isinstance(machine, NativeMachine)
        slow = []
        for step, how in zip(machine.program.instructions, machine.lowered, strict=True):
            label = "copy" if step.node is None else type(step.node.op).__name__
            if how is not None and how.name == "python":
                slow.append(str(step.node.op if step.node else "copy"))
                python[label] += 1
            elif how is not None:
                native[label] += 1
        if slow:
            print(f"{name}: {'; '.join(slow)}")
    for label in sorted({*native, *python}):
        print(f"{label:20} {native[label]:4} native {python[label]:4} Python")


main()
