"""``T.slinalg``: linear algebra in SciPy's manner."""

from symcomp.lazy import no_such_name
from symcomp.ops.cholesky import *  # noqa: F403
from symcomp.ops.eigen import *  # noqa: F403
from symcomp.ops.linalg import kron_by_rows as kron  # noqa: F401
from symcomp.ops.lu import *  # noqa: F403
from symcomp.ops.matrix_functions import Expm as Expm
from symcomp.ops.matrix_functions import expm as expm
from symcomp.ops.schur import *  # noqa: F403
from symcomp.ops.solve import *  # noqa: F403
from symcomp.ops.sylvester import *  # noqa: F403
from symcomp.ops.tridiagonal import *  # noqa: F403

__getattr__ = no_such_name(__name__)
