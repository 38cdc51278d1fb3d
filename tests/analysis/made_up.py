"""Results made up with the errors, fingerprints, traces and losses that a test asks for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from mkldist.analysis.comparison import Difference, PairComparison, Results
from mkldist.analysis.statistics import Posterior
from mkldist.results.folder import write_manifest
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.layout import lay_out
from mkldist.results.schema import RunState
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

METHODS = ("level", "uniform", "skm", "simplemkl", "rmkl")
GRIDS = {method: {"C": [1.0, 10.0]} for method in METHODS} | {"majority": {}}
N_TRAIN, N_TEST, N_POINTS = 60, 30, 90
LABELS = np.where(np.arange(N_POINTS) % 3, 1.0, -1.0)


def made(
    folder: Path,
    errors: Mapping[tuple[str, str], Sequence[float]],
    *,
    split_names: Sequence[str] = ("s0", "s1", "s2", "s3", "s4"),
    data: str = "the data",
    bank: str = "the bank",
    banks: Sequence[str] = ("xu2008",),
    objective: float = 10.0,
    gap: float = 0.01,
    wrong: Mapping[str | tuple[str, str], Sequence[Sequence[int]]] | None = None,
    folds: int = 1,
    active: Mapping[tuple[str, str], int] | None = None,
) -> Results:
    """Return results whose errors at C = 1 are given by data set and method; C = 10 is worse."""
    datasets = tuple(dict.fromkeys(dataset for dataset, _ in errors))
    grids = {key: grid for key, grid in GRIDS.items() if key in {one for _, one in errors}}
    wrong = wrong or {}
    plan = made_up_plan(
        grids,
        datasets=datasets, banks=banks, n_splits=len(split_names), n_points=N_POINTS,
        predictions=True,
    )  # fmt: skip
    store = Journal(folder / "records.journal")
    for run in plan.runs:
        record = made_up_record(run, n_points=N_POINTS)
        error = errors[run.dataset, run.key][run.split] + 0.2 * (run.params.get("C", 1.0) > 1.0)
        record = replace(
            record,
            scores={"test_error": error},
            objective=objective,
            dual_objective=objective * (1.0 - gap),
            gap=gap,
            provenance={
                "data_fingerprint": data,
                "split_fingerprint": split_names[run.split],
                "bank": bank,
            },
            **_predictions(run.split, wrong.get((run.dataset, run.key), wrong.get(run.key))),
        )
        n_active = (active or {}).get((run.dataset, run.key), 3)
        record = replace(
            record,
            n_active=n_active,
            n_nonzero=n_active,
            kernels=np.arange(n_active),
            weights=np.full(n_active, 1.0 / n_active),
        )
        if math.isnan(error):
            record = replace(record, state=RunState.FAILED, error="It was made to fail.")
        store.append([record])
    number = np.arange(len(split_names))
    sizes = {"n_train": N_TRAIN, "n_test": N_TEST, "n_unlabelled": 0}
    parts = {name: np.full(len(number), size) for name, size in sizes.items()}
    facts = replace(
        made_up_facts(plan, grids, n_points=N_POINTS),
        splits={
            name: {"repeat": number // folds, "fold": number % folds, **parts} for name in datasets
        },
    )
    write_manifest(folder, "made-up", None)
    lay_out(folder, plan, facts)
    return Results.of(folder)


def _predictions(split: int, wrong: Sequence[Sequence[int]] | None) -> dict[str, Any]:
    """Return test rows and decision values that are wrong at some places."""
    if wrong is None:
        return {"test_rows": np.zeros(0, np.intp), "decision_values": np.zeros(0)}
    rows = np.arange(split, split + N_TEST)
    values = LABELS[rows] * 0.5
    values[list(wrong[split])] *= -1.0
    return {"test_rows": rows, "decision_values": values}


def records_of(results: Results) -> list[RunRecord]:
    """Return all records of results."""
    return [r for i in results.store.states() if (r := results.store.read(i)) is not None]


def by_name(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Match the methods of equal names."""
    return one["method"] == other["method"]


def level_and_uniform(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Match level with uniform weights."""
    return (one["method"], other["method"]) == ("level", "uniform")


def pair(
    first: float = 0.1,
    second: float = 0.2,
    *,
    dataset: str = "heart",
    loss: str = "test_error",
    methods: tuple[str, str] = ("level", "uniform"),
    **changes: Any,
) -> PairComparison:
    """Return a comparison of two mean losses; other fields as asked for."""
    difference = first - second
    losses = Difference(first, second, difference, difference - 0.05, difference + 0.05)
    nothing = Difference(*(math.nan,) * 5)
    fields: dict[str, Any] = {
        "first_setting": {"C": 1.0},
        "second_setting": {"C": 10.0},
        "validated": (True, True),
        "n_splits": 5,
        "left_out": (0, 0),
        "losses": losses,
        "p_value": 0.01,
        "p_holm": 0.02,
        "rope": 0.01,
        "posterior": Posterior(0.97, 0.02, 0.01),
        "measures": dict.fromkeys(("active_kernels", "seconds", "gap"), nothing),
    }
    return PairComparison(dataset, *methods, loss, **(fields | changes))


Run = tuple[Sequence[float], Sequence[float], Sequence[float]]


def traced(runs: Mapping[str, Sequence[Run]]) -> xr.DataTree:
    """Return a tree of runs on splits, each with its gaps, passes and seconds."""
    nodes = {}
    for method, own in runs.items():
        length = max(len(gaps) for gaps, _, _ in own)
        node = _node(method, np.zeros(len(own)))
        nodes[f"/ring/{method}"] = node
        columns = np.full((3, len(own), length), np.nan)
        for number, parts in enumerate(own):
            for place, values in enumerate(parts):
                columns[place, number, : len(values)] = values
        names = ("gap", "passes", "seconds")
        nodes[f"/ring/{method}/convergence"] = xr.Dataset(
            {
                name: (("split", "iteration"), column)
                for name, column in zip(names, columns, strict=True)
            }
        )
    return _tree(nodes)


def learnt(method: str, losses: Mapping[int, float], spread: float = 0.01) -> xr.DataTree:
    """Return a tree with the losses ``loss - spread, loss, loss + spread`` at each size."""
    nodes = {}
    for size, loss in losses.items():
        errors = loss + spread * np.array([-1.0, 0.0, 1.0])
        node = _node(method, errors).assign_coords(
            n_train=("split", [size] * 3), n_test=("split", [50] * 3)
        )
        node.attrs["dataset_series"] = "ring"
        nodes[f"/ring-{size}/{method}"] = node
    return _tree(nodes)


def _node(method: str, errors: np.ndarray) -> xr.Dataset:
    count = len(errors)
    parts = {
        "state": ("split", np.full(count, "complete", object)),
        "run_id": ("split", np.array([f"{method}-{n}" for n in range(count)], object)),
        "test_error": ("split", errors),
    }
    attributes = {"task": "classification", "bank": "gaussians"}
    return xr.Dataset(parts, {"split": np.arange(count)}, attributes)


def _tree(nodes: Mapping[str, xr.Dataset]) -> xr.DataTree:
    return xr.DataTree.from_dict(dict(nodes))
