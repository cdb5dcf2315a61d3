"""``T.nlinalg``: linear algebra in NumPy's manner."""

from symcomp.lazy import no_such_name
from symcomp.ops.determinant import *  # noqa: F403
from symcomp.ops.diagonal import *  # noqa: F403
from symcomp.ops.eigen import *  # noqa: F403
from symcomp.ops.inverse import *  # noqa: F403
from symcomp.ops.lstsq import *  # noqa: F403
from symcomp.ops.matrix_functions import *  # noqa: F403
from symcomp.ops.qr import *  # noqa: F403
from symcomp.ops.svd import *  # noqa: F403

__getattr__ = no_such_name(__name__)
