"""``T.slinalg``: linear algebra in SciPy's manner."""

from symcomp.lazy import no_such_name
from symcomp.ops.linalg.cholesky import *  # noqa: F403
from symcomp.ops.linalg.eigen import *  # noqa: F403
from symcomp.ops.linalg.functions import kron_by_rows as kron  # noqa: F401
from symcomp.ops.linalg.lu import *  # noqa: F403
from symcomp.ops.linalg.matrix_functions import Expm as Expm
from symcomp.ops.linalg.matrix_functions import expm as expm
from symcomp.ops.linalg.schur import *  # noqa: F403
from symcomp.ops.linalg.solve import *  # noqa: F403
from symcomp.ops.linalg.sylvester import *  # noqa: F403
from symcomp.ops.linalg.tridiagonal import *  # noqa: F403

__getattr__ = no_such_name(__name__)
