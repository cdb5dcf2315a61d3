"""Code generation: a small loop-nest language for kernels, its C printer, the compiler cache."""
