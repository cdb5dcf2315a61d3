"""Memory reports, and each form of a profile, of functions that have golden files."""

import json

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.profiling.stats import text_at_exit
from symcomp.tests.golden.registry import BUILDERS
from symcomp.tests.golden.sections import FLAGS

# Every third, and functions that overwrite what they are given.
NAMES = sorted({*sorted(BUILDERS)[::3], "mutable_inputs", "updates_in_place"})


@pytest.fixture(scope="module", autouse=True)
def limits_kept_here(tmp_path_factory):
    """Measure the limits of the machine once, and keep them away from the user's directory."""
    with config.change_flags(compiledir=str(tmp_path_factory.mktemp("kept"))):
        yield


@pytest.mark.parametrize("name", NAMES)
def test_reports_and_profiles(name, tmp_path):
    with config.change_flags(**FLAGS | {"compiledir": config.compiledir}):
        golden = BUILDERS[name]()
        f = symcomp.function(
            golden.inputs, golden.outputs, updates=golden.updates, name=name, profile=True
        )
        before = f.memory_report(*golden.arguments)
        f(*golden.arguments)
        after = f.memory_report(*golden.arguments)
    assert after.values == before.values and after.text().startswith("inputs and constants")
    profile = f.profile
    assert f"Profile of {name}" in profile.text()
    assert f"Profile of {name}" in text_at_exit([profile])
    (data,) = profile.to_dict()["functions"]
    assert data["name"] == name and len(data["memory"]["values"]) == len(after.values)
    profile.to_json(tmp_path / "profile.json")
    assert json.loads((tmp_path / "profile.json").read_text())["functions"][0]["name"] == name
    profile.to_html(tmp_path / "profile.html")
    assert name in (tmp_path / "profile.html").read_text()
    profile.to_chrome_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_an_overwritten_input_takes_no_memory():
    x = T.dvector("x")
    f = symcomp.function([symcomp.In(x, mutable=True)], T.exp(x) * 2, profile=True)
    assert "into s0    free s0" in f.program.listing()
    f(np.ones(3))
    report = f.memory_report((3,))
    (value,) = report.values
    assert (value.bytes, value.buffers) == (24, ())
    assert (report.inputs, report.results, report.planned, report.peak) == (24, 0, 0, 0)
    assert f.profile.to_dict()["functions"][0]["memory"]["peak"] == 0
