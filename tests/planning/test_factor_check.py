"""Methods and splits that banks of factors refuse."""

from __future__ import annotations

import tomllib

import pytest

from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import BUFFER_BYTES, WORKER_BASE_BYTES
from mkldist.planning.resolved import resolve
from mkldist.solvers.most_points import most_points
from mkldist.spec.model import SweepSpec

TEXT = """
name = "factors"
memory = "2GiB"
[[datasets]]
name = "two_moons"
options = {{ n = 60 }}
{splits}
[[banks]]
name = "thin"
backend = "factors"
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
[[banks]]
name = "whole"
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
{methods}
"""
SEMI = '[splits]\nkind = "semi-supervised"\nlabelled_per_class = 6\nrepeats = 1'


def resolved(tmp_path, methods, splits=""):
    text = TEXT.format(methods=methods, splits=splits)
    return resolve(SweepSpec.model_validate(tomllib.loads(text)), (), tmp_path)


def test_methods_that_need_matrices_are_refused_with_the_points_that_fit(tmp_path):
    with pytest.raises(SpecError) as raised:
        resolved(tmp_path, '[[methods]]\nname = "level"\n[[methods]]\nname = "skm"')
    method = METHODS["skm"]
    most = most_points(method, method.params(), 2, 2 * 2**30 - WORKER_BASE_BYTES - BUFFER_BYTES)
    said = str(raised.value)
    assert said.startswith("methods.skm: found skm on bank 'thin' of factors")
    assert f"the 1.6 GiB of a solver hold up to {most:,} points" in said
    assert "level" in said
    assert "uniform" in said


def test_methods_that_need_factors_below_their_kernels_are_refused_on_rounded_ones(
    tmp_path, monkeypatch
):
    rounded = TEXT.replace('backend = "factors"', 'backend = "factors"\ndtype = "float32"')
    monkeypatch.setitem(globals(), "TEXT", rounded)
    assert resolved(tmp_path, '[[methods]]\nname = "level"').grids
    with pytest.raises(SpecError) as raised:
        resolved(tmp_path, '[[methods]]\nname = "level"\n[[methods]]\nname = "spicymkl"')
    said = str(raised.value)
    assert said.startswith("methods.spicymkl: found spicymkl on bank 'thin' of factors in float32")
    assert "a method on rounded factors: " in said
    assert 'dtype = "float64"' in said
    assert "lp_mkl" not in said


def test_such_methods_run_on_the_other_banks(tmp_path):
    both = '[[methods]]\nname = "level"\n[[methods]]\nname = "skm"\nbanks = ["whole"]'
    assert resolved(tmp_path, both).grids["two_moons"].keys() == {"level", "skm"}


def test_unlabelled_rows_are_refused(tmp_path):
    with pytest.raises(SpecError, match="'two_moons', which has unlabelled rows"):
        resolved(tmp_path, '[[methods]]\nname = "level"', SEMI)
