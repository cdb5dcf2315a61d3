"""``T.slinalg``: linear algebra in SciPy's manner."""

from symcomp.ops.cholesky import *  # noqa: F403
from symcomp.ops.eigen import *  # noqa: F403
from symcomp.ops.linalg import kron as kron
from symcomp.ops.lu import *  # noqa: F403
from symcomp.ops.matrix_functions import Expm as Expm
from symcomp.ops.matrix_functions import expm as expm
from symcomp.ops.schur import *  # noqa: F403
from symcomp.ops.solve import *  # noqa: F403
from symcomp.ops.sylvester import *  # noqa: F403
from symcomp.ops.tridiagonal import *  # noqa: F403
