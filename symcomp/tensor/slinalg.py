"""``T.slinalg``: linear algebra in SciPy's manner."""

from symcomp.lazy import no_such_name
from symcomp.ops.linalg.cholesky import *  # noqa: F403
from symcomp.ops.linalg.decompositions import (  # noqa: F401
    cholesky,
    eig,
    eigh,
    eigvalsh,
    lu,
    lu_factor,
    qz,
    schur,
)
from symcomp.ops.linalg.eigen import *  # noqa: F403
from symcomp.ops.linalg.functions import kron_by_rows as kron  # noqa: F401
from symcomp.ops.linalg.lu import *  # noqa: F403
from symcomp.ops.linalg.matrix_functions import Expm as Expm
from symcomp.ops.linalg.matrix_operations import block_diag, expm  # noqa: F401
from symcomp.ops.linalg.schur import *  # noqa: F403
from symcomp.ops.linalg.solve import *  # noqa: F403
from symcomp.ops.linalg.sylvester import *  # noqa: F403
from symcomp.ops.linalg.systems import (  # noqa: F401
    cho_solve,
    lu_solve,
    solve,
    solve_lower_triangular,
    solve_sylvester,
    solve_symmetric,
    solve_triangular,
    solve_triangular_sylvester,
    solve_tridiagonal,
    solve_upper_triangular,
)
from symcomp.ops.linalg.tridiagonal import *  # noqa: F403

__getattr__ = no_such_name(__name__)
