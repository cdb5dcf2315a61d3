"""``T.nlinalg``: linear algebra in NumPy's manner."""

from symcomp.lazy import no_such_name
from symcomp.ops.indexing.diagonal import *  # noqa: F403
from symcomp.ops.linalg.determinant import *  # noqa: F403
from symcomp.ops.linalg.eigen import *  # noqa: F403
from symcomp.ops.linalg.inverse import *  # noqa: F403
from symcomp.ops.linalg.lstsq import *  # noqa: F403
from symcomp.ops.linalg.matrix_functions import *  # noqa: F403
from symcomp.ops.linalg.qr import *  # noqa: F403
from symcomp.ops.linalg.svd import *  # noqa: F403

__getattr__ = no_such_name(__name__)
