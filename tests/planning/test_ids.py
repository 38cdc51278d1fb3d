"""Ids: a run has a new one if and only if its outcome may change, and no two share one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mkldist.spec.datasets import GraphTable
from tests.planning.plans import dataset, grid, ids, plan_of


def test_ids_are_those_of_stored_results():
    """Records and banks of earlier versions are found again only under these ids."""
    plan = plan_of(
        {"a": dataset("a", 60, 1)},
        {"level": grid("level", C=[1])},
        preprocessing={"fit": "all"},
        banks=[{"family": "xu2008", "normalisation": "trace"}],
    )
    assert plan.id == "e773e9ff9da99beba77e"
    assert [bank.id for bank in plan.banks] == ["b42f1cb11cb8f368a677"]
    assert [batch.id for batch in plan.batches] == ["adc53fcf3476e3b9d5d7"]
    assert [run.id for run in plan.runs] == ["289337ada4f20a421456"]


def test_ids_of_graphs_classes_selections_and_scaled_targets_are_those_of_stored_results():
    facts = replace(
        dataset("a", 60, 1),
        graph=GraphTable(neighbours=3),
        n_problems=3,
        inner_folds=(2,),
        target="zscore",
    )
    grids = {
        "level": grid("level", C=[1, 10]),
        "lapsvm": grid("lapsvm", gamma_a=0.5),
        "shared": grid("level", C=2.0),
    }
    plan = plan_of(
        {"a": facts},
        grids,
        selection={"folds": 2},
        seed=3,
        execution="path",
        banks=[{"family": "xu2008", "normalisation": ["cosine", "trace"]}],
        methods=[
            {"name": "level"},
            {"name": "lapsvm"},
            {"name": "level", "label": "shared", "kernel_weights": "shared"},
        ],
    )
    assert plan.id == "48fa02820b5846303d3a"
    assert [bank.id for bank in plan.banks] == ["895bd3581eabd90ace94"]
    assert [batch.id for batch in plan.batches] == ["bc0b2eeaa8e9fd10fcee"]
    assert [(run.key, run.id) for run in plan.runs] == [
        ("level", "f82650db563c53221395"),
        ("level", "4f9b5b4867c40b87fd4f"),
        ("lapsvm", "e18b224379e0bee2c063"),
        ("shared", "ec3515edb70761b14915"),
    ]


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
