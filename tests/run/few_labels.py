"""Small sweeps, for example with few labels, done task by task in this process."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.data.dataset import Dataset, Split
from mkldist.planning.model import Plan
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.results.journal import RunRecord
from mkldist.run.bank_refs import cached_inputs, laplacian
from mkldist.run.record_queue import unpacked
from mkldist.run.sweep_setup import BankKey, bank_refs
from mkldist.run.tasks import BatchSettings, BatchTask, BuildTask, build, solve_batch
from mkldist.spec.model import SweepSpec

WIDTHS = (0.3, 1.0, 3.0)
SWEEP = """
name = "few"
tol = 1e-8
[[datasets]]
name = "moons"
{source}
[preprocessing]
fit = "{fit}"
[splits]
{splits}
{graph}
[[banks]]
name = "one"
normalisation = {normalisation}
backend = "memory"
[[banks.kernels]]
function = "gaussian"
widths = [0.3, 1.0, 3.0]
[outputs]
predictions = true
coefficients = true
keep_banks = true
"""
METHODS = """
[[methods]]
name = "uniform"
C = [1.0, 10.0]
[[methods]]
name = "laprls"
gamma_a = 0.01
gamma_i = 0.1
[[methods]]
name = "lapsvm"
gamma_a = 0.01
gamma_i = [0.0, 0.1]
[[methods]]
name = "lapmkl"
gamma_a = 0.01
gamma_i = 0.1
[[methods]]
name = "rls"
gamma_a = 0.01
"""


def text(methods: str = METHODS, **changes: str) -> str:
    settings = {
        "source": 'source = "two_moons"\noptions = { n = 70, noise = 0.2 }',
        "fit": "train",
        "splits": 'kind = "semi-supervised"\nlabelled_per_class = 5\ntest_fraction = 0.2\n'
        "repeats = 2",
        "graph": "[graph]\nneighbours = 5" if '"lap' in methods else "",
        "normalisation": '"trace"',
    }
    return SWEEP.format(**settings | changes) + methods


@dataclass(frozen=True, eq=False)
class Done:
    """A sweep that was done."""

    plan: Plan
    dataset: Dataset
    splits: tuple[Split, ...]
    records: dict[tuple[str, int, str], RunRecord]
    passes: int


def do(toml: str, folder: Path) -> Done:
    """Do a sweep, given as the text of its file; return records by method, split and parameters.

    It reads its own files, whatever this process has kept of former ones.
    """
    cached_inputs.cache_clear()
    laplacian.cache_clear()
    spec = SweepSpec.model_validate(tomllib.loads(toml))
    resolved = resolve(spec, (), folder)
    plan = make_plan(spec, resolved.facts, resolved.banks, resolved.grids, 1, None)
    refs = bank_refs(
        plan, resolved, {b.id for b in plan.banks}, str(folder / "banks"), folder / "snapshots"
    )
    settings = BatchSettings(spec.execution, predictions=True, coefficients=True)
    passes, records = 0, dict[str, RunRecord]()
    for batch in plan.batches:
        ref = refs[BankKey.of(batch.runs[0])]
        if missing := tuple(ref.store().missing()):
            build(BuildTask(ref, missing))
        receipt = solve_batch(BatchTask(ref, batch.runs, settings))
        passes += receipt.passes
        records |= {record.id: record for record in map(unpacked, receipt.records)}
    found: dict[tuple[str, int, str], RunRecord] = {}
    for run in plan.runs:
        record = records[run.id]
        assert not record.error, record.error
        varying = [run.params[name] for name in ("C", "gamma_i") if name in run.params]
        found[run.key, run.split, "".join(map(str, varying))] = record
    [(dataset, splits)] = resolved.datasets.values()
    return Done(plan, dataset, splits, found, passes)


def zscored(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return (x - x[rows].mean(axis=0)) / x[rows].std(axis=0)


def grams(x: np.ndarray) -> np.ndarray:
    squares = ((x[:, None] - x) ** 2).sum(axis=2)
    return np.array([np.exp(-squares / (2 * width**2)) for width in WIDTHS])


def save_npz(path: Path, **arrays: Any) -> str:
    """Write a data set and return the line of a sweep file that names it."""
    np.savez(path, **arrays)
    return f'file = "{path}"'
