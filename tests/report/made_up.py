"""Sweeps, studies and explanations that were made up, with numbers that tests know."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from mkldist.analysis.explanation import Explanation, Share
from mkldist.analysis.statistics import Interval
from mkldist.core.metrics import METRICS
from mkldist.report.scaling import ScalingStudy
from mkldist.report.sentences import Facts
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.layout import lay_out
from mkldist.results.schema import RunState
from mkldist.results.status import FailedRun, SweepStatus
from mkldist.results.tree import open_results
from tests.results.sweeps import GRIDS, made_up_facts, made_up_plan, made_up_record

DATASETS = ("heart", "wdbc")
N_SPLITS = 5


def made_up(folder: Path, *, damaged: bool = True, datasets: tuple[str, ...] = DATASETS) -> Facts:
    """Return facts of a sweep; with `damaged`, one run failed, two wait and one stopped early."""
    plan = made_up_plan(datasets=datasets, n_splits=N_SPLITS)
    made = [made_up_record(run) for run in plan.runs]
    failed: tuple[FailedRun, ...] = ()
    if damaged:
        run = plan.runs[3]
        made[3] = RunRecord.failed(run, "no memory for <b>17</b> matrices")
        failed = (
            FailedRun(run.id, f"{run.dataset}/{run.key}", run.split, run.params, made[3].error),
        )
        made[5] = replace(made[5], stop_reason="max_iter", gap=0.5)
        made = made[:-2]
    Journal(folder / "records.journal").append(made)
    facts = replace(made_up_facts(plan, GRIDS), splits={name: parts() for name in datasets})
    lay_out(folder, plan, facts)
    counts = Counter(record.state for record in made)
    waiting = len(plan.runs) - len(made)
    status = SweepStatus(
        name="made-up",
        path=folder,
        counts={**counts, **({RunState.WAITING: waiting} if waiting else {})},
        by_node={},
        failed=failed,
        claim=None,
    )
    return Facts(open_results(folder), status)


def parts() -> dict[str, np.ndarray]:
    """Return sizes of the parts of each split."""
    number = np.arange(N_SPLITS)
    sizes = {"n_train": 80, "n_test": 20, "n_unlabelled": 0, "n_new": 20, "n_rarest": 8}
    full = {name: np.full(N_SPLITS, size) for name, size in sizes.items()}
    return {"repeat": number, "fold": np.zeros_like(number), **full}


def facts_of(tree: xr.DataTree) -> Facts:
    """Return facts of a tree in memory."""
    path = Path("results") / "ring"
    return Facts(tree, SweepStatus("ring", path, counts={}, by_node={}, failed=(), claim=None))


def study_of(tree: xr.DataTree) -> ScalingStudy:
    """Return the study of a tree in memory."""
    facts = facts_of(tree)
    return ScalingStudy.of(facts, facts.growths)


NAN = math.nan
NOTHING = Interval(NAN, NAN, NAN)


def around(mean: float, half: float = 0.02) -> Interval:
    """Return a mean and its interval."""
    return Interval(mean, mean - half, mean + half)


def share(level: str, name: str | float, weight: float, decision: float, rank: int = 1) -> Share:
    """Return a share of three kernels that half of the splits select."""
    return Share(
        level, name, 3, rank, around(decision), around(weight), around(0.05), around(0.5), 0.1, 0.04
    )


def explanation(**changes: Any) -> Explanation:
    """Return an explanation; fields as asked for."""
    stable = Interval(0.8, 0.76, 0.84)
    fields: dict[str, Any] = {
        "dataset": "heart",
        "bank": "xu2008",
        "method": "level",
        "task": "classification",
        "metric": METRICS["error"],
        "setting": {"C": [1.0, 10.0, 1.0]},
        "validated": True,
        "n_splits": 6,
        "n_kernels": 1000,
        "selected": 12.5,
        "always": 4,
        "stability": {"kernel": Interval(0.3, 0.2, 0.38), "feature": stable},
        "shares": (
            share("view", "clinic", 0.2, 0.6),
            share("view", "rna", 0.8, 0.4, rank=2),
            share("feature", "a name of a feature that is very long", 0.4, 0.7),
            share("feature", "age", 0.6, 0.3, rank=2),
            share("kernel", "gaussian(1)[age]", 0.4, 0.3),
        ),
        "no_decision": "",
        "normalised": True,
        "n_permutations": 0,
    }
    return Explanation(**(fields | changes))
