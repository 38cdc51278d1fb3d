"""Plans and records made up for the tests of results and analysis."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from mkldist.core.checksums import content_id
from mkldist.planning.model import BankPlan, BatchPlan, Plan, RunPlan
from mkldist.results.journal import RunRecord
from mkldist.results.layout import TreeFacts
from mkldist.results.schema import RunState
from mkldist.spec.model import SweepSpec

Grids = Mapping[str, Mapping[str, Sequence[Any]]]

GRIDS: Grids = {
    "level": {"C": [0.1, 1.0, 100.0]},
    "simplemkl": {"C": [1.0, 100.0], "variant": ["gradient", "newton"]},
    "uniform": {},
}


def made_up_plan(
    grids: Grids = GRIDS,
    *,
    datasets: Sequence[str] = ("heart",),
    banks: Sequence[str] = ("xu2008",),
    n_splits: int = 3,
    n_kernels: int = 7,
    n_points: int = 10,
    **outputs: Any,
) -> Plan:
    """Return a plan of every data set, bank, split, method and grid point."""
    spec = SweepSpec.model_validate(
        {
            "name": "made-up",
            "description": "A sweep of nothing.",
            "datasets": [{"name": name} for name in datasets],
            "banks": [{"name": name, "family": "xu2008"} for name in banks],
            "methods": [{"name": key} for key in grids],
            "outputs": outputs,
        }
    )
    bank_plans, batches = [], []
    for dataset, bank in product(datasets, spec.banks):
        bank_id = f"bank-{dataset}-{bank.label}"
        bank_plans.append(
            BankPlan(
                bank_id,
                dataset,
                bank,
                spec.preprocessing,
                None,
                0,
                n_points,
                n_kernels,
                "float64",
                "memory",
                8 * n_kernels * n_points**2,
            )
        )
        for split in range(n_splits):
            runs = tuple(
                _run(dataset, bank_id, bank.label, split, key, {**point, "tol": 0.01})
                for key, dims in grids.items()
                for point in (
                    dict(zip(dims, values, strict=True)) for values in product(*dims.values())
                )
            )
            batches.append(BatchPlan(f"{bank_id}-{split}", bank_id, runs))
    return Plan("plan", spec, tuple(bank_plans), tuple(batches), 2**20, 10)


def made_up_facts(plan: Plan, grids: Grids = GRIDS, *, n_points: int = 10) -> TreeFacts:
    """Return facts that fit :func:`made_up_plan`."""
    kernels = {
        (bank.dataset, bank.spec.label): {
            "kernel": np.array([f"gaussian({m})[all]" for m in range(bank.n_kernels)], object),
            "width": np.arange(1.0, bank.n_kernels + 1),
        }
        for bank in plan.banks
    }
    labels = np.where(np.arange(n_points) % 3, 1.0, -1.0)
    dims = {bank.dataset: grids for bank in plan.banks}
    kept = bool(plan.spec.outputs.predictions)
    return TreeFacts(dims, kernels, {bank.dataset: labels for bank in plan.banks}, kept)


def made_up_record(run: RunPlan, *, n_kernels: int = 7, n_points: int = 10) -> RunRecord:
    """Return a record whose numbers are all different, and depend on the run alone."""
    draw = np.random.default_rng(int(run.id[:12], 16))
    kernels = np.sort(draw.choice(n_kernels, size=min(3, n_kernels), replace=False))
    objective = float(draw.uniform(1, 100))
    gap = float(draw.uniform(0, 0.01))
    test_rows = np.sort(draw.choice(n_points, size=n_points // 2, replace=False))
    return RunRecord(
        id=run.id, dataset=run.dataset, bank=run.bank_label, split=run.split, method=run.method,
        key=run.key, params=dict(run.params), state=RunState.COMPLETE, n_kernels=n_kernels,
        kernels=kernels, weights=draw.dirichlet(np.ones(len(kernels))) + 1e-2,
        coefficients=draw.normal(size=n_points - len(test_rows)), bias=float(draw.normal()),
        objective=objective, dual_objective=objective * (1 - gap), gap=gap,
        stop_reason="converged",
        counters={"outer_iterations": int(draw.integers(1, 50)), "passes": 11},
        scores={"test_error": float(draw.uniform(0, 0.5)), "auc": float(draw.uniform(0.5, 1))},
        times={"wall_seconds": 9.0, "cpu_seconds": 0.5, "own_seconds": float(draw.uniform(0, 2)),
               "pass_seconds": float(draw.uniform(0, 2))},
        trace={"objective": draw.normal(size=5)}, extra={"margin": float(draw.uniform())},
        test_rows=test_rows, decision_values=draw.normal(size=len(test_rows)),
        provenance={"host": "somewhere", "versions": {"numpy": np.__version__}},
    )  # fmt: skip


def _run(
    dataset: str, bank: str, label: str, split: int, key: str, params: dict[str, Any]
) -> RunPlan:
    run_id = content_id(dataset=dataset, bank=bank, split=split, key=key, params=params)
    return RunPlan(run_id, dataset, bank, label, split, key, key, params)


def path_of(run, plan):
    parts = [run.dataset, run.bank_label, run.key]
    return "/".join(parts if len(plan.spec.banks) > 1 else (run.dataset, run.key))


def where(run, grids=GRIDS):
    return {"split": run.split, **{name: run.params[name] for name in grids[run.key]}}


def assert_holds(tree: xr.DataTree, plan, records: list[RunRecord]) -> None:
    """Compare every value of the tree with the record that it came from."""
    by_id = {record.id: record for record in records}
    nodes = {path_of(run, plan): None for run in plan.runs}
    loaded = {path: tree[path].to_dataset().load() for path in nodes}
    for run in plan.runs:
        cell = loaded[path_of(run, plan)].sel(where(run))
        assert cell.run_id.item() == run.id
        record = by_id.get(run.id)
        if record is None:
            assert cell.state.item() == "waiting"
            assert np.isnan(cell.gap)
            assert np.isnan(cell.kernel_weights).all()
            continue
        assert cell.state.item() == record.state
        assert cell.error.item() == record.error
        assert cell.stop_reason.item() == record.stop_reason
        for name in ("objective", "dual_objective", "gap", "bias"):
            np.testing.assert_equal(cell[name].item(), getattr(record, name))
        for given in (record.scores, record.times, record.counters, record.extra):
            for name, value in given.items():
                assert cell[name].item() == value
        expected = record.kernel_weights
        if record.state is RunState.FAILED:
            expected = np.full(cell.sizes["kernel"], np.nan)
        np.testing.assert_array_equal(cell.kernel_weights, expected)
