"""The code keeps the law of the layers, and the law catches what it forbids."""

from pathlib import Path

import pytest

from symcomp.tests.layers import violations
from symcomp.tests.repository import folder_of_package

FOLDERS = {
    "symcomp": "symcomp",
    "symcomp.rewrite": "rewrite",
    "symcomp.vm": "vm",
    "symcomp.cvm": "cvm",
    "symcomp.sparse": "sparse",
    "symcomp.scan": "scan",
    "symcomp.gpu": "gpu",
}


def test_the_code_keeps_the_law() -> None:
    assert violations(folder_of_package()) == []


def check(tmp_path: Path, files: dict[str, str]) -> list[str]:
    """Write the files and return what the law says of them."""
    folders = {package: tmp_path / folder for package, folder in FOLDERS.items()}
    for folder in folders.values():
        folder.mkdir()
    for name, source in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return violations(folders)


def test_what_is_allowed(tmp_path: Path) -> None:
    files = {
        "symcomp/__init__.py": "from symcomp import tensor\n",
        "symcomp/tensor/__init__.py": "from symcomp.ops.add import add\n",
        "symcomp/__main__.py": "from symcomp.compile.function import function\n",
        "symcomp/errors.py": "import numpy as np\n",
        "symcomp/core/__init__.py": "from symcomp.core.node import Node\n",
        "symcomp/core/node.py": "from symcomp.errors import E\n",
        "symcomp/ops/add.py": "from symcomp.core import node\nfrom symcomp.core.node import Node\n",
        "rewrite/engine.py": "import symcomp.ops.add\n",
        "rewrite/rules/__init__.py": "from symcomp.rewrite.engine import E\n",
        "cvm/machine.pyx": "from libc.stdlib cimport free\nfrom symcomp.vm import program\n",
        "scan/op.py": "import symcomp.vm.program\n\ndef f():\n    '''>>> import symcomp'''\n",
        "vm/program.py": "try:\n    import pycuda\nexcept ImportError:\n    pycuda = None\n",
        "symcomp/compile/function.py": "from symcomp.scan.op import S\nimport symcomp.cvm\n",
    }
    assert check(tmp_path, files) == []


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("symcomp/core/a.py", "import symcomp.ops.b", "'symcomp.ops.b', which is in a higher"),
        ("symcomp/errors.py", "from symcomp.core import node", "'symcomp.core', which is in a h"),
        ("vm/a.py", "from symcomp.cvm.machine import run", "which is in a higher layer"),
        ("rewrite/rules/a.py", "from symcomp.scan.op import Scan", "which is in a higher layer"),
        ("symcomp/compile/a.py", "import symcomp.tensor as T", "which is in a higher layer"),
        ("cvm/a.pyx", "from symcomp.compile.b cimport c", "which is in a higher layer"),
        ("cvm/a.pxi", "cimport symcomp.gpu.b", "which is in a higher layer"),
        ("scan/a.py", "from symcomp.gpu.op import G", "features do not know one another"),
        ("gpu/a.py", "import symcomp.sparse", "features do not know one another"),
        ("symcomp/ops/a.py", "from . import b", "relative import"),
        ("symcomp/ops/a.py", "from .b import c", "relative import of 'b'"),
        ("symcomp/ops/a.py", "import symcomp", "imports 'symcomp' itself"),
        ("symcomp/ops/a.py", "from symcomp import errors", "imports 'symcomp' itself"),
        ("symcomp/__init__.py", "import symcomp", "imports 'symcomp' itself"),
        ("vm/a.py", "import rewrite.engine", "its name is 'symcomp.rewrite.engine'"),
        ("symcomp/ops/a.py", "from vm import program", "its name is 'symcomp.vm'"),
        ("vm/a.py", "def f():\n    import symcomp.ops.b", "line 2: imports 'symcomp.ops.b' inside"),
        ("vm/a.py", "class A:\n    import numpy", "line 2: imports 'numpy' inside"),
        ("vm/a.py", "async def f():\n    if x:\n        from y import z", "line 3: imports 'y'"),
        ("cvm/a.pyx", "cdef f():\n    from symcomp.vm import b", "line 2: imports 'symcomp.vm' in"),
        ("symcomp/core/a.py", "x = import_module('symcomp.vm.b')", "which is in a higher layer"),
        ("symcomp/core/a.py", "x = importlib.import_module(f'symcomp.vm.{y}')", "a higher layer"),
        ("symcomp/core/a.py", "f = lambda: __import__('symcomp.errors')", "inside a function"),
        ("symcomp/extra.py", "", "symcomp.extra: is in no layer"),
        ("symcomp/tensor/a.py", "if x:\n    import symcomp", "imports 'symcomp' itself"),
    ],
)
def test_what_is_forbidden(tmp_path: Path, name: str, source: str, said: str) -> None:
    found = check(tmp_path, {name: source})
    assert len(found) == 1
    assert said in found[0]


def test_cycles_within_a_layer(tmp_path: Path) -> None:
    files = {
        "vm/a.py": "from symcomp.vm import b\n",
        "vm/b.py": "from symcomp.vm.c import d\n",
        "vm/c.py": "import symcomp.vm.a\n",
        "vm/user.py": "import symcomp.vm.a\n",
        "scan/__init__.py": "from symcomp.scan.op import Scan\n",
        "scan/op.py": "from symcomp.scan import Scan\n",
    }
    assert check(tmp_path, files) == [
        "import cycle: symcomp.scan > symcomp.scan.op > symcomp.scan",
        "import cycle: symcomp.vm.a > symcomp.vm.b > symcomp.vm.c > symcomp.vm.a",
    ]


def test_cycle_between_errors_and_config(tmp_path: Path) -> None:
    files = {
        "symcomp/errors.py": "from symcomp.config import config\n",
        "symcomp/config.py": "from symcomp.errors import SymcompError\n",
    }
    assert check(tmp_path, files) == [
        "import cycle: symcomp.config > symcomp.errors > symcomp.config"
    ]
