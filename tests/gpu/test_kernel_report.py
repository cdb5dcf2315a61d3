"""`tools/gpu_kernels.py` refuses kernels that spill registers."""

import importlib.util
from typing import Any

import pytest

from symcomp.codegen.cuda.text import named
from symcomp.tests.repository import ROOT

HEAD = 'extern "C" __global__ void NAME(const int n)'


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location(
        "gpu_kernels", ROOT / "tools" / "gpu_kernels.py"
    )
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize(
    ("threads", "blocks", "bounds"),
    [
        (64, 1, ""), (256, 1, ""), (256, 3, "__launch_bounds__(256, BLOCKS(3)) "),
        (512, 1, "__launch_bounds__(512) "), (1024, 1, "__launch_bounds__(1024) "),
    ],
)  # fmt: skip
def test_bounds_are_told_where_they_are_needed(threads: int, blocks: int, bounds: str) -> None:
    name, text = named([HEAD, "{", "}"], threads, blocks)
    assert text.startswith(f'extern "C" __global__ void {bounds}{name}(const int n)')


@pytest.mark.parametrize(
    ("text", "stack", "spills", "wrong"),
    [
        ("float x = 1;", 0, 0, ""), ("float x = 1;", 0, 8, "spills 8 bytes"),
        ("float x = 1;", 8, 0, "has a stack of 8 bytes"), ("double x = 1;", 8, 0, ""),
        ("double x = 1;", 8, 8, "spills 8 bytes"), ("int64_t x = i % n;", 8, 0, ""),
        ("int x = step % 2; int64_t y = 1;", 8, 0, "has a stack of 8 bytes"),
        ("INLINE void a() { int x = i % n; }\nINLINE void b() { int64_t x = 1; }", 8, 0,
         "has a stack of 8 bytes"),
        ("__launch_bounds__(1024) double x = 1;", 8, 24, ""),
        ("__launch_bounds__(1024) double x = 1;", 40, 40, "spills 40 bytes"),
    ],
)  # fmt: skip
def test_spills_are_problems(tool: Any, text: str, stack: int, spills: int, wrong: str) -> None:
    found = {("kernel", "sm_90"): tool.Found(str(stack), str(spills), "0", "32", "0")}
    expected = [f"kernel for sm_90 {wrong}"] if wrong else []
    assert tool.problems(found, {"kernel": text}) == expected
