"""Which ops of the examples run natively, and which through Python.

Run as ``python tools/native_ops.py``; with ``-v`` for each example.
"""

import sys
from collections import Counter

from symcomp.core.tensor import TensorType
from symcomp.cvm.machine import PythonCall
from symcomp.cvm.prepare import actions_of
from symcomp.tests.cvm.examples import EXAMPLES

import symcomp


def program_of(build, values):
    """The program of an example."""
    inputs = [
        TensorType(v.dtype, [1 if n == 1 else None for n in v.shape])(f"x{i}")
        for i, v in enumerate(values)
    ]
    return symcomp.function(inputs, build(*inputs), mode=symcomp.Mode("cvm")).program


def main():
    native, python = Counter(), Counter()
    for name, (build, values) in EXAMPLES.items():
        try:
            code = program_of(build, values).instructions
        except Exception as e:
            print(name, repr(e)[:300]); continue
        slow = []
        for step, action in zip(code, actions_of(code), strict=True):
            if action is None:
                continue
            label = "copy" if step.node is None else type(step.node.op).__name__
            (python if type(action) is PythonCall else native)[label] += 1
            if type(action) is PythonCall:
                slow.append(str(step.node.op) if step.node else "copy")
        if "-v" in sys.argv and slow:
            print(f"{name}: {'; '.join(slow)}")
    for label in sorted({*native, *python}):
        print(f"{label:20} {native[label]:4} native {python[label]:4} Python")


main()
