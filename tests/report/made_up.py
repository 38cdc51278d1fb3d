"""Facts of a sweep that was made up, with failed, waiting and unconverged runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from mkldist.report.facts import Facts
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
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
    store = Journal(folder / "records.journal")
    for record in made:
        store.append([record])
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
