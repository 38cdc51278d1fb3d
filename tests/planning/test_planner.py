"""Plans from `facts`: pure, deterministic, complete, and stable where nothing changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkldist.bank.bank import TileLayout
from mkldist.planning.model import BankFacts, DatasetFacts
from mkldist.planning.planner import make_plan
from mkldist.spec.model import SweepSpec
from tests.planning.plans import grid


def spec_of(n_datasets=1, fit="train", **more):
    return SweepSpec.model_validate(
        {
            "name": "s",
            "datasets": [{"name": f"d{i}"} for i in range(n_datasets)],
            "banks": [{"family": "xu2008"}, {"name": "other", "family": "hao2012"}],
            "methods": [{"name": "level"}, {"name": "majority"}],
            "preprocessing": {"fit": fit},
            **more,
        }
    )


def facts_of(spec, n_splits=3, n_points=50, precomputed=False):
    datasets = {
        d.name: DatasetFacts(
            fingerprint=f"data {d.name}",
            n_points=n_points,
            split_fingerprints=tuple(f"split {i}" for i in range(n_splits)),
            known_fingerprints=tuple(f"train {i}" for i in range(n_splits)),
            known_sizes=(n_points // 2,) * n_splits,
            precomputed=precomputed,
        )
        for d in spec.datasets
    }
    banks = {
        (d.name, b.label): BankFacts(7, f"kernels {b.label}")
        for d in spec.datasets
        for b in spec.banks
    }
    return datasets, banks


def grids_on(datasets, values=(1.0, 10.0), tol=0.01):
    grids = {"level": grid("level", tol=tol, C=list(values)), "majority": grid("majority", C=2.5)}
    return dict.fromkeys(datasets, grids)


def plan_of(spec=None, n_splits=3, values=(1.0, 10.0), n_workers=2, memory=None, **facts):
    spec = spec or spec_of()
    datasets, banks = facts_of(spec, n_splits, **facts)
    return make_plan(spec, datasets, banks, grids_on(datasets, values), n_workers, memory)


@given(
    st.integers(1, 3),
    st.integers(1, 9),
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=4, unique=True),
    st.sampled_from(["train", "all"]),
    st.integers(1, 8),
)
def test_every_run_is_planned_exactly_once(n_datasets, n_splits, values, fit, n_workers):
    spec = spec_of(n_datasets, fit)
    plan = plan_of(spec, n_splits, values, n_workers)
    places = [
        (r.dataset, r.bank_label, r.split, r.key, r.params.get("C"), r.params["tol"])
        for r in plan.runs
    ]
    expected = {
        (f"d{i}", bank, split, key, C, 0.01)
        for i in range(n_datasets)
        for bank in ("xu2008", "other")
        for split in range(n_splits)
        for key, C in [*(("level", C) for C in values), ("majority", 2.5)]
    }
    assert len(places) == len(set(places))
    assert set(places) == expected
    assert len({r.id for r in plan.runs}) == len(plan.runs)
    assert {b.bank for b in plan.batches} == {b.id for b in plan.banks}
    for batch in plan.batches:
        assert {run.bank for run in batch.runs} == {batch.bank}
    assert plan == plan_of(spec, n_splits, values, n_workers)


def ids(plan):
    return {(r.dataset, r.bank_label, r.split, r.key, r.params.get("C")): r.id for r in plan.runs}


@given(st.permutations([0.1, 1.0, 10.0, 100.0]), st.integers(1, 8))
def test_ids_depend_neither_on_order_nor_on_workers(values, n_workers):
    assert ids(plan_of(values=values, n_workers=n_workers)) == ids(
        plan_of(values=sorted(values), n_workers=1)
    )
    spec = spec_of()
    turned = spec.model_copy(update={"banks": spec.banks[::-1], "name": "other"})
    assert ids(plan_of(turned)) == ids(plan_of(spec))


def test_a_changed_value_changes_only_its_runs():
    before, after = ids(plan_of(values=(1.0, 10.0))), ids(plan_of(values=(1.0, 20.0)))
    common = before.keys() & after.keys()
    assert {before[k] == after[k] for k in common} == {True}
    assert {k[-1] for k in before.keys() - after.keys()} == {10.0}
    assert {k[-1] for k in after.keys() - before.keys()} == {20.0}
    assert not {before[k] for k in before.keys() - common} & set(after.values())


def test_what_changes_a_run_changes_its_id():
    plain = ids(plan_of())
    variants = [
        plan_of(spec_of(execution="isolated")),
        plan_of(spec_of(preprocessing={"scale": "minmax"})),
        plan_of(spec_of(banks=[{"family": "xu2008", "normalisation": "cosine"}])),
        plan_of(spec_of(banks=[{"family": "xu2008", "normalisation": "trace"}])),
        plan_of(spec_of(banks=[{"family": "xu2008", "dtype": "float32"}])),
        plan_of(n_points=60),
    ]
    for variant in variants:
        assert not set(ids(variant).values()) & set(plain.values())


def test_normalisation_shares_the_bank_but_cosine_does_not():
    def bank(normalisation):
        spec = spec_of(banks=[{"family": "xu2008", "normalisation": normalisation}])
        return plan_of(spec).banks[0].id

    assert bank("trace") == bank("centre") == bank("none")
    assert bank("cosine") != bank("trace")


def test_preprocessing_fitted_per_split_needs_a_bank_per_split_and_globally_one():
    per_split, once = plan_of(spec_of(fit="train")), plan_of(spec_of(fit="all"))
    assert [b.split for b in per_split.banks] == [0, 1, 2, 0, 1, 2]
    assert {b.n_points for b in per_split.banks} == {25}
    assert [b.split for b in once.banks] == [None, None]
    assert {b.n_points for b in once.banks} == {50}
    precomputed = plan_of(spec_of(fit="train"), precomputed=True)
    assert [b.split for b in precomputed.banks] == [None, None]


@pytest.mark.parametrize("fit", ["train", "all"])
def test_factors_are_of_the_training_rows_of_each_split_and_shared_by_all_limits(fit):
    def factors(seed=0, **more):
        banks = [{"family": "xu2008", "backend": "factors", **more}]
        return plan_of(spec_of(fit=fit, banks=banks, seed=seed), n_points=1000)

    plan = factors()
    assert [b.split for b in plan.banks] == [0, 1, 2]
    assert {(b.dtype, b.is_factored, b.stored) for b in plan.banks} == {("float64", True, True)}
    assert {b.n_bytes for b in plan.banks} == {7 * 100 * 500 * 8}
    assert plan.bank_bytes == 3 * 7 * (100 * 501 * 8 + 4 * 8 + 4)
    assert {b.n_bytes for b in factors(rank=30).banks} == {7 * 30 * 500 * 8}
    stores = [{bank.id for bank in one.banks} for one in (plan, factors(rank=30), factors(seed=1))]
    assert stores[0] == stores[1]
    assert not stores[0] & stores[2]
    ids = [{run.id for run in one.runs} for one in (plan, factors(rank=30), factors(tolerance=0.1))]
    assert not ids[0] & ids[1] | ids[0] & ids[2] | ids[1] & ids[2]


def test_factors_in_single_precision_take_half():
    def bank(**more):
        spec = spec_of(banks=[{"family": "xu2008", "backend": "factors", **more}])
        return plan_of(spec, n_points=1000).banks[0]

    single, double = bank(dtype="float32"), bank()
    assert (single.dtype, double.dtype) == ("float32", "float64")
    assert 2 * single.n_bytes == double.n_bytes == 7 * 100 * 500 * 8
    assert single.stored_bytes == 7 * (100 * 501 * 4 + 4 * 4 + 4)
    assert single.id != double.id


def test_factors_are_stored_in_double_precision_however_large():
    spec = spec_of(banks=[{"family": "xu2008", "backend": "factors"}])
    [bank, *_] = plan_of(spec, n_points=10**6).banks
    assert bank.n_bytes == 7 * 100 * 500_000 * 8
    assert (bank.dtype, bank.stored_bytes) == ("float64", 7 * (100 * 500_001 * 8 + 4 * 8 + 4))


@given(st.integers(1, 30), st.integers(1, 8))
def test_a_shared_bank_is_divided_so_that_workers_stay_busy(n_splits, n_workers):
    plan = plan_of(spec_of(fit="all"), n_splits, n_workers=n_workers)
    for bank in plan.banks:
        batches = [b for b in plan.batches if b.bank == bank.id]
        assert min(n_splits, n_workers) <= len(batches) <= 2 * n_workers
        sizes = [len({run.split for run in b.runs}) for b in batches]
        assert max(sizes) - min(sizes) <= 1
        assert bank.backend == ("mmap" if len(batches) > 1 else "memory")


def test_all_splits_of_a_sharded_bank_share_their_passes():
    spec = spec_of(fit="all", banks=[{"family": "xu2008", "backend": "sharded"}])
    plan = plan_of(spec, 7, n_workers=4)
    [batch] = plan.batches
    assert {run.split for run in batch.runs} == set(range(7))
    assert (plan.banks[0].sharded, plan.banks[0].stored, plan.bank_bytes) == (True, False, 0)


def test_bytes_dtype_and_backend_follow_the_sizes():
    spec = spec_of(banks=[{"family": "xu2008"}])
    datasets, _ = facts_of(spec, n_points=2000)
    entries = TileLayout.for_points(1000).n_entries

    def bank(n_kernels, tol=0.01, memory=None, spec=spec):
        banks = {("d0", "xu2008"): BankFacts(n_kernels, "k")}
        return make_plan(spec, datasets, banks, grids_on(datasets, tol=tol), 2, memory).banks[0]

    small, large = bank(10), bank(1000)
    assert (small.dtype, small.backend, small.n_bytes) == ("float64", "memory", 80 * entries)
    assert (large.dtype, large.backend, large.n_bytes) == ("float32", "stream", 4000 * entries)
    assert bank(1000, tol=1e-8).dtype == "float64"
    assert bank(10, memory=60 * entries).backend == "stream"
    asked = spec_of(banks=[{"family": "xu2008", "dtype": "float64", "backend": "mmap"}])
    assert (bank(1000, spec=asked).dtype, bank(1000, spec=asked).backend) == ("float64", "mmap")


def test_memory_and_passes_are_estimated():
    shared = plan_of(spec_of(), values=(1.0, 2.0, 3.0))
    isolated = plan_of(spec_of(execution="isolated"), values=(1.0, 2.0, 3.0))
    assert isolated.estimated_passes > 2 * shared.estimated_passes > 0
    assert shared.memory_per_worker >= max(b.n_bytes for b in shared.banks)
    assert shared.bank_bytes == sum(b.n_bytes for b in shared.banks)


def test_a_method_runs_on_the_banks_that_it_names():
    methods = [{"name": "level", "banks": ["other"]}, {"name": "majority"}]
    plan = plan_of(spec_of(methods=methods))
    every = ids(plan_of())
    assert ids(plan) == {
        place: run for place, run in every.items() if "level" not in place or "other" in place
    }
