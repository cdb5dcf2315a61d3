"""The example of a hierarchical model."""

import pytest

pytest.importorskip("pymc")
pytest.importorskip("matplotlib")

from symcomp.tests.programs.test_examples import load


def test_radon(tmp_path):
    found = load("radon").main(
        ["--draws", "300", "--tune", "400", "--chains", "2", "--output", str(tmp_path)]
    )
    # The truth of the simulation, within four deviations of the posterior.
    for name, truth, width in (
        ("level", 1.45, 0.16), ("of_uranium", 0.7, 0.4), ("floor", -0.65, 0.3), ("noise", 0.75, 0.1)
    ):  # fmt: skip
        assert abs(found[name] - truth) < width
    assert found["model"] < 0.7 * found["counties alone"]
    assert (tmp_path / "radon.png").read_bytes().startswith(b"\x89PNG")
