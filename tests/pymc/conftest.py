"""PyTensor's own code, which is compared with, runs in Python: its C takes minutes to compile."""

import os

os.environ.setdefault("PYTENSOR_FLAGS", "cxx=")
