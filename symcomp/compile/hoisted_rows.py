"""Rows of sequences that the steps of a loop on the host read on a device: the sequence is copied
there as a whole, or lies there, and each step takes its row of it.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Variable
from symcomp.core.record import record, replace
from symcomp.core.tensor import TensorType
from symcomp.gpu.transfers import DevicePart, ToDevice, ToHost, on_device
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.indexing.index_pattern import SYMBOL
from symcomp.scan.layout import Arguments, BodyInputs, Layout, Results
from symcomp.scan.rows import FirstRows


@record(frozen=False)
class RowsThere:
    """Rows that a step reads on a device.

    Attributes
    ----------
    number : TensorVariable
        The number of the step.
    arrays : dict of Variable to Variable
        The value of each new captured input of the body: rows of a sequence, on a device.
    parts : dict of Variable to Variable
        In the place of each copy of a row: a part of such an array.
    copied : set of Variable
        The rows that were copied.
    """

    number: Any = field(default_factory=lambda: TensorType("int64", ()).make_variable("step"))
    arrays: dict[Variable, Variable] = field(default_factory=dict)
    parts: dict[Variable, Variable] = field(default_factory=dict)
    copied: set[Variable] = field(default_factory=set)

    def carried(
        self, layout: Layout, step: BodyInputs, given: Arguments, new: Results
    ) -> tuple[Layout, BodyInputs, Arguments, Results]:
        """Return a loop that carries the number of the step, too."""
        zero, following = np.zeros((), "int64"), self.number + np.int64(1)
        return (
            replace(layout, n_carried=layout.n_carried + 1),
            step._replace(carried=[*step.carried, self.number]),
            given._replace(carried=[*given.carried, as_tensor_variable(zero)]),
            new._replace(carried=[*new.carried, following]),
        )


def rows_there(graph: FunctionGraph, op: Any, given: Arguments, body: FunctionGraph) -> RowsThere:
    """Return the rows that steps copy to a device, as parts of arrays there.

    A loop that may end early reads sequences of the host row by row: it may need only a few rows.

    Parameters
    ----------
    graph : FunctionGraph
        Around the loop.
    op : Scan
    given : Arguments
        Of the loop.
    body : FunctionGraph
        The rewritten step.
    """
    found = RowsThere()
    for row, x in zip(op.layout.step(body.inputs).rows, given.sequences, strict=True):
        for client, _ in list(body.clients[row]):
            if client == "output" or not isinstance(client.op, ToDevice):
                continue
            device = client.op.device
            if op.layout.until and not _lies_on(x, device):
                continue
            array = FirstRows(str(row))(on_device(graph, x, device), given.n)
            inner = array.type.make_variable()
            found.arrays[inner] = array
            part = DevicePart((SYMBOL,))(inner, found.number)
            array.source, part.source = x.source, row.source
            found.parts[client.outputs[0]] = part
            found.copied.add(row)
    return found


def _lies_on(x: Variable, device: str) -> bool:
    """Return whether a tensor is a copy of an array on a device."""
    if x.owner is None or not isinstance(x.owner.op, ToHost):
        return False
    there: Any = x.owner.inputs[0].type
    return bool(there.device == device)
