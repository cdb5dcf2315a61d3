"""Programs written for Theano, on symcomp.

``install_as_theano()`` makes ``import theano`` work in this process; ``python -m symcomp.compat
script.py`` does the same for an unmodified script.
"""

from symcomp.compat.modules import install_as_theano

__all__ = ["install_as_theano"]
