"""Compile the kernels that the tests used for all architectures, and report their registers.

Run as ``python tools/gpu_kernels.py build/gpu_kernels build/gpu_registers.txt``, where the tests
were told by ``SYMCOMP_KEEP_KERNELS`` to keep their kernels, as ``make gpu-emu`` does. It fails if a
kernel has a warning, spills registers or has a stack. Kernels that call functions which compilers
do not inline may have a stack: functions of doubles, divisions of 64-bit integers, and sines of
large angles. Where a block has 1024 threads, with 64 registers each, a few bytes may be spilled.
Compilers that are not there are left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from symcomp.codegen.compiler.driver import CompilerError, processors
from symcomp.codegen.cuda.text import file_of
from symcomp.gpu.driver.compiler import FLAGS, SILENT, find_nvcc, find_nvrtc

# The architectures, by the first one whose intermediate code (PTX) is theirs: nvcc makes it once,
# which takes half of its time. tests/gpu/test_compilers.py compares the code.
GENERATIONS = {"80": ("sm_80", "sm_90"), "100": ("sm_100", "sm_120"), "75": ("sm_75",)}
ARCHS = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
# Kernels that are compiled together: the head of a file takes longer than a kernel.
TOGETHER = 120
# Kernels with these words call functions that are not inlined, and may have a stack.
CALLS = re.compile(r"double|WIDER|m_(?:sin|cos|tan)f")
# So do functions with 64-bit integers that divide by a variable.
WIDE, DIVIDES = re.compile(r"int64_t"), re.compile(r" % (?!\d)")
# The bytes, of stores and loads together, that threads of such blocks may spill.
LARGE_BLOCK, OF_LARGE_BLOCK = "__launch_bounds__(1024)", 32
STRICT = ("-Werror", "all-warnings", "-Xptxas", "-v")
ENTRY = re.compile(
    r"Compiling entry function '(\w+)' for '(\w+)'.*?(\d+) bytes stack frame, "
    r"(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers"
    r"(?:.*?(\d+) bytes smem)?",
    re.S,
)


class Found:
    """The registers and memory of a kernel on an architecture, as ptxas tells them."""

    def __init__(self, stack: str, stores: str, loads: str, registers: str, shared: str) -> None:
        self.stack, self.spills = int(stack), int(stores) + int(loads)
        self.registers, self.shared = int(registers), int(shared or 0)


def compile_group(task: tuple[str, Sequence[tuple[str, str]]]) -> dict[tuple[str, str], Found]:
    """Compile kernels for a generation by nvcc; return the figures of each, by architecture."""
    generation, kernels = task
    archs = GENERATIONS[generation]
    said = nvcc_says(file_of([text for _, text in kernels]), generation, archs)
    found = {}
    for part in re.split(r"(?=ptxas info\s+: Compiling entry)", said):
        matched = ENTRY.search(part)
        if matched:
            found[matched[1], matched[2]] = Found(*(matched[i] for i in range(3, 8)))
    missing = [name for name, _ in kernels if any((name, arch) not in found for arch in archs)]
    assert not missing, f"nvcc said nothing of {missing}"
    return found


def nvcc_says(source: str, generation: str, archs: Sequence[str]) -> str:
    """Compile a source for some architectures; return what nvcc prints."""
    nvcc = find_nvcc()
    assert nvcc is not None
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernels.cu").write_text(source, encoding="utf-8")
        wanted = f"arch=compute_{generation},code=[{','.join(archs)}]"
        command = [nvcc.path, *FLAGS, SILENT, *STRICT, "-fatbin", "-gencode", wanted]
        done = subprocess.run(
            [*command, "kernels.cu"], cwd=folder, capture_output=True, text=True, check=False
        )
    said = done.stdout + done.stderr
    if done.returncode:
        sys.exit(f"{nvcc.version} refused kernels for {', '.join(archs)}:\n{said}")
    return said


def may_have_stack(text: str) -> bool:
    """Tell whether a kernel, or a part of a merged one, calls functions that are not inlined."""
    parts = text.split("INLINE void ")
    divides = any(WIDE.search(part) and DIVIDES.search(part) for part in parts)
    return divides or CALLS.search(text) is not None


def problems(found: dict[tuple[str, str], Found], texts: dict[str, str]) -> list[str]:
    """Describe each kernel that spills or has a stack."""
    wrong = []
    for (name, arch), one in sorted(found.items()):
        if one.spills > (OF_LARGE_BLOCK if LARGE_BLOCK in texts[name] else 0):
            wrong.append(f"{name} for {arch} spills {one.spills} bytes")
        elif one.stack and not one.spills and not may_have_stack(texts[name]):
            wrong.append(f"{name} for {arch} has a stack of {one.stack} bytes")
    return wrong


def report(found: dict[tuple[str, str], Found], version: str) -> str:
    """Return a line for each kernel: registers for each architecture; bytes of shared
    memory, stack and spills."""
    rows: dict[str, list[Found]] = defaultdict(list)
    for (name, _), one in sorted(found.items(), key=lambda pair: ARCHS.index(pair[0][1])):
        rows[name].append(one)
    head = "  ".join(f"{arch:>6}" for arch in ARCHS)
    lines = [f"{len(rows)} kernels by {version}: registers of a thread", ""]
    lines.append(f"{'kernel':24}  {head}  shared   stack  spills")
    for name, row in sorted(rows.items(), key=lambda pair: -max(f.registers for f in pair[1])):
        counts = "  ".join(f"{one.registers:6}" for one in row)
        stack, spills = max(one.stack for one in row), max(one.spills for one in row)
        lines.append(f"{name:24}  {counts}  {row[0].shared:6}  {stack:6}  {spills:6}")
    return "\n".join([*lines, ""])


def by_nvrtc(kernels: Sequence[tuple[str, str]]) -> list[str]:
    """Compile all kernels by NVRTC for all architectures; return what it refuses."""
    nvrtc = find_nvrtc()
    if nvrtc is None:
        print("there is no NVRTC: pip install nvidia-cuda-nvrtc")
        return []
    wrong = []
    for arch in ARCHS:
        for first in range(0, len(kernels), TOGETHER):
            texts = [text for _, text in kernels[first : first + TOGETHER]]
            try:
                nvrtc.compile(file_of(texts), arch)
            except CompilerError as error:
                wrong.append(str(error))
    print(f"{nvrtc.version}: {len(kernels)} kernels for {', '.join(ARCHS)}")
    return wrong


def main() -> None:
    """Compile, write the report, and fail if something is wrong."""
    folder, target = map(Path, sys.argv[1:3])
    texts = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.cu")}
    if not texts:
        sys.exit(f"there are no kernels in {folder}")
    # Kernels that need the same long functions are compiled together.
    kernels = sorted(texts.items(), key=lambda pair: (len(file_of([pair[1]])), pair[0]))
    wrong = []
    nvcc = find_nvcc()
    if nvcc is None:
        print("there is no nvcc: registers are not reported")
    else:
        groups = [kernels[i : i + TOGETHER] for i in range(0, len(kernels), TOGETHER)]
        tasks = [(generation, group) for group in groups for generation in GENERATIONS]
        found: dict[tuple[str, str], Found] = {}
        with ThreadPoolExecutor(processors()) as pool:
            for some in pool.map(compile_group, tasks):
                found.update(some)
        target.write_text(report(found, nvcc.version), encoding="utf-8")
        wrong += problems(found, texts)
        print(f"{nvcc.version}: {len(kernels)} kernels for {', '.join(ARCHS)}; see {target}")
    wrong += by_nvrtc(kernels)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
