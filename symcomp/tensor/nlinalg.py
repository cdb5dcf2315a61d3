"""``T.nlinalg``: linear algebra in NumPy's manner."""

from symcomp.lazy import no_such_name
from symcomp.ops.indexing.diagonal import *  # noqa: F403
from symcomp.ops.indexing.diagonals import *  # noqa: F403
from symcomp.ops.linalg.decompositions import eig, eigh, eigvalsh, qr, svd  # noqa: F401
from symcomp.ops.linalg.determinant import *  # noqa: F403
from symcomp.ops.linalg.eigen import *  # noqa: F403
from symcomp.ops.linalg.inverse import *  # noqa: F403
from symcomp.ops.linalg.lstsq import *  # noqa: F403
from symcomp.ops.linalg.matrix_functions import *  # noqa: F403
from symcomp.ops.linalg.matrix_operations import (  # noqa: F401
    det,
    expm,
    matrix_dot,
    matrix_power,
    norm,
    slogdet,
)
from symcomp.ops.linalg.qr import *  # noqa: F403
from symcomp.ops.linalg.svd import *  # noqa: F403
from symcomp.ops.linalg.systems import (  # noqa: F401
    lstsq,
    matrix_inverse,
    pinv,
    tensorinv,
    tensorsolve,
)

__getattr__ = no_such_name(__name__)
