"""Every op, and its gradients, give without a C compiler what they give with one."""

from typing import Any

import numpy as np
import pytest

import symcomp
from symcomp.config import config
from symcomp.tests.compile.test_saving_ops import GROUPS, VALUES, slopes


def results(group: Any, cc: str) -> list[Any]:
    """Return the results of a function that computes all examples of a group.

    Optimizing would take most of the time.
    """
    inputs, outputs = list(VALUES), group()
    outputs += [slope for output in outputs for slope in slopes(inputs, output)]
    with config.change_flags(cc=cc, kernels=True, cflags="-O0"):
        f = symcomp.function(inputs, outputs, on_unused_input="ignore")
        return f(*VALUES.values())


@pytest.mark.filterwarnings("ignore:The C compiler:RuntimeWarning")
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_the_same_values(group: Any) -> None:
    for found, expected in zip(results(group, "no-such-cc"), results(group, ""), strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        if found.dtype.kind in "fc":
            scale = np.abs(expected).max(initial=1, where=np.isfinite(expected))
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * scale)
        else:
            np.testing.assert_array_equal(found, expected)
