"""The setting of a sweep that a model is fitted with: the best one, or one that is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.counted import counted
from mkldist.errors import InputError, nearest
from mkldist.results.node_variables import task_of
from mkldist.results.rows import hyperparameters, method_nodes, place_of, settings_of, to_frame
from mkldist.results.schema import RUN_ID, SPLIT, STATE
from mkldist.results.selected import is_validated
from mkldist.results.state import RunState
from mkldist.results.tree import read_tree
from mkldist.spec.trial import TRIAL

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

ERRORS = {
    "classification": ("validation_error", "test_error", "unlabelled_error"),
    "regression": ("validation_rmse", "rmse", "unlabelled_rmse"),
}
"""Scores that choose a setting, by task: on inner folds, on test parts, on unlabelled parts."""
PARTS = ("by cross-validation", "on the test parts", "on the unlabelled parts")
PLACE = ["dataset", "bank", "method"]


@dataclass(frozen=True)
class Choice:
    """A setting of a sweep."""

    dataset: str
    bank: str
    method: str
    settings: dict[str, Any]  # values of the parameters that vary
    changed: dict[str, Any]  # parameters that the user asks for and the sweep did not run
    run_ids: tuple[str, ...]  # its complete runs, in the order of the splits
    score: float  # mean over the splits of the score that chose it; NaN if there is none
    said: str  # how it was chosen, in words
    note: str = ""  # what the sweep has not run yet, in words; empty if it has ended
    missing: int = 0  # number of its runs that are not complete

    @property
    def words(self) -> str:
        """Method and parameters in words."""
        return ", ".join([self.method, *_listed({**self.settings, **self.changed})])


def choose(
    results: Path,
    dataset: str | None = None,
    bank: str | None = None,
    method: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Choice:
    """Choose the setting of least mean error over the splits among those that the user allows.

    The error is that of inner folds where the sweep has a selection, else that of the test parts,
    or of the unlabelled parts if there are no test parts.  Settings with runs that are not complete
    take part only if no other has all.  Of equal settings the first counts.

    Parameters
    ----------
    results : Path
        Output folder of the sweep.
    dataset, bank, method : str, optional
        Names in the results; any will do where none is given.
    settings : mapping of str to object, optional
        Values of parameters.

    Raises
    ------
    mkldist.errors.InputError
        If the results have several data sets and none is asked for, or nothing fits.
    mkldist.errors.StoreError
        If there are no results or they are damaged.
    """
    tree, wanted = read_tree(results), settings or {}
    nodes = _nodes_at(method_nodes(tree), (dataset, bank, method), results)
    task = task_of(nodes[0])
    tested = [node.ds[ERRORS[task][1]] for node in nodes if ERRORS[task][1] in node.ds]
    level = 0 if is_validated(tree) else 1 if any(one.notnull().any() for one in tested) else 2
    error = ERRORS[task][level]
    methods = [(settings_of(node), _runs(node, error)) for node in nodes]
    varied = {name for names, _ in methods for name in names}
    _check_names(wanted, varied, [str(node.name) for node in nodes])
    able = [(names, runs) for names, runs in methods if wanted.keys() & varied <= {*names}]
    for names, runs in able:
        if not {*names} <= wanted.keys():
            _check_comparable(names, runs, error, nodes[0].sizes[SPLIT], results)
    every = [one for names, runs in able for one in _settings(names, runs, error)]
    run = {n: v for n, v in wanted.items() if any((n, v) in one.settings.items() for one in every)}
    found = [one for one in every if one.run_ids and run.items() <= one.settings.items()]
    if not found:
        raise _nothing(able or methods, run or wanted, results)
    whole = [one for one in found if not one.missing] or found
    best = min(whole, key=lambda one: (np.isnan(one.score), one.score))
    changed = {name: value for name, value in wanted.items() if best.settings.get(name) != value}
    unchanged = {name: value for name, value in best.settings.items() if name not in changed}
    said = _said(best, len(found), sum(one.missing > 0 for one in found), level, task)
    if changed:
        said = f"as asked; the results have no run of {', '.join(_listed(changed))}, "
        said += "so the error of this setting is unknown"
    states = [state for _, runs in methods for state in runs[STATE.name]]
    waiting = states.count(RunState.WAITING.value)
    note = f"{waiting} of {counted(len(states), 'run')} {'is' if waiting == 1 else 'are'} waiting"
    note = f"{note}; resume the sweep first" if waiting else ""
    return replace(best, settings=unchanged, changed=changed, said=said, note=note)


def _nodes_at(
    nodes: Sequence[xr.DataTree], place: Sequence[str | None], results: Path
) -> Sequence[xr.DataTree]:
    """Return the nodes of the data set, bank and method that are asked for; refuse several data."""
    if not nodes:
        raise InputError(str(results), "results without runs", "a sweep with runs")
    for key, name in zip(PLACE, place, strict=True):
        known = list(dict.fromkeys(place_of(node)[key] for node in nodes))
        if name is not None and name not in known:
            hint = nearest(name, known)
            raise InputError(f"--{key} {name}", "nothing of this name", " or ".join(known), hint)
        if name is not None:
            nodes = [node for node in nodes if place_of(node)[key] == name]
        elif key == "dataset" and len(known) > 1:
            found = f"{len(known)} data sets: {', '.join(known)}"
            hint = f"Choose it: --dataset {known[0]}"
            raise InputError(str(results), found, "one, for a model is of one data set", hint)
    return nodes


def _runs(node: xr.DataTree, error: str) -> pd.DataFrame:
    """Return the runs of a node, one of each setting and split; with halving, of the last rung."""
    runs, dims = to_frame(node, (RUN_ID.name, STATE.name, error)), hyperparameters(node)
    for rungs in {*dims} - {TRIAL} if TRIAL in dims else ():
        runs = runs[runs[rungs] == node[rungs].to_numpy()[-1]]
    runs = runs.drop_duplicates([SPLIT, *settings_of(node)])  # trials of equal values
    return runs if error in runs else runs.assign(**{error: np.nan})


def _settings(names: Sequence[str], runs: pd.DataFrame, error: str) -> Iterator[Choice]:
    """Yield the settings of a node in the order of their first runs."""
    for _, own in runs.groupby([*PLACE, *names], sort=False, dropna=False):
        done = own[own[STATE.name] == RunState.COMPLETE.value]
        mean = float(done[error].to_numpy().mean()) if len(done) else np.nan
        [first] = own.head(1).to_dict("records")
        dataset, bank, method, *values = (first[name] for name in [*PLACE, *names])
        yield Choice(
            dataset, bank, method, dict(zip(names, values, strict=True)), {},
            tuple(done[RUN_ID.name]), mean, "", missing=len(own) - len(done),
        )  # fmt: skip


def _check_names(wanted: Mapping[str, Any], varied: set[str], methods: Sequence[str]) -> None:
    """Refuse several methods if a parameter is asked for that none of them varied."""
    others, methods = [name for name in wanted if name not in varied], [*dict.fromkeys(methods)]
    if others and len(methods) > 1:
        known = sorted(varied)
        raise InputError(
            f"--set {others[0]}",
            f"a parameter that no method of {', '.join(methods)} varied",
            f"one of {', '.join(known)}" if known else "no parameter",
            nearest(others[0], known) or "Choose a method by --method to change its parameters",
        )


def _check_comparable(
    names: Sequence[str], runs: pd.DataFrame, error: str, n_splits: int, results: Path
) -> None:
    """Refuse to compare the settings of a search that not all splits ran."""
    n_settings = len(runs.groupby([*PLACE, *names], dropna=False))
    if len(runs) == n_settings * n_splits or runs[error].isna().all():
        return
    [best] = runs.nsmallest(1, error).to_dict("records")
    method, split = best["method"], best[SPLIT]
    values = " ".join(f"--set {name}={_spelled(best[name])}" for name in names)
    raise InputError(
        str(results),
        f"a search that tried other settings of {method} on each split, so that no mean over "
        "the splits compares them",
        "one setting, or another method",
        f"Give one: --method {method} {values} is the best of split {split}; "
        "mkldist.selected(tree) has the best of each",
    )


def _nothing(
    methods: Sequence[tuple[Sequence[str], pd.DataFrame]], wanted: Mapping[str, Any], results: Path
) -> InputError:
    """Return the error of results in which no setting can be chosen."""
    if not wanted:
        hint = "Run or resume the sweep first"
        return InputError(str(results), "no complete run", "a complete run", hint)
    ran = {name: runs[name].unique().tolist() for names, runs in methods for name in names}
    values = "; ".join(f"{name} = {', '.join(map(_spelled, own))}" for name, own in ran.items())
    where = f"--set {', '.join(_listed(wanted))}"
    return InputError(where, "no complete run of this setting", f"one of {values}")


def _said(best: Choice, n_settings: int, n_partial: int, level: int, task: str) -> str:
    """Return how a setting was chosen, in words."""
    if n_settings == 1 or np.isnan(best.score):
        return "the only setting" if n_settings == 1 else "the first setting: none has a score"
    score = f"{100 * best.score:.2f} %" if task == "classification" else f"{best.score:.4g}"
    what = "error" if task == "classification" else "RMSE"
    splits = len(best.run_ids)
    over = f", mean of {splits} splits" if splits > 1 else ""
    said = f"the best of {n_settings} settings {PARTS[level]} ({what} {score}{over})"
    if not n_partial:
        return said
    if not best.missing:
        partial = f"{counted(n_partial, 'setting')} with runs that are not complete"
        return f"{said}; {partial} {'was' if n_partial == 1 else 'were'} left out"
    some = "all" if n_partial == n_settings else "some"
    return f"{said}; {some} have runs that are not complete, so that it may change"


def _listed(settings: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_spelled(value)}" for name, value in settings.items()]


def _spelled(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
