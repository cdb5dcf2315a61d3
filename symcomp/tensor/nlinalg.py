"""``T.nlinalg``: linear algebra in NumPy's manner."""

from symcomp.ops.determinant import *  # noqa: F403
from symcomp.ops.inverse import *  # noqa: F403
