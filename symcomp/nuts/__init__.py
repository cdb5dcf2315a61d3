"""The No-U-Turn sampler as one symcomp program, for any log density with a gradient.

Here belong transitions, their adaptation and the compiled sampler; what knows PyMC is in
``symcomp.pymc``.
"""

from symcomp.nuts.program import Chain, Sampler, compile_sampler

__all__ = ["Chain", "compile_sampler", "Sampler"]
