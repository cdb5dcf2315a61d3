"""The documentation is complete and true: names, files, words and errors that it tells of exist."""

import importlib
import importlib.util
import inspect
import re
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import symcomp
from symcomp.core.node import Type
from symcomp.core.op import Op
from symcomp.tests.repository import ROOT, folder_of_package, path_of_module

DOCS = ROOT / "docs"
PUBLIC = (
    "symcomp", "symcomp.tensor", "symcomp.tensor.nnet", "symcomp.tensor.signal.pool",
    "symcomp.tensor.nlinalg", "symcomp.tensor.slinalg", "symcomp.tensor.linalg",
    "symcomp.tensor.fft", "symcomp.tensor.random", "symcomp.tensor.shared_randomstreams",
    "symcomp.gradient", "symcomp.ifelse", "symcomp.printing", "symcomp.scan_module",
    "symcomp.sparse", "symcomp.typed_list", "symcomp.compile", "symcomp.errors",
)  # fmt: skip
# Words of the code that had several meanings; a class of this name is defined in one file.
HOMONYMS = (
    "Centered", "Centred", "Kind", "Pattern", "Product", "Region", "Replay", "Steps", "View",
)  # fmt: skip
# Pages that name files of the repository.
PAGES_WITH_FILES = (
    "architecture.md", "glossary.md", "howto_kernel.md", "howto_op.md",
    "howto_rewrite.md", "kernels.md", "memory.md", "runtime.md", "walkthrough.md",
)  # fmt: skip


def tables() -> list[tuple[str, str]]:
    """List module and name of every entry in the tables of the reference."""
    block = re.compile(r"^```\{functions\} (\S+)\n(.*?)^```$", re.M | re.S)
    pages = (page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").glob("*.md")))
    return [
        (module, name)
        for text in pages
        for module, names in block.findall(text)
        for name in names.split()
    ]


def public_members(module: str) -> Iterator[tuple[str, object]]:
    """Yield the names of a public module that are documented each for itself."""
    holder = importlib.import_module(module)
    for name in getattr(holder, "__all__", [n for n in dir(holder) if not n.startswith("_")]):
        member = getattr(holder, name)
        made = getattr(member, "__module__", "")
        if isinstance(member, types.ModuleType | Type) or not callable(member):
            continue
        if inspect.isclass(member) and issubclass(member, Op):
            continue
        # Constructors of several variables, and of each dtype, are one table of letters.
        if made in ("symcomp.ops.variables", "symcomp.lazy"):
            continue
        yield name, member


def test_every_public_function_is_in_one_table() -> None:
    listed = tables()
    assert [entry for entry, n in Counter(listed).items() if n > 1] == []
    members = [getattr(importlib.import_module(module), name) for module, name in listed]
    assert [member for member, n in Counter(map(id, members)).items() if n > 1] == []
    known = {id(member) for member in members}
    missing = [
        f"{module}.{name}"
        for module in PUBLIC
        for name, member in public_members(module)
        if id(member) not in known
    ]
    assert missing == []


def test_every_function_has_an_example() -> None:
    members = [(name, getattr(importlib.import_module(module), name)) for module, name in tables()]
    functions = [(name, member) for name, member in members if inspect.isroutine(member)]
    assert len(functions) > 450
    assert [name for name, f in functions if ">>>" not in (inspect.getdoc(f) or "")] == []


def errors_of_users() -> list[str]:
    """List the classes of errors and warnings that the library defines for its users."""
    compat, own = ROOT / "symcomp" / "compat", set()
    for path in path_of_module(folder_of_package()).values():
        if not path.is_relative_to(compat):
            text = path.read_text(encoding="utf-8")
            own |= set(re.findall(r"^class (\w+(?:Error|Warning))\b", text, re.M))
    return sorted(own)


# Classes that no user sees: for mistakes of symcomp itself, raised in its tests alone, and for
# calls that have no straight code.
INTERNAL_ERRORS = {"AccessError", "LoopError", "NotStraightError"}


@pytest.mark.parametrize("name", errors_of_users())
def test_errors_have_an_answer(name: str) -> None:
    if name in INTERNAL_ERRORS:
        return
    page = (DOCS / "errors.md").read_text(encoding="utf-8")
    assert re.search(rf"^\({name}\)=|^###.*\b{name}\b|`{name}`", page, re.M), name
    if name in symcomp.errors.__all__:
        assert f"({name})=\n" in page


def entries_of_glossary() -> list[tuple[str, str, str]]:
    """List word, meaning and file of every row of the glossary."""
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    rows = [re.split(r"\s*\|\s*", line)[1:-1] for line in text.splitlines() if "| `" in line]
    assert all(len(row) == 4 for row in rows)
    return [(word, meaning, file.strip("`")) for word, meaning, _, file in rows]


def test_glossary() -> None:
    entries = entries_of_glossary()
    assert len(entries) > 50
    assert [word for word, n in Counter(word for word, _, _ in entries).items() if n > 1] == []
    for word, meaning, file in entries:
        assert (ROOT / file).is_file(), f"{word}: there is no file {file}"
        assert re.fullmatch(r"[A-Z][^.]*(\.[a-z][^.]*)*\.", meaning), f"{word}: one sentence"


def classes_of_code() -> dict[str, list[str]]:
    """List the files in which each class of Python, Cython or C is defined."""
    python = re.compile(r"^(?:cdef |cpdef )?class (\w+)", re.M)
    c = re.compile(r"^\} (\w+);|^(?:struct|enum) (\w+) \{", re.M)
    found: dict[str, list[str]] = {}
    for folder in folder_of_package().values():
        if folder == ROOT / "tests":
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".pyx", ".pxi", ".h"):
                text = path.read_text(encoding="utf-8")
                pattern = c if path.suffix == ".h" else python
                for match in pattern.finditer(text):
                    name = next(group for group in match.groups() if group)
                    found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    return found


def test_homonyms_have_one_meaning() -> None:
    """Also of two classes with one name, one is private to its file, or has a name of Theano's."""
    classes = classes_of_code()
    assert {"FunctionGraph", "NativeMachine", "StorageKind"} <= classes.keys()
    ours = {
        name: [path for path in paths if "/compat/" not in path and path.endswith(".py")]
        for name, paths in classes.items()
    }
    public = [name for name in ours if not name.startswith("_")]
    several = {name: ours[name] for name in public if len(ours[name]) > 1}
    several |= {word: classes[word] for word in HOMONYMS if len(classes.get(word, ())) > 1}
    assert several == {}


@pytest.mark.parametrize("name", PAGES_WITH_FILES)
def test_files_that_pages_name_exist(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    folders = "symcomp|rewrite|vm|cvm|scan|sparse|gpu|tests|benchmarks|examples|tools"
    paths = re.findall(rf"`((?:{folders})/[\w./*]*)`", text)
    assert paths
    assert [path for path in paths if not any(ROOT.glob(path.rstrip("/")))] == []


def test_every_source_says_what_it_is() -> None:
    """The page of files shows the first sentence of each; packages without text are empty."""
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("file_tables", DOCS / "file_tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    page = (DOCS / "files.md").read_text(encoding="utf-8")
    lines = "\n".join(re.findall(r"^```\{files\}\n(.*?)^```$", page, re.M | re.S)).split()
    shown = {path for line in lines for path in tables.files_of(line)}
    for folder in folder_of_package().values():
        for path in folder.rglob("*"):
            if path.suffix not in (".py", ".pyx", ".pxi", ".h") or "tests" in path.parts:
                continue
            sentence = tables.first_sentence(tables.opening(path))
            assert path in shown, f"docs/files.md shows no {path.relative_to(ROOT)}"
            assert sentence or not path.read_text(encoding="utf-8").strip(), path


def test_sections_of_the_site_list_every_page() -> None:
    """Each page stands in the table of contents of one section, or is one."""

    def page_of(path: Path) -> str:
        return path.relative_to(DOCS).with_suffix("").as_posix()

    sections = ("learn", "guides", "reference", "internals", "gallery")
    listed = []
    for section in sections:
        text = (DOCS / f"{section}.md").read_text(encoding="utf-8")
        block = re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.M | re.S)[0]
        names = [line for line in block.split() if not line.startswith(":") and not line.isdigit()]
        for name in names:
            found = [page_of(path) for path in DOCS.glob(f"{name}.md")]
            assert found, f"{section}: there is no page {name}"
            listed += found
    pages = {page_of(path) for path in DOCS.rglob("*.md")}
    pages = {page for page in pages if not page.startswith(("_build", "generated"))}
    tops = {"index", "learn", "guides", "reference", "internals"}
    assert Counter(listed) == Counter(pages - tops)


def test_gallery_shows_every_example() -> None:
    pages = [*(DOCS / "gallery").glob("*.md"), DOCS / "gallery.md"]
    shown = " ".join(page.read_text(encoding="utf-8") for page in pages)
    programs = [path.name for path in (ROOT / "examples").glob("*.py")]
    assert [name for name in programs if f"examples/{name}" not in shown] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in programs if Path(name).stem not in makefile] == []
