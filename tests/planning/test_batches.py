"""Division of runs into batches, and of a batch into shares."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mkldist.planning.planner import divided, shares_of, split_groups, without
from tests.planning.plans import dataset, grid, plan_of


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
