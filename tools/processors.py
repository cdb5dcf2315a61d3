"""Run the tests as processors of other generations do: ``python tools/processors.py [PYTEST ...]``.

OpenBLAS, NumPy, the C library and the C compiler choose code for the processor, and that code
rounds differently. Each setting has all four choose that of one generation; one that the processor
cannot run is skipped, and said to be. The arguments go to pytest; without any, it runs the whole
suite.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
# As in tests/conftest.py, which leaves flags alone that are given.
WARNINGS = "-Wall -Wextra -Wno-type-limits -Wno-unused-parameter -Werror"
NUMPY = np._core._multiarray_umath  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Setting:
    """A generation of processors.

    Attributes
    ----------
    level : str
        What the C compiler calls it (https://gitlab.com/x86-psABIs/x86-64-ABI).
    openblas : str
        A processor of it, as OpenBLAS calls it.
    needs : tuple of str
        Features of /proc/cpuinfo without which its code does not run.
    lacks : tuple of str
        Beginnings of the names of NumPy's features that it does not have.
    tunables : tuple of str
        Features that it does not have, as the GNU C library calls them.
    """

    level: str
    openblas: str
    needs: tuple[str, ...]
    lacks: tuple[str, ...]
    tunables: tuple[str, ...]

    def missing(self, features: set[str]) -> list[str]:
        """Return the features that this processor does not have."""
        return [name for name in self.needs if name not in features]

    def environment(self) -> dict[str, str]:
        """Return the variables that make libraries and the compiler use its code."""
        cut = [
            name
            for name in NUMPY.__cpu_dispatch__
            if name.startswith(self.lacks) and NUMPY.__cpu_features__.get(name)
        ]
        given = os.environ.get("SYMCOMP_FLAGS", "")
        flags = f"cflags={WARNINGS} -march={self.level}"
        variables = {
            "OPENBLAS_CORETYPE": self.openblas,
            "SYMCOMP_FLAGS": f"{given},{flags}" if given else flags,
        }
        if cut:
            variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(cut)
        if self.tunables:
            names = ",".join(f"-{name}" for name in self.tunables)
            variables["GLIBC_TUNABLES"] = f"glibc.cpu.hwcaps={names}"
        return variables


OF_AVX512 = ("AVX512F", "AVX512VL", "AVX512BW", "AVX512DQ", "AVX512CD")
SETTINGS = (
    Setting(
        "x86-64-v2",
        "NEHALEM",
        ("sse4_2", "popcnt"),
        ("AVX", "FMA", "F16C", "X86_V3", "X86_V4"),
        ("AVX", "AVX2", "FMA", *OF_AVX512),
    ),
    Setting("x86-64-v3", "HASWELL", ("avx2", "fma"), ("AVX512", "X86_V4"), OF_AVX512),
    Setting("x86-64-v4", "SKYLAKEX", ("avx512f", "avx512vl", "avx512dq", "avx512bw"), (), ()),
)


def features() -> set[str]:
    """Return the features of this processor, as Linux calls them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return set()
    return set(next((line for line in lines if line.startswith("flags")), "").split())


def main(arguments: list[str]) -> int:
    """Run the tests under each setting, and return how many of them failed."""
    have, outcomes = features(), {}
    for setting in SETTINGS:
        missing = setting.missing(have)
        if missing:
            outcomes[setting.level] = f"skipped: this processor has no {', '.join(missing)}"
            continue
        variables = setting.environment()
        print(f"== {setting.level}:", *(f"{k}={v!r}" for k, v in variables.items()), flush=True)
        command = [sys.executable, "-m", "pytest", *arguments]
        failed = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}).returncode
        outcomes[setting.level] = f"failed: pytest ended with {failed}" if failed else "passed"
    for level, outcome in outcomes.items():
        print(f"{level} {outcome}")
    return sum(outcome.startswith("failed") for outcome in outcomes.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
