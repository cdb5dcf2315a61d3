"""PyMC on symcomp: importing it makes mode "SYMCOMP"; ``sample_nuts`` samples a model in it.

Needs ``pip install symcomp[pymc]``.
"""

import symcomp.pytensor_backend as pytensor_backend
from symcomp.pymc.sampling import sample_nuts

__all__ = ["pytensor_backend", "sample_nuts"]
