"""Saved and loaded: the same to the last bit, differentiable, and nothing that a file can do."""

import io
import json
import random
import zipfile

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compile.debugmode import DebugMode
from symcomp.compile.monitormode import MonitorMode, detect_nan
from symcomp.compile.nanguardmode import NanGuardError, NanGuardMode
from symcomp.compile.saving.archive import TEXT
from symcomp.compile.saving.moved import MOVED
from symcomp.core.closed import ClosedGraph
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.walk import graph_inputs
from symcomp.errors import LoadError, SaveError
from symcomp.ifelse import ifelse


@pytest.fixture
def path(tmp_path):
    return tmp_path / "saved.zip"


def round_trip(path, what):
    symcomp.save(path, what)
    return symcomp.load(path)


def network():
    """Build a recurrent network with a loop in a lazy branch, and its training function."""
    rng = np.random.default_rng(0)
    w, u = (symcomp.shared(rng.normal(size=(4, 4)) / 2, name=name) for name in "wu")
    x = T.dmatrix("x")
    states = symcomp.scan(
        lambda v, h: T.tanh(T.dot(v, w) + T.dot(h, u)), x, T.zeros(4), return_updates=False
    )
    loss = ifelse(T.gt(x.sum(), 0), T.sqr(states[-1] - x[-1]).sum(), T.log(1 + T.exp(x)).mean())
    updates = [(p, p - 0.1 * symcomp.grad(loss, p)) for p in (w, u)]
    train = symcomp.function([x], loss, updates=updates, name="train")
    predict = symcomp.function([x, symcomp.In(T.dscalar("s"), value=2.0)], [states, x.sum() * 1.0],
                               on_unused_input="ignore")  # fmt: skip
    return x, loss, train, predict, (w, u)


def test_expressions_are_the_same_graph(path):
    x, loss, *_, (w, u) = network()
    saved = round_trip(path, {"x": x, "loss": loss, "parameters": (w, u)})
    assert set(saved) == {"x", "loss", "parameters"} and isinstance(saved["parameters"], tuple)
    w2, u2 = saved["parameters"]
    assert (saved["x"].name, w2.name, u2.name) == ("x", "w", "u")
    one = ClosedGraph([x, w, u], [loss])
    assert ClosedGraph([saved["x"], w2, u2], [saved["loss"]]) == one
    np.testing.assert_array_equal(w2.get_value(), w.get_value())
    value = np.random.default_rng(1).normal(size=(5, 4))
    slopes = [
        symcomp.function([a], symcomp.grad(b, [a, c]))(value)
        for a, b, c in ((x, loss, w), (saved["x"], saved["loss"], w2))
    ]
    for got, want in zip(*slopes, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("linker", ["cvm", "vm"])
def test_functions_compute_the_same(path, linker):
    with symcomp.config.change_flags(linker=linker):
        _, _, train, predict, shared = network()
        train2, predict2 = round_trip(path, [train, predict])
        values = [np.random.default_rng(k).normal(size=(5, 4)) for k in range(4)]
        for value in values:
            np.testing.assert_array_equal(train2(value), train(value))
        for got, want in zip(predict2(values[0]), predict(values[0]), strict=True):
            np.testing.assert_array_equal(got, want)
        assert train2.name == "train"
        assert {v.name for v in train2.get_shared()} == {"w", "u"} == {v.name for v in shared}


def test_functions_keep_sharing(path):
    n = symcomp.shared(np.int64(0), name="n")
    more = symcomp.function([], updates=[(n, n + 1)])
    show = symcomp.function([], n)
    saved = round_trip(path, {"more": more, "show": show, "n": n})
    for _ in range(3):
        saved["more"]()
    assert saved["show"]() == 3 == saved["n"].get_value() and show() == 0


def test_default_updates_are_kept(path):
    n = symcomp.shared(np.float64(1), name="n")
    n.default_update = n * 2
    loaded = round_trip(path, n + 0.0)
    f = symcomp.function([], loaded)
    assert [float(f()) for _ in range(3)] == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64"])
def test_constants(path, dtype):
    values = [np.arange(6).reshape(2, 3).astype(dtype), np.zeros((0, 3), dtype)]
    values += [np.asfortranarray(values[0]), values[0][:, ::-1], np.array(1).astype(dtype)]
    for value, loaded in zip(
        values, round_trip(path, [T.constant(v) for v in values]), strict=True
    ):
        assert loaded.data.dtype == value.dtype
        np.testing.assert_array_equal(loaded.data, value)


def test_numbers_that_json_has_not(path):
    x = T.dvector("x")
    numbers = [np.nan, np.inf, -np.inf, 5e-324, -0.0, 1 / 3]
    loaded = round_trip(path, [x, *(x * n for n in numbers)])
    f = symcomp.function(loaded[:1], loaded[1:])
    with np.errstate(all="ignore"):
        for got, n in zip(f([1.0, -2.0]), numbers, strict=True):
            np.testing.assert_array_equal(got, np.array([1.0, -2.0]) * n)
    y = T.grad_clip(x, -0.1, float("inf")) if hasattr(T, "grad_clip") else x
    assert round_trip(path, y).type == y.type


def test_ops_made_of_graphs(path):
    x, y = T.dvectors("x", "y")
    inner = symcomp.OpFromGraph([x, y], [x * T.exp(y), x - y], name="pair")
    a, b = T.dvectors("a", "b")
    first, second = inner(a, b)
    loaded = round_trip(path, [a, b, first + second])
    assert ClosedGraph(loaded[:2], loaded[2:]) == ClosedGraph([a, b], [first + second])
    odd = symcomp.OpFromGraph([x], [T.exp(x)], lop_overrides=lambda i, o, g: [g[0]])
    with pytest.raises(SaveError, match="cannot be saved"):
        symcomp.save(path, odd(a))


@record
class Mine(Op):
    """A user's op."""

    def output_types(self, x):
        return [x.type]

    def perform(self, x):
        return x


def test_what_cannot_be_saved(path):
    x = T.dvector("x")
    symcomp.save(path, x)
    for what, message in (
        (Mine()(x), r"Mine.* is of the class .*which is not one of symcomp's"),
        (3, r"save: 3 \(int\) is neither a variable nor a function"),
        ({1: x}, "dict"),
        (symcomp.shared(object()), "cannot be saved"),
    ):
        with pytest.raises(SaveError, match=message):
            symcomp.save(path, what)
    assert symcomp.load(path).name == "x"  # the old file stays
    assert list(path.parent.iterdir()) == [path]


def rewrite(path, change, extra=()):
    """Write the archive again with its JSON changed, and with more members."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    text = json.loads(members[TEXT])
    changed = change(text)
    members[TEXT] = json.dumps(text if changed is None else changed).encode()
    members.update(extra)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_files_of_earlier_versions(path):
    x = T.dmatrix("x")
    expression = T.nnet.softmax(T.dot(x, x)).sum(axis=0)[1:]
    symcomp.save(path, [x, expression])
    earlier = {name: old for old, name in MOVED.items()}
    moved = set()

    def name_as_earlier(text):
        for node in text["graph"]["nodes"]:
            module, colon, name = node["op"].get("class", "").partition(":")
            if module in earlier:
                moved.add(name)
                node["op"]["class"] = earlier[module] + colon + name

    rewrite(path, name_as_earlier)
    assert moved == {"Dot", "Reduce", "Softmax", "Subtensor"}
    loaded = symcomp.load(path)
    assert ClosedGraph(loaded[:1], loaded[1:]) == ClosedGraph([x], [expression])


HOSTILE = [
    (lambda t: t.update(version=2), "of version 2 of the format; this symcomp reads version 1"),
    (lambda t: t.update(format="pickle"), "was not written by symcomp.save"),
    (lambda t: [], "stands where a dict is expected"),
    (lambda t: {**t, "graph": None}, "stands where a dict"),
    (
        lambda t: t["graph"]["nodes"][0]["op"].update({"class": "os:system"}),
        "nothing that symcomp has",
    ),
    (
        lambda t: t["graph"]["nodes"][0]["op"].update({"class": "symcomp.ops.shapes.join:np"}),
        "nothing that",
    ),
    (
        lambda t: t["graph"]["nodes"][0]["op"].update({"class": "symcomp.ops.none:X"}),
        "nothing that",
    ),
    (lambda t: t["graph"]["nodes"][0]["op"].update({"class": "symcomp.ops.a b:X"}), "nothing that"),
    (lambda t: t["graph"]["nodes"][0]["op"]["fields"].update(more=1), "unknown are .'more'."),
    (lambda t: t["graph"]["nodes"][0]["op"]["fields"].clear(), "missing .'scalar'"),
    (lambda t: t["graph"]["nodes"][0].update(inputs=[7]), "no value number 7"),
    (lambda t: t["graph"]["nodes"][0].update(inputs=[-1]), "no value number -1"),
    (lambda t: t["graph"]["nodes"][0].update(inputs=[]), "does not take"),
    (lambda t: t["graph"]["nodes"][0].update(types=[]), "is said to be"),
    (lambda t: t["graph"]["nodes"][0].update(op={"tuple": []}), "is no op"),
    (lambda t: t["graph"]["roots"][0].update(type={"float": "nan"}), "is no type"),
    (lambda t: t["graph"]["roots"][0].update(type={"eval": "1"}), "cannot be read"),
    (lambda t: t["graph"]["roots"][1].update(data={"array": 9}), "there is no array 9"),
    (lambda t: t["outputs"].update(variable=5), "no value number 5"),
    (lambda t: t.update(outputs={"nothing": 1}), "no kind of output"),
    (lambda t: t.update(functions={}), "stands where a list"),
    (lambda t: t.update(functions=[{}]), "stands where a dict"),
    (lambda t: t.__delitem__("functions"), "'functions' is missing"),
    (lambda t: t["graph"]["roots"][0].update(name=3), "3 stands where a text is expected"),
    (lambda t: t["graph"]["roots"][0]["type"]["fields"].update(dtype="float96"), "float96"),
    (lambda t: t["graph"]["roots"][0]["type"]["fields"].update(dtype="object"), "object"),
    (lambda t: t["graph"]["roots"][0]["type"]["fields"].update(shape=3), "TensorType.shape is 3"),
    (
        lambda t: t["graph"]["roots"][0]["type"]["fields"].update(shape={"tuple": [-1]}),
        "describes what cannot be|shape",
    ),
    (
        lambda t: t["graph"]["roots"][0]["type"]["fields"].update(shape={"tuple": [True]}),
        "tuple.int or None, .... is needed",
    ),
    (
        lambda t: t["graph"]["roots"][1]["type"]["fields"].update(dtype="float32"),
        "describes what cannot be: DTypeError",
    ),
    (
        lambda t: t["graph"]["roots"][1]["type"]["fields"].update(shape={"tuple": [4]}),
        "describes what cannot be: ShapeError",
    ),
    (
        lambda t: t["graph"]["nodes"][0]["op"]["fields"].update(scalar={"float": "0x1p+0"}),
        "Elemwise.scalar is 1.0: ScalarOp is needed",
    ),
    (
        lambda t: t["graph"]["nodes"][0]["op"]["fields"].update(
            scalar={"scalar": "cast", "parameters": ["double; evil()"]}
        ),
        "evil",
    ),
    (
        lambda t: t["graph"]["nodes"][0]["op"]["fields"].update(
            scalar={"scalar": "spherical_jn", "parameters": [{"int": "9" * 40}]}
        ),
        "no parameters of spherical_jn",
    ),
    (
        lambda t: t["graph"]["nodes"][0]["op"]["fields"].update(
            scalar={"scalar": "series_remainder", "parameters": ["gamma", 1, 1, 0]}
        ),
        "no parameters of series_remainder",
    ),
    (
        lambda t: t["graph"]["nodes"][0]["op"]["fields"].update(inplace={"int": "9" * 6000}),
        "stands where a text is expected",
    ),
    (
        lambda t: t["graph"]["nodes"][0]["op"].update(
            {"class": "symcomp.ops.linalg.matrices:MatrixOp"}
        ),
        "is no op by itself",
    ),
    (
        lambda t: t["graph"]["nodes"][0].update(
            op={"class": "symcomp.ops.shapes.join:Join", "fields": {"axis": -1}}
        ),
        "Join.axis is -1: an axis counted from the start",
    ),
    (lambda t: t["graph"]["nodes"][0].update(inputs=[0, 2]), "no value number 2"),
    (lambda t: t["graph"]["nodes"][0].update(inputs=[True, 1]), "no value number True"),
    (lambda t: t["graph"].update(inputs=[-5]), "no value number -5"),
    (lambda t: t["graph"]["roots"][0].update(name="\ud800"), "has half of a surrogate pair"),
    (lambda t: t["graph"]["nodes"][0].update(names=["\udfff"]), "has half of a surrogate pair"),
    (lambda t: t.update(outputs={"dict": {"\ud800": t["outputs"]}}), "half of a surrogate pair"),
    (
        lambda t: t["graph"]["nodes"][0]["op"].update(
            {"class": "symcomp.ops.windows.pooling:_Pooling"}
        ),
        "is no op by itself",
    ),
    (
        lambda t: t["graph"]["nodes"][0].update(
            op={"class": "symcomp.ops.linalg.determinant:Det", "fields": {}}, inputs=[0]
        ),
        "Det does not take",
    ),
]


@pytest.mark.parametrize(("change", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts(path, change, message):
    x = T.dvector("x")
    symcomp.save(path, x + np.ones(3))
    rewrite(path, change)
    with pytest.raises(LoadError, match=message):
        symcomp.load(path)


def array_file(header):
    data = io.BytesIO()
    text = (header + " " * (117 - len(header)) + "\n").encode()
    data.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 24)
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("../evil", b"", "does not belong"),
        ("/etc/passwd", b"", "does not belong"),
        ("arrays/00.npy", b"", "does not belong"),
        ("arrays/../graph.json", b"", "does not belong"),
        ("arrays\\0.npy", b"", "does not belong"),
        ("C:/arrays/0.npy", b"", "does not belong"),
        ("arrays/", b"", "does not belong"),
        ("arrays/0.npy", array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }"),
         "claims to be float64 of shape"),
        ("arrays/0.npy",
         array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }" % ("9" * 40)),
         "claims to be float64 of shape"),
        ("arrays/0.npy", array_file("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (3,), }"),
         "numbers are expected"),
        ("arrays/0.npy", array_file("{'descr': [('a', '<f8')], 'fortran_order': 0, 'shape': (3,)}"),
         "is no array|numbers are expected"),
        ("arrays/0.npy", array_file("__import__('os').system('true')"), "is no array"),
        ("arrays/5.npy", b"", "is missing"),
        ("arrays/0.npy", b"no array", "is no array"),
        ("arrays/0.npy", array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (10**12,)}"),
         "is no array"),
        ("arrays/0.npy",
         array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }"),
         "claims to be float64 of shape"),
        ("arrays/0.npy", array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}"),
         "claims to be float64 of shape"),
        ("arrays/0.npy",
         array_file("{'descr': '|u1', 'fortran_order': False, 'shape': (%s24,)}" % ("1," * 70)),
         "no archive that symcomp.save wrote: .*maximum"),
        ("arrays/0.npy",
         array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (0, %s)}" % (9 * 10**30)),
         "no archive that|claims to be"),
        ("arrays/0.npy", array_file("(" * 5000), "is no array"),
        ("arrays/0.npy", array_file("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }"),
         "holds object"),
    ],
)  # fmt: skip
def test_hostile_members(path, name, data, message):
    symcomp.save(path, T.dvector("x") + np.ones(3))
    rewrite(path, lambda text: None, {name: data})
    with pytest.raises(LoadError, match=message):
        symcomp.load(path)


def test_hostile_archives(path):
    path.write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(LoadError, match=r"no archive that symcomp\.save wrote"):
        symcomp.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(TEXT, b" " * 10**7)
    with pytest.raises(LoadError, match="is compressed"):
        symcomp.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("arrays/0.npy", b"")
    with pytest.raises(LoadError, match=f"there is no {TEXT}"):
        symcomp.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(TEXT, b"[" * 100_000)
    with pytest.raises(LoadError, match="is not JSON"):
        symcomp.load(path)
    with pytest.raises(FileNotFoundError):
        symcomp.load(path.parent / "none.zip")


def archive_of(path, *members):
    """Write an archive that symcomp would not write."""
    with zipfile.ZipFile(path, "w") as archive:
        for info, data in members:
            archive.writestr(info, data)
    return path


def test_archives_with_tricks(path):
    symcomp.save(path, T.dvector("x") + np.ones(3))
    with zipfile.ZipFile(path) as archive:
        text = archive.read(TEXT)
        arrays = [("arrays/0.npy", archive.read("arrays/0.npy"))]
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive_of(path, (TEXT, text), (TEXT, text))
    with pytest.raises(LoadError, match=r"'graph\.json' is there twice"):
        symcomp.load(path)
    link = zipfile.ZipInfo("arrays/0.npy")
    link.external_attr = 0o120777 << 16  # a symbolic link: its content is a path
    with pytest.raises(LoadError, match="is no array"):
        symcomp.load(archive_of(path, (TEXT, text), (link, b"/etc/passwd")))
    entry = b'"outputs":{"variable":0}'
    deep = text.replace(entry, b'"outputs":' + b'{"list":[' * 50_000 + entry[10:] + b"]}" * 50_000)
    assert deep != text
    with pytest.raises(LoadError, match="is not JSON|describes what cannot be: RecursionError"):
        symcomp.load(archive_of(path, (TEXT, deep), *arrays))
    number = text.replace(b"null", b"9" * 5000, 1)
    with pytest.raises(LoadError, match=r"graph\.json is not JSON: Exceeds the limit"):
        symcomp.load(archive_of(path, (TEXT, number), *arrays))
    with pytest.raises(LoadError, match="nan stands where"):
        symcomp.load(archive_of(path, (TEXT, text.replace(b"null", b"NaN", 1))))


def test_parts_that_overlap_are_refused(path):
    """Two members that are one place in the file: what some bombs are made of."""
    symcomp.save(path, T.dvector("x") + np.ones(3) * T.constant(np.arange(3.0)))
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        first = archive.getinfo("arrays/0.npy").header_offset
        second = archive.getinfo("arrays/1.npy").header_offset
    place = data.rindex(b"arrays/1.npy") - 4
    assert data[place : place + 4] == second.to_bytes(4, "little")
    path.write_bytes(data[:place] + first.to_bytes(4, "little") + data[place + 4 :])
    with pytest.raises(LoadError, match="no archive that|lie over each other"):
        symcomp.load(path)


MODES = [
    symcomp.Mode(linker="vm", optimizer="fast_compile").excluding("fusion"),
    NanGuardMode(True, False, False, action="raise"),
    DebugMode(check_isfinite=False, stability_patience=1).including("unsafe"),
    DebugMode(linker="vm"),
]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_modes_are_kept(path, mode):
    x = T.dvector("x")
    states, _ = symcomp.scan(lambda s: T.log(s), outputs_info=[x], n_steps=2)
    f = symcomp.function([x], states[-1], mode=mode)
    g = round_trip(path, f)
    assert type(g.maker.mode) is type(mode) and repr(g.maker.mode) == repr(mode)
    assert g.maker.mode.options == mode.options
    np.testing.assert_array_equal(g([3.0]), f([3.0]))
    if isinstance(mode, NanGuardMode):
        with pytest.raises(NanGuardError, match="1 NaN in log.*made at .*test_saving.py"):
            g([0.5])


class Loud(symcomp.Mode):
    """A user's mode."""


@pytest.mark.parametrize("mode", [MonitorMode(post_func=detect_nan), Loud()])
def test_modes_that_cannot_be_saved(path, mode):
    x = T.dvector("x")
    f = symcomp.function([x], x * 2, mode=mode)
    with pytest.raises(SaveError, match="cannot be saved: what loads the file would not"):
        symcomp.save(path, f)


@pytest.mark.parametrize(
    "mode",
    [
        None, [], ["cvm"], ["no linker", "fast_run", [], []], {"mode": "os.system"},
        {"mode": "DebugMode", "parts": ["cvm", "None", [], []], "options": {"evil": 1}},
        {"mode": "MonitorMode", "parts": ["cvm", "None", [], []], "options": {}},
        {"mode": "NanGuardMode", "parts": ["cvm", "None", [], []], "options": {"action": "x"}},
    ],
)  # fmt: skip
def test_hostile_modes(path, mode):
    x = T.dvector("x")
    symcomp.save(path, symcomp.function([x], x * 2))
    rewrite(path, lambda text: text["functions"][0].update(mode=mode))
    with pytest.raises(LoadError, match="is no mode"):
        symcomp.load(path)


def subtrees(text, place=()):
    """Return the places in a JSON text."""
    yield place
    entries = text.items() if isinstance(text, dict) else []
    for key, value in enumerate(text) if isinstance(text, list) else entries:
        yield from subtrees(value, (*place, key))


EVIL = [
    None, -1, 3, 10**30, 2.5, float("nan"), "", "x", "float32", True, [], {}, {"array": 0}, [0],
    {"tuple": [1, 2]}, {"int": "9" * 4000}, {"float": "nan"}, {"list": [1]}, {"slice": [1, 2, 3]},
    {"scalar": "exp", "parameters": []}, {"reduction": "max"}, {"dtype": "bool"},
]  # fmt: skip


def changed_archives(path, count, seed):
    """Yield the path of an archive, changed at random anew each time."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    rng = random.Random(seed)
    for _ in range(count):
        text = json.loads(members[TEXT])
        *way, key = rng.choice([p for p in subtrees(text) if p and "source" not in p[-1:]])
        parent = text
        for step in way:
            parent = parent[step]
        parent[key] = rng.choice(EVIL)
        others = [(name, data) for name, data in members.items() if name != TEXT]
        yield archive_of(path, (TEXT, json.dumps(text)), *others)


def test_whatever_is_changed_gives_a_graph_or_a_load_error(path):
    _, _, train, *_ = network()
    x = T.dmatrix("x")
    symcomp.save(path, [train, T.sort(x[1:, ::2]).reshape((1, -1))])
    refused = 0
    for changed in changed_archives(path, 150, seed=0):
        try:
            symcomp.load(changed)
        except LoadError:
            refused += 1
    assert refused > 100


def test_damage_is_found(path):
    symcomp.save(path, T.dvector("x") + np.ones(3))
    whole = path.read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(LoadError):
            symcomp.load(path)
    flipped = bytearray(whole)
    flipped[whole.index(b"\x93NUMPY") + 135] ^= 0xFF
    path.write_bytes(flipped)
    with pytest.raises(LoadError, match="CRC"):
        symcomp.load(path)


def test_long_graphs(path):
    x = T.dscalar("x")
    z = x
    for _ in range(2000):
        z = T.sin(z) + 0.0
    loaded = round_trip(path, z)
    (x2,) = [v for v in graph_inputs([loaded]) if v.name == "x"]
    assert ClosedGraph([x2], [loaded]) == ClosedGraph([x], [z])


def test_equal_graphs_make_equal_files(path):
    one, two = path, path.with_name("two.zip")
    _, _, train, *_ = network()
    symcomp.save(one, train)
    symcomp.save(two, train)
    assert one.read_bytes() == two.read_bytes()


def test_loops_with_cheap_rewrites(tmp_path):
    x = T.dmatrix("x")
    sums, _ = symcomp.scan(lambda row, s: T.tanh(s + row), x, x[0], mode="FAST_COMPILE")
    f = symcomp.function([x], sums)
    symcomp.save(tmp_path / "loop.zip", f)
    g = symcomp.load(tmp_path / "loop.zip")
    value = np.linspace(-1, 1, 6).reshape(3, 2)
    np.testing.assert_array_equal(g(value), f(value))
