"""Sentences and cautions of the report."""

from __future__ import annotations

import pytest

from mkldist.report.words import cautions, headline
from mkldist.results.state import RunState


def test_the_headline_of_a_finished_sweep(finished):
    asked, came_out, certified = headline(finished)
    n_runs = finished.status.n_runs
    assert asked == (
        f"The sweep compares 3 methods on heart with 7 kernels and 5 splits; "
        f"all {n_runs} runs are complete."
    )
    means = finished.summary.set_index("method")["test_error_mean"]
    best = means.idxmin()
    assert came_out.startswith(
        f"On heart, {best} has the least test error, {100 * means.min():.2f} %"
    )
    assert "at the setting of least loss on the test parts" in came_out
    largest = finished.runs["gap"].max()
    assert certified == (
        f"All {n_runs} complete runs reached their tolerance, with a certified duality gap of at "
        f"most {largest:.1e}."
    )


def test_the_headline_of_a_running_sweep_counts_what_is_there(facts):
    asked, came_out, certified = headline(facts)
    done = facts.count(RunState.COMPLETE)
    assert f"{done} of {facts.status.n_runs} runs are complete" in asked
    assert came_out.startswith("Of 2 data sets, the least mean loss is that of ")
    assert certified.startswith(f"{done - 1} of {done} complete runs reached their tolerance")
    assert certified.endswith("; 1 run failed.")


def test_cautions_name_what_to_beware_of(facts):
    found = cautions(facts)
    said = {caution.title: caution.text for caution in found}
    assert said["Unfinished"].startswith(f"2 of {facts.status.n_runs} runs are not recorded yet")
    assert "1 runs failed" in said["Failed runs"]
    assert "max_iter (1)" in said["Gap above tol"]
    assert "5.0e-01" in said["Gap above tol"]
    assert "Settings chosen on the test parts" in said
    assert "Times shared, not isolated" in said


def test_a_best_value_at_the_edge_is_told_and_one_inside_is_not(finished):
    said = [c.text for c in cautions(finished) if c.title.startswith("Best value at the edge")]
    (compared,) = finished.compared
    best = compared.settings["level"]["C"]
    assert any(text.startswith("level: ") for text in said) == (best in (0.1, 100.0))
    assert not any(text.startswith("simplemkl: C") for text in said)  # a grid of two values


@pytest.mark.parametrize("method", ["level", "simplemkl", "uniform"])
def test_unstable_selections_are_told(finished, method):
    row = finished.stability.set_index("method").loc[method]
    titles = [c.text for c in cautions(finished) if c.title == "Selection unstable"]
    assert any(f"heart, {method}: " in text for text in titles) == (row["stability"] < 0.4)
