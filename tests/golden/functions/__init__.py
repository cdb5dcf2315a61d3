"""The golden functions, a module for each subject. Importing this package registers all of them."""

from symcomp.tests.golden.functions import (
    algebra,
    arrays,
    calls,
    elements,
    indexing,
    kernels,
    loop_derivatives,
    loops,
    losses,
    recurrent,
    reductions,
    training,
)

__all__ = [
    "algebra", "arrays", "calls", "elements", "indexing", "kernels", "loop_derivatives", "loops",
    "losses", "recurrent", "reductions", "training",
]  # fmt: skip
