"""Chains of `subproblems`: one a path, class and fold, from strong regularisation to weak."""

from __future__ import annotations

from mkldist.fit.problem import Subproblem, TrainingView, chains_of
from mkldist.planning.model import RunPlan
from mkldist.spec.model import SelectionSpec

WHOLE = TrainingView(0)
FOLD = TrainingView(0, selection=SelectionSpec(folds=2), fold=1)


def run(C: float, tol: float = 0.01, *, on_path: bool = True) -> RunPlan:
    params = {"C": C, "tol": tol}
    return RunPlan(f"{C}-{tol}", "d", "b", "b", 0, "level", "level", params, on_path=on_path)


def links(runs: list[RunPlan], *views: TrainingView, classes=(None,)) -> list[list[float]]:
    """Return the values of C in each chain."""
    subproblems = [[Subproblem(r, view, c) for view in views for c in classes] for r in runs]
    return [[s.run.params["C"] for s in chain] for chain in chains_of(subproblems)]


def test_runs_without_a_path_are_chains_by_themselves():
    assert links([run(C, on_path=False) for C in (3.0, 1.0)], WHOLE) == [[3.0], [1.0]]


def test_a_path_begins_with_the_strongest_regularisation():
    assert links([run(C) for C in (3.0, 1.0, 2.0)], WHOLE) == [[1.0, 2.0, 3.0]]


def test_folds_classes_and_other_parameters_have_chains_of_their_own():
    runs = [run(C, tol) for tol in (0.1, 0.2) for C in (2.0, 1.0)]
    assert links(runs, WHOLE, FOLD, classes=(0, 1, 2)) == [[1.0, 2.0]] * (2 * 2 * 3)
