"""Sweeps in which SpicyMKL gives other methods their C, split by split: Eq. (6) of its paper."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from mkldist.errors import InputError
from mkldist.fit.select import choose, prepared_fit
from mkldist.results.journal import Journal
from mkldist.results.status import sweep_status
from mkldist.results.tree import open_results
from tests.run.sweeps import records, run_here, sweep_text

SPICY = sweep_text({"spicymkl": [10.0, 2.5]}, execution="isolated")
TEXT = SPICY.replace("[[datasets]]", "tol = 1e-7\n[[datasets]]", 1) + (
    'loss = "hinge"\n'
    '[[methods]]\nname = "level"\nC = { from = "spicymkl" }\n'
    '[[methods]]\nname = "silp"\nC = { from = "spicymkl" }\ntol = [1e-4, 1e-6]\n'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    output, said = tmp_path_factory.mktemp("given") / "small", StringIO()
    outcome = run_here(TEXT, output, None, console=lambda: Console(file=said, width=200))
    assert outcome.computed == len(outcome.plan.runs) == 2 * (2 + 2 + 4)
    assert not outcome.failed
    assert "16 of 16 runs" in said.getvalue()  # of both rounds
    return output


def test_both_methods_solve_one_problem(folder):
    with open_results(folder) as tree:
        moons = tree["two_moons"]
        spicy = moons["spicymkl"].to_dataset().load().rename(C="strength")
        level = moons["level"].to_dataset().load().rename(source_C="strength")
    norms = spicy.norm_sum
    np.testing.assert_allclose(level.C, norms * spicy.strength, rtol=1e-5)
    losses = spicy.objective - norms / spicy.strength
    np.testing.assert_allclose(level.objective, level.C * losses + norms**2 / 2, rtol=1e-4)
    np.testing.assert_allclose(level.kernel_weights, spicy.kernel_weights, atol=1e-2)
    np.testing.assert_allclose(level.decision_values, spicy.decision_values, atol=1e-2)


def test_every_setting_of_a_method_runs_at_every_c(folder):
    with open_results(folder) as tree:
        silp = tree["two_moons/silp"].to_dataset()
        assert silp.objective.dims == ("split", "source_C", "tol")
        np.testing.assert_array_equal(silp.C[..., 0], tree["two_moons/level"].C)
        assert "C" not in silp.attrs["settings"]


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on(folder):
    kept = records(folder)
    gone = [i for i, record in kept.items() if record.key == "level"][:1]
    gone += [i for i, record in kept.items() if record.key == "spicymkl"][:1]
    Journal(folder / "records.journal").remove(gone)
    outcome = run_here(TEXT, folder, None)
    assert outcome.computed == 2
    assert records(folder).keys() == kept.keys()


def test_a_model_needs_one_c(folder):
    with pytest.raises(InputError, match=r"whose C comes from spicymkl on each split.*--set C="):
        prepared_fit(folder, choose(folder, method="level"))
    _, run = prepared_fit(folder, choose(folder, method="level", settings={"C": 7.0}))
    assert run.params["C"] == 7.0


def test_solutions_without_kernels_give_no_c(tmp_path):
    text = TEXT.replace("[10.0, 2.5]", "[1e-6]").replace("isolated", "shared")
    said = StringIO()
    outcome = run_here(
        text, tmp_path / "small", None, console=lambda: Console(file=said, width=200)
    )
    assert outcome.computed == len(outcome.plan.runs) == 2
    assert "small: at most 8 runs to do" in said.getvalue()
    left_out = "2 runs of spicymkl failed or found no kernel, and so gave no C"
    assert said.getvalue().count(left_out) == 1
    assert "2 of 2 runs" in said.getvalue()
    assert sweep_status(tmp_path / "small").most_runs == 2
    with open_results(tmp_path / "small") as tree:
        assert list(tree["two_moons"].children) == ["spicymkl"]
