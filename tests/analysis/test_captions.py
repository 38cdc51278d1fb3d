"""Words below a table."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.analysis.summary import EDGES_SHOWN, RunCounts, caption


def row(method: str = "level", dataset: str = "wdbc", **given) -> dict:
    metric = "rmse" if given.get("task") == "regression" else "error"
    return {
        "dataset": dataset, "bank": "b", "method": method, "task": "classification", "edge": "",
        "complete": 5, "failed": 0, "waiting": 0, "early": 0, "lacking": 0, "gap_max": 0.01,
        "metric": metric, "best": False, "no_better": False, "constant_mean": 0.25, **given,
    }  # fmt: skip


def lines(*rows: dict, runs: bool = True, shown=None) -> list[str]:
    return caption(rows, rows if shown is None else shown, runs=runs).splitlines()


@pytest.mark.parametrize(
    ("given", "loss", "part"),
    [
        ({"test_error_mean": 0.1}, "test error", "test"),
        ({"unlabelled_error_mean": 0.1}, "unlabelled error", "unlabelled"),
        ({"task": "regression", "rmse_mean": 3.0}, "test RMSE", "test"),
        ({"metric": "auc", "auc_mean": 0.9, "test_error_mean": 0.1}, "test AUC", "test"),
        ({"test_error_mean": 0.1, "validation_error_mean": 0.2}, "validation error", None),
        ({"task": "regression", "rmse_mean": 3.0, "validation_rmse_mean": 2.0},
         "validation RMSE", None),
    ],
)  # fmt: skip
def test_the_star_says_by_what_it_was_given(given, loss, part):
    _, first, second, *_ = lines(row(**given))
    assert first == f"* best mean {loss} of its data set."
    assert second.startswith(f"* is the best on the {part} part") == (part is not None)


def test_rows_that_lack_splits_are_told():
    said = "Rows that lack a split that others of their data set have are not marked."
    assert said in lines(row(lacking=1, complete=4), row("silp"))
    assert said not in lines(row(lacking=5, complete=0), row("silp"))
    told = "A row that lacks splits stands for its method only if all of its rows do."
    assert told in lines(row(lacking=1), row(), shown=[row()])
    assert told not in lines(row(), row(), shown=[row()]) + lines(row(lacking=1), row())


def test_values_at_the_end_of_a_grid_are_gathered():
    found = lines(
        row(edge="C = 10", test_error_mean=0.1),
        row("silp", test_error_mean=0.1),
        row(dataset="heart", edge="C = 10", test_error_mean=0.1),
    )
    at = found.index("Best at the end of its grid, so a wider grid may do better:")
    assert found[at + 1 :] == ["  level C = 10 (wdbc, heart)"]
    alone = lines(row(edge="C = 10", test_error_mean=0.1))
    assert alone[-1] == "  level C = 10"
    many = lines(*(row(f"m{n}", edge="C = 1") for n in range(EDGES_SHOWN + 3)))
    assert many[-2:] == [f"  m{EDGES_SHOWN - 1} C = 1", "  3 more"]


def test_a_stationarity_is_explained_where_a_row_has_one():
    both = lines(row(), row("lapmkl", gap_max=np.nan, stationarity_max=1e-3))
    assert sum(line.startswith("Largest gap:") for line in both) == 1
    assert sum(line.startswith("Stationarity:") for line in both) == 1
    alone = lines(row("lapmkl", gap_max=np.nan, stationarity_max=1e-3))
    assert not any(line.startswith("Largest gap:") for line in alone)


def test_an_exact_gap_is_explained_where_a_row_has_one():
    assert any(line.startswith("Exact gap:") for line in lines(row(exact_gap_max=1e-3)))
    assert not any(line.startswith("Exact gap:") for line in lines(row()))


def test_exact_gaps_by_a_sample_are_called_statistical():
    said = "A sample of the points tells the exact gaps of 3 runs, which are statistical."
    assert said in lines(row(exact_gap_max=1e-3, sampled=1), row(exact_gap_max=2e-3, sampled=2))
    assert not any("sample" in line for line in lines(row(exact_gap_max=1e-3)))


def test_runs_that_ended_are_told_where_no_column_does():
    rows = row(), row("silp")
    assert "All 10 runs ended; none failed." in lines(*rows, runs=False)
    assert not any("ended" in line for line in lines(*rows))
    assert not any("ended" in line for line in lines(row(waiting=1), runs=False))


def test_all_runs_are_counted_where_the_rows_are_of_selected_ones():
    def told(*counts: int, runs: bool = False) -> str:
        return caption([row()], [row()], runs=runs, counts=RunCounts(*counts))

    said = "All 44 runs ended, 5 of them at selected settings; none failed."
    assert said in told(44, 0, 0).splitlines()
    assert "ended" not in told(44, 0, 0, runs=True) + told(42, 2, 0) + told(42, 0, 2)
    assert "2 runs failed at settings that are not selected." in told(42, 2, 0, runs=True)
    assert "2 runs without an outcome yet." in told(42, 0, 2)


def test_what_did_not_end_well_is_told():
    first = row(early=2, early_max_iter=2, waiting=1)
    second = row(early=3, early_max_iter=1, early_stalled=1, early_memory_limit=1)
    found = lines(first, second, runs=False, shown=[row()])
    at = found.index("! 5 runs stopped before the tolerance:")
    assert found[at + 1 : at + 4] == [
        "  max_iter (3): raise max_iter",
        "  stalled (1): rounding allows no further gain, or chi_2 ended it; raise tol",
        "  memory_limit (1): no memory holds longer factors; raise memory or tol",
    ]
    assert "1 run without an outcome yet." in found
    assert "Each method where its mean test error is best, of 2 rows." in found
    assert all(len(line) <= 80 for line in found)


def test_rows_that_beat_no_constant_are_told_with_what_to_try():
    worse = row("majority", test_error_mean=0.25, no_better=True)
    found = lines(worse, row(test_error_mean=0.1, best=True))
    said = "~ no better than always answering the majority (error 25.00 %), by a one-sided test."
    assert found.count(said) == 1
    assert not any("starred" in line for line in found)
    found = lines(worse, row(test_error_mean=0.25, no_better=True))
    assert any(line.startswith("So nothing is starred") for line in found)
    assert any("class_weight" in line for line in found)
    assert not any("AUC" in line for line in found)
    found = lines(row(test_error_mean=0.25, no_better=True, auc_mean=0.8, auc_low=0.7))
    assert "Yet an AUC of 0.800 tells the classes apart: weigh them." in found
    ranked = {"metric": "auc", "auc_mean": 0.5, "constant_mean": 0.5, "no_better": True}
    assert any("(AUC 0.500)" in line for line in lines(row(**ranked)))
    of_mean = {"task": "regression", "rmse_mean": 3.0, "constant_mean": 3.0, "no_better": True}
    assert any("always answering the mean (RMSE 3.000)" in line for line in lines(row(**of_mean)))
