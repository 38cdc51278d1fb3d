"""Made-up data sets, sweeps and plans for the tests of planning."""

import tomllib
from typing import Any

import numpy as np

from mkldist.data.dataset import Dataset, Split
from mkldist.methods.registry import METHODS
from mkldist.planning.model import BankFacts, DatasetFacts, Plan
from mkldist.planning.planner import make_plan
from mkldist.solvers.grids import MethodGrid, expand
from mkldist.spec.model import SweepSpec


def grid(method: str, **settings: Any) -> MethodGrid:
    """Return a method of the registry at all of its settings, as a sweep resolves it."""
    return expand(METHODS[method], method, settings, None)


def dataset(name: str, n_points: int = 60, n_splits: int = 3) -> DatasetFacts:
    """Return a data set that is divided into halves."""
    return DatasetFacts(
        fingerprint=f"data of {name}",
        n_points=n_points,
        split_fingerprints=tuple(f"{name} split {i}" for i in range(n_splits)),
        known_fingerprints=tuple(f"{name} train {i}" for i in range(n_splits)),
        known_sizes=(n_points // 2,) * n_splits,
    )


def plan_of(
    datasets: dict[str, DatasetFacts],
    grids: dict[str, MethodGrid],
    /,
    *,
    n_kernels: int = 40,
    n_workers: int = 2,
    memory_limit: int | None = None,
    **words: Any,
) -> Plan:
    """Return a plan on the bank xu2008; `words` replace those of the sweep file."""
    spec = SweepSpec.model_validate(
        {
            "name": "s",
            "datasets": [{"name": name} for name in datasets],
            "banks": [{"family": "xu2008"}],
            "methods": [{"name": g.method.name, "label": key} for key, g in grids.items()],
        }
        | words
    )
    banks = {
        (name, bank.label): BankFacts(n_kernels, f"kernels of {bank.family}")
        for name in datasets
        for bank in spec.banks
    }
    return make_plan(spec, datasets, banks, dict.fromkeys(datasets, grids), n_workers, memory_limit)


def ids(plan: Plan) -> set[str]:
    """Return the ids of a plan's runs."""
    return {run.id for run in plan.runs}


SWEEP = """
name = "s"
datasets = [{name = "a"}, {name = "b"}]
[[banks]]
family = "xu2008"
"""


def sweep(words: str) -> SweepSpec:
    """Return a sweep of two data sets and one bank, with further words at its end."""
    return SweepSpec.model_validate(tomllib.loads(SWEEP + words))


def labelled(y: list[float], **words: Any) -> Dataset:
    """Return a data set "a" of two features and classes "no" and "yes"; `words` replace these."""
    labels = np.array(y, dtype=np.float64)
    x = np.random.default_rng(0).normal(size=(len(labels), 2))
    return Dataset(**{"name": "a", "x": x, "y": labels, "classes": ("no", "yes")} | words)


def split(n_train: int, n_unlabelled: int = 0, n_test: int = 1) -> Split:
    """Return a split of as many rows, training rows first."""
    rows = np.arange(n_train + n_unlabelled + n_test)
    ends = n_train, n_train + n_unlabelled
    train, unlabelled, test = np.split(rows, ends)
    return Split(train, test, unlabelled)
