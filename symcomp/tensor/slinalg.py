"""``T.slinalg``: linear algebra in SciPy's manner."""

from symcomp.ops.cholesky import *  # noqa: F403
from symcomp.ops.solve import *  # noqa: F403
