"""The No-U-Turn sampler as one symcomp program, for any log density with a gradient.

Transitions, their adaptation and the compiled sampler belong here; code that imports PyMC belongs
in ``symcomp.pymc``.
"""

from symcomp.nuts.program import Chain, Sampler, compile_sampler

__all__ = ["Chain", "compile_sampler", "Sampler"]
