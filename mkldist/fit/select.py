"""The setting of a sweep that a model is fitted with: the best one, or one that is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.counted import counted
from mkldist.errors import InputError, nearest
from mkldist.results.node_arrays import NodeArrays, is_validated, nodes_in
from mkldist.results.schema import RUN_ID, STATE
from mkldist.results.state import RunState
from mkldist.results.tree import current
from mkldist.results.tree_index import TreeIndex
from mkldist.spec.kinds import Task
from mkldist.spec.trial import TRIAL


@dataclass(frozen=True, eq=False)
class SettingsRun:
    """Settings of one method on one data set and bank, each with its runs on all splits.

    Parameters
    ----------
    place : dict of str to str
        Names of the data set, the bank and the method.
    task : {"classification", "regression"}
        Task of the data set.
    names : tuple of str
        Parameters that vary.
    settings : tuple of dict
        Their values, setting by setting.
    planned : (n_splits, n_settings) bool
        Which splits and settings have a run.
    values : dict of str to (n_splits, n_settings) array
        Variables of the runs by name.
    """

    place: Mapping[str, str]
    task: Task
    names: tuple[str, ...]
    settings: tuple[dict[str, Any], ...]
    planned: Array
    values: Mapping[str, Array]

    @classmethod
    def of(cls, node: NodeArrays) -> SettingsRun:
        """Return the settings of a node; with halving, those on the last rung."""
        return _of_trials(node) if TRIAL in node.dims else _of_grid(node)

    @property
    def differ(self) -> bool:
        """True if splits ran different settings, so that no mean over them compares all."""
        return not self.planned.all(axis=0).all()

    def values_of(self, name: str) -> list[Any]:
        """Return the values of a parameter that were run."""
        return list(dict.fromkeys(own[name] for own in self.settings if name in own))

    def variable(self, name: str) -> Array:
        """Return a variable of the runs; NaN where the node lacks it."""
        return self.values.get(name, np.full(self.planned.shape, np.nan))


def _of_grid(node: NodeArrays) -> SettingsRun:
    n_splits, *grid = node.planned.shape
    return SettingsRun(
        node.place,
        node.task,
        tuple(node.dims),
        tuple(
            {name: _plain(node.dims[name][at]) for name, at in zip(node.dims, place, strict=True)}
            for place in np.ndindex(*grid)
        ),
        node.planned.reshape(n_splits, -1),
        {name: values.reshape(n_splits, -1) for name, values in node.values.items()},
    )


def _of_trials(node: NodeArrays) -> SettingsRun:
    """Return the settings of trials: those of equal values are one setting in all splits."""
    last = tuple(slice(None) if name == TRIAL else -1 for name in node.dims)
    planned = node.planned[(slice(None), *last)]
    columns: dict[tuple[Any, ...], int] = {}
    place_of: dict[tuple[int, int], tuple[int, int]] = {}
    for split, trial in np.argwhere(planned).tolist():
        setting = tuple(_plain(values[split, trial]) for values in node.trials.values())
        place_of[split, columns.setdefault(setting, len(columns))] = split, trial
    shape = len(planned), len(columns)
    is_run = np.zeros(shape, dtype=np.bool_)
    values = {
        name: np.full(shape, np.nan if array.dtype.kind == "f" else "", dtype=array.dtype)
        for name, array in node.values.items()
    }
    for to, of in place_of.items():
        is_run[to] = True
        for name, array in node.values.items():
            values[name][to] = array[(slice(None), *last)][of]
    names = tuple(node.trials)
    settings = tuple(dict(zip(names, setting, strict=True)) for setting in columns)
    return SettingsRun(node.place, node.task, names, settings, is_run, values)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


ERRORS = {
    "classification": ("validation_error", "test_error", "unlabelled_error"),
    "regression": ("validation_rmse", "rmse", "unlabelled_rmse"),
}
"""Scores that choose a setting, by task: on inner folds, on test parts, on unlabelled parts."""
PARTS = ("by cross-validation", "on the test parts", "on the unlabelled parts")


@dataclass(frozen=True)
class Wanted:
    """Choice of a user; None and empty where any will do.

    Parameters
    ----------
    dataset, bank, method : str, optional
        Names in the results.
    settings : mapping of str to object
        Values of parameters.
    """

    dataset: str | None = None
    bank: str | None = None
    method: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """A setting of a sweep.

    Parameters
    ----------
    dataset, bank, method : str
        Names in the results.
    settings : dict of str to object
        Values of the parameters that vary.
    changed : dict of str to object
        Parameters that the user asks for and the sweep did not run.
    run_ids : tuple of str
        Its complete runs, in the order of the splits.
    score : float
        Mean over the splits of the score that chose it; NaN if there is none.
    said : str
        How it was chosen, in words.
    note : str
        What the sweep has not run yet, in words; empty if it has ended.
    """

    dataset: str
    bank: str
    method: str
    settings: dict[str, Any]
    changed: dict[str, Any]
    run_ids: tuple[str, ...]
    score: float
    said: str
    note: str = ""

    @property
    def words(self) -> str:
        """Method and parameters in words."""
        values = {**self.settings, **self.changed}
        listed = [f"{name} = {_spelled(value)}" for name, value in values.items()]
        return ", ".join([self.method, *listed])


@dataclass(frozen=True)
class _Candidate:
    """A setting with a complete run at least."""

    place: Mapping[str, str]
    settings: dict[str, Any]
    run_ids: tuple[str, ...]
    missing: int
    score: float


def choose(results: Path, wanted: Wanted) -> Choice:
    """Choose the setting of least mean error over the splits among those that the user allows.

    The error is that of inner folds where the sweep has a selection, else that of the test parts,
    or of the unlabelled parts if there are no test parts.  Settings with runs that are not complete
    take part only if no other has all.  Of equal settings the first counts.

    Parameters
    ----------
    results : Path
        Output folder of the sweep.
    wanted : Wanted
        What the user asks for.

    Raises
    ------
    mkldist.errors.InputError
        If the results have several data sets and none is asked for, or nothing fits.
    mkldist.errors.StoreError
        If there are no results or they are damaged.
    """
    index = TreeIndex(current(results))
    scores = {name for names in ERRORS.values() for name in names}
    found_in = nodes_in(index, (RUN_ID.name, STATE.name, *scores))
    nodes = [SettingsRun.of(node) for node in _of_places(found_in, wanted, results)]
    settings = dict(wanted.settings)
    level = 0 if is_validated(index) else 1
    if level and not any(_has_score(node, 1) for node in nodes):
        level = 2
    varied = {name for node in nodes for name in node.names}
    _check_names(settings, varied, nodes)
    able = [node for node in nodes if all(n in node.names for n in settings if n in varied)]
    _check_comparable(able, level, settings, results)
    asked = {name: value for name, value in settings.items() if _was_run(able, name, value)}
    found = [one for node in able for one in _candidates(node, level, asked)]
    if not found:
        raise _nothing(able or nodes, asked or settings, results)
    whole = [one for one in found if not one.missing] or found
    known = [one for one in whole if not np.isnan(one.score)] or whole
    best = min(known, key=lambda one: np.nan_to_num(one.score, nan=np.inf))
    changed = {name: value for name, value in settings.items() if best.settings.get(name) != value}
    kept = {name: value for name, value in best.settings.items() if name not in changed}
    partial = sum(one.missing > 0 for one in found)
    said = _said(best, len(found), partial, level, nodes[0].task)
    if changed:
        said = _said_of_given(changed)
    return Choice(
        best.place["dataset"], best.place["bank"], best.place["method"], kept, changed,
        best.run_ids, best.score, said, _unfinished(nodes),
    )  # fmt: skip


def _of_places(nodes: Sequence[NodeArrays], wanted: Wanted, results: Path) -> Sequence[NodeArrays]:
    """Return the nodes of the data set, bank and method that are asked for; refuse several data."""
    if not nodes:
        raise InputError(str(results), "results without runs", "a sweep with runs")
    for key in ("dataset", "bank", "method"):
        asked, known = getattr(wanted, key), list(dict.fromkeys(n.place[key] for n in nodes))
        if asked is not None and asked not in known:
            hint = nearest(asked, known)
            raise InputError(f"--{key} {asked}", "nothing of this name", " or ".join(known), hint)
        if asked is not None:
            nodes = [node for node in nodes if node.place[key] == asked]
        elif key == "dataset" and len(known) > 1:
            raise InputError(
                str(results),
                f"{len(known)} data sets: {', '.join(known)}",
                "one, for a model is of one data set",
                f"Choose it: --dataset {known[0]}",
            )
    return nodes


def _check_comparable(
    nodes: Sequence[SettingsRun], level: int, settings: Mapping[str, Any], results: Path
) -> None:
    """Refuse to compare settings of a search that not all splits ran, unless one is asked for."""
    for node in nodes:
        if not node.differ or settings.keys() >= {*node.names}:
            continue
        losses = node.variable(ERRORS[node.task][level]).astype(float)
        if np.isnan(losses).all():
            continue
        split, best = np.unravel_index(np.nanargmin(losses), losses.shape)
        given = " ".join(f"--set {n}={_spelled(v)}" for n, v in node.settings[best].items())
        method = node.place["method"]
        raise InputError(
            str(results),
            f"a search that tried other settings of {method} on each split, so that no mean over "
            "the splits compares them",
            "one setting, or another method",
            f"Give one: --method {method} {given} is the best of split {split}; "
            "mkldist.selected(tree) has the best of each",
        )


def _candidates(node: SettingsRun, level: int, asked: Mapping[str, Any]) -> Iterator[_Candidate]:
    """Yield the settings of a node that have a complete run and the values that are asked for."""
    run_ids, planned = node.variable(RUN_ID.name), node.planned
    complete = planned & (node.variable(STATE.name) == RunState.COMPLETE.value)
    errors = node.variable(ERRORS[node.task][level])
    for number in np.flatnonzero(complete.any(axis=0)).tolist():
        own = node.settings[number]
        if any(own[name] != value for name, value in asked.items()):
            continue
        done = complete[:, number]
        of_runs = errors[done, number].astype(float)
        yield _Candidate(
            node.place,
            dict(own),
            tuple(str(run_id) for run_id in run_ids[done, number]),
            int((planned[:, number] & ~done).sum()),
            float(of_runs.mean()),
        )


def _was_run(nodes: Sequence[SettingsRun], name: str, value: Any) -> bool:
    """Return True if a node has runs at this value of a parameter."""
    return any(value in node.values_of(name) for node in nodes)


def _has_score(node: SettingsRun, level: int) -> bool:
    values = node.values.get(ERRORS[node.task][level])
    return values is not None and not np.isnan(values.astype(float)).all()


def _check_names(
    settings: Mapping[str, Any], names: set[str], nodes: Sequence[SettingsRun]
) -> None:
    """Refuse several methods if a parameter is asked for that none of them varied."""
    others = [name for name in settings if name not in names]
    methods = list(dict.fromkeys(node.place["method"] for node in nodes))
    if others and len(methods) > 1:
        known = sorted(names)
        raise InputError(
            f"--set {others[0]}",
            f"a parameter that no method of {', '.join(methods)} varied",
            f"one of {', '.join(known)}" if known else "no parameter",
            nearest(others[0], known) or "Choose a method by --method to change its parameters",
        )


def _nothing(
    nodes: Sequence[SettingsRun], settings: Mapping[str, Any], results: Path
) -> InputError:
    """Return the error of results in which no setting can be chosen."""
    if not settings:
        return InputError(
            str(results), "no complete run", "a complete run", "Run or resume the sweep first"
        )
    asked = ", ".join(f"{name} = {_spelled(value)}" for name, value in settings.items())
    values = {name: node.values_of(name) for node in nodes for name in node.names}
    ran = "; ".join(f"{name} = {', '.join(map(_spelled, v))}" for name, v in values.items())
    return InputError(f"--set {asked}", "no complete run of this setting", f"one of {ran}")


def _said(best: _Candidate, n_settings: int, n_partial: int, level: int, task: str) -> str:
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
    lacking = f"{counted(n_partial, 'setting')} with runs that are not complete"
    if not best.missing:
        return f"{said}; {lacking} {'was' if n_partial == 1 else 'were'} left out"
    all_lack = "all" if n_partial == n_settings else "some"
    return f"{said}; {all_lack} have runs that are not complete, so that it may change"


def _said_of_given(changed: Mapping[str, Any]) -> str:
    """Return that a setting was given of which the sweep has no run, in words."""
    given = ", ".join(f"{name} = {_spelled(value)}" for name, value in changed.items())
    return f"as asked; the results have no run of {given}, so the error of this setting is unknown"


def _unfinished(nodes: Sequence[SettingsRun]) -> str:
    """Return how many runs wait, in words; empty if none does."""
    planned = sum(int(node.planned.sum()) for node in nodes)
    waiting = sum(
        int((node.planned & (node.variable(STATE.name) == RunState.WAITING.value)).sum())
        for node in nodes
    )
    if not waiting:
        return ""
    are = "is" if waiting == 1 else "are"
    return f"{waiting} of {counted(planned, 'run')} {are} waiting; resume the sweep first"


def _spelled(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
