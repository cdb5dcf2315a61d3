"""``T.nnet.neighbours``: parts of images as rows of a matrix."""

from symcomp.ops.windows.neighbours import *  # noqa: F403
