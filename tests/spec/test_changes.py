"""What was changed of a sweep's file, in words."""

from __future__ import annotations

import pytest

from mkldist.spec.changes import changes
from mkldist.spec.load import load_sweep

FILE = """
name = "a"
tol = 0.01
[[datasets]]
name = "iris"
[[datasets]]
name = "wine"
[splits]
repeats = 20
[[banks]]
name = "gaussians"
  [[banks.kernels]]
  function = "gaussian"
  widths = [1, 2]
[[methods]]
name = "level"
C = [1, 10]
[[methods]]
name = "uniform"
C = 1
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ([], []),
        (["wall_time=2h", "outputs.keep_banks=false"], []),  # no result depends on
        (["splits.repeats=5"], ["splits.repeats = 5, not 20"]),
        (["methods.level.C=[1]"], ["methods.level.C = [1], not [1, 10]"]),
        (['datasets=[{name="wine"}]'], ["datasets: 1 of 2"]),
        (
            ['datasets=[{name="wine"},{name="sonar"}]'],
            ["datasets: 1 of 2", "datasets: sonar besides"],
        ),
        (
            ['methods=[{name="level",C=[1,10]}]', "tol=0.1"],
            ["tol = 0.1, not 0.01", "methods: 1 of 2"],
        ),
        (
            ["banks.gaussians.normalisation=none"],
            ['banks.gaussians.normalisation = "none", not "variance"'],
        ),
    ],
)
def test_each_value_that_differs_is_said(file, overrides, said):
    assert changes(load_sweep(file), load_sweep(file, overrides)) == said
