"""Plans from facts: pure, complete, with stable ids; their runs, batches and paths."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkldist.bank.bank import TileLayout
from mkldist.planning.model import BankFacts, DatasetFacts, Proposal
from mkldist.planning.planner import divided, make_plan, shares_of, split_groups, without
from mkldist.spec.datasets import GraphTable
from mkldist.spec.model import SweepSpec
from tests.planning.plans import dataset, grid, ids, plan_of


@given(st.lists(st.integers(0, 99), min_size=1, max_size=40, unique=True), st.integers(0, 9))
def test_splits_are_divided_in_order_and_evenly(splits, n_threads):
    groups = split_groups(splits, n_threads)
    assert [split for group in groups for split in group] == splits
    assert len(groups) == min(len(splits), 2 * max(1, n_threads))
    sizes = {len(group) for group in groups}
    assert max(sizes) - min(sizes) <= 1


def test_runs_of_a_split_stay_together_and_banks_apart():
    banks = [
        {"name": "plain", "family": "xu2008", "normalisation": "none"},
        {"name": "scaled", "family": "xu2008", "normalisation": "trace"},
    ]
    data = {"a": dataset("a", n_splits=5), "b": dataset("b", n_splits=2)}
    plan = plan_of(
        data, {"level": grid("level", C=[1, 2])}, banks=banks, preprocessing={"fit": "all"}
    )
    batches = divided(plan.runs, 1)
    assert sorted(run.id for batch in batches for run in batch) == sorted(r.id for r in plan.runs)
    places = [{(run.dataset, run.bank_label) for run in batch} for batch in batches]
    assert [len(place) for place in places] == [1] * len(batches)
    assert len(batches) == 2 * (2 + 2)
    for batch in batches:
        splits = [run.split for run in batch]
        assert all(splits.count(split) == 2 for split in splits)


def test_shares_keep_paths_whole():
    grids = {"level": grid("level", C=[1, 2, 4], near=[0.7, 0.8]), "uniform": grid("uniform")}
    plan = plan_of({"a": dataset("a", n_splits=1)}, grids, execution="path")
    [batch] = plan.batches
    for n_shares in (1, 2, 3, 8):
        shares = shares_of(batch.runs, n_shares)
        assert len(shares) == min(n_shares, 3)  # two paths of level, and one run of uniform
        assert sorted(run.id for share in shares for run in share) == sorted(
            run.id for run in batch.runs
        )
        homes = {run.chain: {i for i, s in enumerate(shares) if run in s} for run in batch.runs}
        assert all(len(home) == 1 for home in homes.values())


def test_batches_lose_the_runs_that_are_left_out_and_vanish_without_any():
    plan = plan_of({"a": dataset("a")}, {"level": grid("level", C=[1, 10])})
    first, *others = plan.batches
    kept = first.runs[-1]
    gone = {run.id for run in plan.runs} - {kept.id}
    assert [batch.runs for batch in without(plan.batches, gone)] == [(kept,)]
    assert without(plan.batches, ()) == plan.batches
    assert without(others, gone) == ()


def test_ids_are_those_of_stored_results():
    """Records and banks of earlier versions are found again only under these ids."""
    plan = plan_of(
        {"a": dataset("a", 60, 1)},
        {"level": grid("level", C=[1])},
        preprocessing={"fit": "all"},
        banks=[{"family": "xu2008", "normalisation": "trace"}],
    )
    assert plan.id == "a29891d6823dca7a44f9"
    assert [bank.id for bank in plan.banks] == ["b42f1cb11cb8f368a677"]
    assert [batch.id for batch in plan.batches] == ["ebcbee4149ac15acbb53"]
    assert [run.id for run in plan.runs] == ["48abf7e470ec3e53f181"]


@pytest.mark.parametrize(
    ("change", "new_runs", "new_banks"),
    [
        ({"name": "other"}, False, False),
        ({"description": "words"}, False, False),
        ({"outputs": {"predictions": True}}, False, False),
        ({"memory": "8GiB"}, False, False),
        ({"execution": "isolated"}, True, False),
        ({"execution": "path"}, True, False),
        ({"preprocessing": {"scale": "minmax"}}, True, True),
        ({"preprocessing": {"fit": "all"}}, True, True),
        ({"banks": [{"family": "xu2008", "normalisation": "none"}]}, True, False),
        ({"banks": [{"family": "xu2008", "normalisation": "cosine"}]}, True, True),
        ({"banks": [{"family": "xu2008", "dtype": "float32"}]}, True, True),
        ({"banks": [{"family": "xu2008", "backend": "stream"}]}, False, False),
        ({"banks": [{"name": "renamed", "family": "xu2008"}]}, False, False),
    ],
)
def test_a_run_is_new_if_and_only_if_its_outcome_may_change(change, new_runs, new_banks):
    data, grids = {"a": dataset("a")}, {"level": grid("level", C=1)}
    before, after = plan_of(data, grids), plan_of(data, grids, **change)
    assert bool(ids(before) - ids(after)) is new_runs
    assert not new_runs or not ids(before) & ids(after)
    assert ({b.id for b in before.banks} != {b.id for b in after.banks}) is new_banks


@pytest.mark.parametrize(
    ("facts", "new_banks"),
    [
        ({"fingerprint": "other data"}, True),
        ({"known_fingerprints": ("x", "y", "z"), "split_fingerprints": ("x", "y", "z")}, True),
        ({"split_fingerprints": ("x", "y", "z")}, False),
    ],
)
def test_other_data_or_splits_are_other_runs(facts, new_banks):
    grids = {"level": grid("level", C=1)}
    before = plan_of({"a": dataset("a")}, grids)
    after = plan_of({"a": replace(dataset("a"), **facts)}, grids)
    assert not ids(before) & ids(after)
    assert bool({b.id for b in before.banks} - {b.id for b in after.banks}) is new_banks


def test_runs_alike_in_all_but_their_place_have_ids_of_their_own():
    # Small data draw the same split more than once.
    same = replace(dataset("a"), split_fingerprints=("s",) * 3, known_fingerprints=("t",) * 3)
    grids = {"one": grid("level", C=1), "two": grid("level", C=1)}
    plan = plan_of({"first": same, "second": same}, grids)
    assert len(plan.runs) == len(ids(plan)) == 12
    assert len({batch.id for batch in plan.batches}) == len(plan.batches)
    turned = plan_of({"second": same, "first": same}, dict(reversed(grids.items())))
    places = {run.id: run.place for run in plan.runs}
    assert places == {run.id: run.place for run in turned.runs}
    assert ids(plan_of({"first": same}, {"one": grids["one"]})) <= ids(plan)


def test_a_new_name_makes_no_new_runs():
    before = plan_of({"a": dataset("a")}, {"level": grid("level", C=1)})
    after = plan_of({"b": dataset("a")}, {"renamed": grid("level", C=1)})
    assert ids(before) == ids(after)


def test_a_graph_makes_new_runs_of_methods_that_need_one_and_of_no_other():
    plain, joined = dataset("a"), replace(dataset("a"), graph=GraphTable())
    grids = {"lapsvm": grid("lapsvm"), "level": grid("level", C=1)}
    before, after = plan_of({"a": plain}, grids), plan_of({"a": joined}, grids)
    kept = ids(before) & ids(after)
    assert {run.method for run in after.runs if run.id in kept} == {"level"}
    assert {run.method for run in after.runs if run.id not in kept} == {"lapsvm"}
    assert {b.id for b in before.banks} == {b.id for b in after.banks}
    other = replace(joined, graph=GraphTable(neighbours=3))
    assert ids(plan_of({"a": other}, grids)) & ids(after) == kept


def test_a_data_set_may_have_preprocessing_of_its_own():
    facts = {name: dataset(name) for name in ("a", "b")}
    own = [{"name": "a"}, {"name": "b", "preprocessing": {"scale": "minmax", "fit": "all"}}]
    plan = plan_of(facts, {"level": grid("level", C=1.0)}, datasets=own)
    found = {bank.dataset: bank.preprocessing for bank in plan.banks}
    assert (found["a"].scale, found["a"].fit) == ("zscore", "train")
    assert (found["b"].scale, found["b"].fit) == ("minmax", "all")
    assert [sum(bank.dataset == name for bank in plan.banks) for name in "ab"] == [3, 1]
    alike = plan_of(facts, {"level": grid("level", C=1.0)}, datasets=[{"name": "a"}, {"name": "b"}])
    of_a = {run.id for run in plan.runs if run.dataset == "a"}
    assert of_a == {run.id for run in alike.runs if run.dataset == "a"}
    of_b = {run.id for run in plan.runs if run.dataset == "b"}
    assert not of_b & {run.id for run in alike.runs}


DATA = {"a": dataset("a", n_splits=1)}


def test_runs_of_a_path_differ_in_its_parameter_alone_and_have_an_order():
    plan = plan_of(DATA, {"level": grid("level", C=[10, 1], near=[0.7, 0.8])}, execution="path")
    chains = {}
    for run in sorted(plan.runs, key=lambda run: run.order):
        chains.setdefault(run.chain, []).append((run.params["near"], run.params["C"]))
    assert sorted(chains.values()) == [[(0.7, 1.0), (0.7, 10.0)], [(0.8, 1.0), (0.8, 10.0)]]


def test_without_a_path_every_run_is_a_chain_of_its_own():
    grids = {"level": grid("level", C=[1, 10]), "uniform": grid("uniform", C=[1, 10])}
    shared, path = plan_of(DATA, grids), plan_of(DATA, grids, execution="path")
    assert {run.on_path for run in shared.runs} == {False}
    assert len({run.chain for run in shared.runs}) == 4
    assert {run.order for run in shared.runs} == {0.0}
    assert len({run.chain for run in path.runs}) == 1 + 2


def test_a_run_at_another_point_differs_in_its_settings_alone():
    [run] = plan_of(DATA, {"level": grid("level", C=[1.0])}).runs
    point = Proposal({"C": 2.0}, {"trial": 1})
    expected = {"params": {"C": 2.0}, "at": {"trial": 1}}
    assert run.at_other_point("other", point) == replace(run, id="other", **expected)


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


def planned(spec=None, n_splits=3, values=(1.0, 10.0), n_workers=2, memory=None, **facts):
    spec = spec or spec_of()
    datasets, banks = facts_of(spec, n_splits, **facts)
    return make_plan(spec, datasets, banks, grids_on(datasets, values), n_workers, memory)


@pytest.mark.slow
@given(
    st.integers(1, 3),
    st.integers(1, 9),
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=4, unique=True),
    st.sampled_from(["train", "all"]),
    st.integers(1, 8),
)
def test_every_run_is_planned_exactly_once(n_datasets, n_splits, values, fit, n_workers):
    spec = spec_of(n_datasets, fit)
    plan = planned(spec, n_splits, values, n_workers)
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
    assert plan == planned(spec, n_splits, values, n_workers)


def ids_by_place(plan):
    return {(r.dataset, r.bank_label, r.split, r.key, r.params.get("C")): r.id for r in plan.runs}


@pytest.mark.slow
@given(st.permutations([0.1, 1.0, 10.0, 100.0]), st.integers(1, 8))
def test_ids_depend_neither_on_order_nor_on_workers(values, n_workers):
    assert ids_by_place(planned(values=values, n_workers=n_workers)) == ids_by_place(
        planned(values=sorted(values), n_workers=1)
    )
    spec = spec_of()
    turned = spec.model_copy(update={"banks": spec.banks[::-1], "name": "other"})
    assert ids_by_place(planned(turned)) == ids_by_place(planned(spec))


def test_a_changed_value_changes_only_its_runs():
    before, after = (
        ids_by_place(planned(values=(1.0, 10.0))),
        ids_by_place(planned(values=(1.0, 20.0))),
    )
    common = before.keys() & after.keys()
    assert {before[k] == after[k] for k in common} == {True}
    assert {k[-1] for k in before.keys() - after.keys()} == {10.0}
    assert {k[-1] for k in after.keys() - before.keys()} == {20.0}
    assert not {before[k] for k in before.keys() - common} & set(after.values())


def test_preprocessing_fitted_per_split_needs_a_bank_per_split_and_globally_one():
    per_split, once = (planned(spec_of(fit="train")), planned(spec_of(fit="all")))
    assert [b.split for b in per_split.banks] == [0, 1, 2, 0, 1, 2]
    assert {b.n_points for b in per_split.banks} == {25}
    assert [b.split for b in once.banks] == [None, None]
    assert {b.n_points for b in once.banks} == {50}
    precomputed = planned(spec_of(fit="train"), precomputed=True)
    assert [b.split for b in precomputed.banks] == [None, None]


@pytest.mark.parametrize("fit", ["train", "all"])
def test_factors_are_of_the_training_rows_of_each_split_and_shared_by_all_limits(fit):
    def factors(seed=0, **more):
        banks = [{"family": "xu2008", "backend": "factors", **more}]
        return planned(spec_of(fit=fit, banks=banks, seed=seed), n_points=1000)

    plan = factors()
    assert [b.split for b in plan.banks] == [0, 1, 2]
    assert {(b.dtype, b.is_factored, b.stored) for b in plan.banks} == {("float64", True, True)}
    assert {b.n_bytes for b in plan.banks} == {7 * 100 * 500 * 8}
    assert plan.bank_bytes == 3 * 7 * (100 * 501 * 8 + 6 * 8 + 4)
    assert {b.n_bytes for b in factors(rank=30).banks} == {7 * 30 * 500 * 8}
    stores = [{bank.id for bank in one.banks} for one in (plan, factors(rank=30), factors(seed=1))]
    assert stores[0] == stores[1]
    assert not stores[0] & stores[2]
    ids_by_place = [
        {run.id for run in one.runs} for one in (plan, factors(rank=30), factors(tolerance=0.1))
    ]
    assert (
        not ids_by_place[0] & ids_by_place[1]
        | ids_by_place[0] & ids_by_place[2]
        | ids_by_place[1] & ids_by_place[2]
    )


def test_factors_in_single_precision_take_half():
    def bank(**more):
        spec = spec_of(banks=[{"family": "xu2008", "backend": "factors", **more}])
        return planned(spec, n_points=1000).banks[0]

    single, double = bank(dtype="float32"), bank()
    assert (single.dtype, double.dtype) == ("float32", "float64")
    assert 2 * single.n_bytes == double.n_bytes == 7 * 100 * 500 * 8
    assert single.stored_bytes == 7 * (100 * 501 * 4 + 6 * 4 + 4)
    assert single.id != double.id


@pytest.mark.slow
@given(st.integers(1, 30), st.integers(1, 8))
def test_a_shared_bank_is_divided_so_that_workers_stay_busy(n_splits, n_workers):
    plan = planned(spec_of(fit="all"), n_splits, n_workers=n_workers)
    for bank in plan.banks:
        batches = [b for b in plan.batches if b.bank == bank.id]
        assert min(n_splits, n_workers) <= len(batches) <= 2 * n_workers
        sizes = [len({run.split for run in b.runs}) for b in batches]
        assert max(sizes) - min(sizes) <= 1
        assert bank.backend == ("mmap" if len(batches) > 1 else "memory")


def test_all_splits_of_a_sharded_bank_share_their_passes():
    spec = spec_of(fit="all", banks=[{"family": "xu2008", "backend": "sharded"}])
    plan = planned(spec, 7, n_workers=4)
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


def test_a_method_runs_on_the_banks_that_it_names():
    methods = [{"name": "level", "banks": ["other"]}, {"name": "majority"}]
    plan = planned(spec_of(methods=methods))
    every = ids_by_place(planned())
    assert ids_by_place(plan) == {
        place: run for place, run in every.items() if "level" not in place or "other" in place
    }
