"""Lines about a solver that runs: bounds as in its trace, and its outcome; silence by default."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mkldist
from mkldist.errors import SpecError
from mkldist.fit.api import SolverLines
from mkldist.solvers.progress import Clock

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.sign(X[:, 0] * X[:, 1])
KERNELS = [{"function": "gaussian", "widths": [0.5, 1, 2], "features": ["all", "each"]}]


@pytest.fixture(scope="module")
def bank():
    return mkldist.KernelBank(X, KERNELS)


def lines(capsys):
    return capsys.readouterr().out.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["level", "spicymkl", "primalmkl", "skm", "uniform"])
def test_two_prints_the_bounds_of_every_iteration_and_the_outcome(method, bank, capsys):
    found = mkldist.solve(method, bank, Y, trace=True, verbose=2)
    *iterations, last = lines(capsys)
    assert "a further round" not in "".join(iterations)
    said = [re.match(rf"\[{method}\] iteration (\d+): objective (\S+), lower", one)
            for one in iterations]  # fmt: skip
    assert [int(one.group(1)) for one in said] == list(range(1, len(found.trace["gap"]) + 1))
    values = [float(one.group(2)) for one in said]
    np.testing.assert_allclose(values, found.trace["objective"], rtol=1e-5)
    assert last.startswith(f"[{method}] {found.stop_reason} at {found.objective:.6g}, ")
    assert f"{found.counters.passes} pass" in last


def test_one_prints_an_iteration_about_once_a_second(bank, capsys):
    found = mkldist.solve("level", bank, Y, verbose=True)
    assert len(lines(capsys)) < min(5, found.counters.outer_iterations)
    for seconds, printed in ((0.0, 3), (60.0, 0)):
        clock = Clock()
        SolverLines("level", 1, clock, seconds)
        for k in range(3):
            clock.on_iteration(1.0, 0.5 + k / 10)
        assert len(lines(capsys)) == printed


def test_it_is_silent_unless_asked(bank, capsys):
    mkldist.solve("level", bank, Y)
    mkldist.solve_path("level", bank, Y, C=[1.0, 10.0])
    assert lines(capsys) == []
    mkldist.solve_path("level", bank, Y, C=[1.0, 10.0], verbose=True)
    assert sum("converged" in one for one in lines(capsys)) == 2


def test_solvers_on_factors_are_heard(capsys):
    bank = mkldist.KernelBank(X, KERNELS, backend="factors", tolerance=0.5)
    mkldist.solve("level", bank, Y, verbose=2)
    *iterations, last = lines(capsys)
    assert any("a further round, whose bounds start anew" in one for one in iterations)
    assert ", exact " in last


@pytest.mark.parametrize("value", ["yes", None, -1, 1.5])
def test_other_words_are_refused(value, bank):
    with pytest.raises(SpecError, match=r"^verbose: found .*; expected False, True, or 2"):
        mkldist.solve("level", bank, Y, verbose=value)
    model = mkldist.OneClassMKL(verbose=value)
    with pytest.raises(SpecError, match=r"^verbose: found "):
        model.fit(X)
