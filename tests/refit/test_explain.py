"""Explanations of a small sweep: the method, its shares, and the loss against uniform weights."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from mkldist.analysis.pairing import Results
from mkldist.errors import InputError, SpecError
from mkldist.fit.select import explain
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.tree import prepare
from tests.refit.sweeps import entry, swept
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

METHODS = (
    entry("level", C=[1.0, 100.0])
    + entry("silp", C=[1e-3])
    + entry("uniform", C=[1.0, 100.0])
    + entry("majority")
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("explained"), METHODS)


@pytest.mark.slow
def test_the_method_of_least_mean_loss_that_chooses_kernels_is_explained(results):
    (found,) = explain(results)
    means = {}
    for node in Results.of(results).nodes():
        dims = [dim for dim in node.ds.test_error.dims if dim != "split"]
        means[node.name] = float(node.ds.test_error.mean("split").min(dims))
    assert found.method == min(("level", "silp"), key=lambda name: means[name])
    assert found.n_candidates == 2
    assert found.n_settings == {"level": 2, "silp": 1}[found.method]
    pair = found.against_uniform
    assert pair is not None
    assert (pair.first, pair.second) == (found.method, "uniform")
    assert pair.losses.first == pytest.approx(means[found.method])
    assert pair.losses.second == pytest.approx(means["uniform"])
    assert (found.n_splits, found.no_decision) == (2, "")
    for grouping in found.groupings:
        if grouping.coordinate != "width":  # polynomial kernels have none
            assert sum(share.weight for share in grouping.shares) == pytest.approx(1.0)
            assert sum(share.decision for share in grouping.shares) == pytest.approx(1.0)


@pytest.mark.slow
def test_uniform_weights_are_explained_if_asked_for(results):
    (found,) = explain(results, method="uniform")
    assert (found.selected, found.always) == (found.n_kernels, found.n_kernels)
    assert found.against_uniform is None
    assert found.n_candidates == 1
    features = found.grouping("features")
    assert features is not None
    sizes = {share.name: share.n_kernels / found.n_kernels for share in features.shares}
    assert {share.name: share.weight for share in features.shares} == pytest.approx(sizes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"method": "levl"}, "--method levl: found nothing of this name.*Did you mean 'level'"),
        ({"dataset": "other"}, "--dataset other: found nothing of this name; expected mine"),
        ({"method": "majority"}, "found no kernel weights of majority; expected a method that has"),
    ],
    ids=["method", "dataset", "majority"],
)
def test_names_without_weights_are_refused(results, asked, said):
    with pytest.raises(InputError, match=said):
        explain(results, **asked)


@pytest.mark.slow
def test_weights_are_explained_without_records(results, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "records")
    (found,) = explain(tmp_path / "copy")
    assert found.no_decision == "records of its runs are missing"
    assert found.kernels[0].weight > 0.0


@pytest.mark.parametrize(
    ("method", "complete", "said"),
    [
        ("uniform", True, "only methods that learn no kernel weights: uniform; expected a method "
         "that learns them. Add one to the sweep and run it again, or name one of these by "
         "--method."),
        ("level", False, "no complete run of level; expected at least one to explain. 'mkldist "
         "status {folder}' says which runs failed and which are still to do."),
    ],
)  # fmt: skip
def test_results_with_nothing_to_explain_say_what_they_lack(tmp_path, method, complete, said):
    plan = made_up_plan({method: {}})
    store = RecordStore(tmp_path / "records")
    for run in plan.runs:
        store.write(made_up_record(run) if complete else RunRecord.failed(run, "no memory"))
    prepare(tmp_path / "results.zarr", plan, made_up_facts(plan, {method: {}}), store)
    with pytest.raises(InputError) as refused:
        explain(tmp_path)
    assert str(refused.value) == f"{tmp_path}: found {said.format(folder=tmp_path)}"


def test_a_method_is_not_explained_for_the_splits_that_others_lack(tmp_path):
    grids = {"level": {}, "silp": {}}
    plan = made_up_plan(grids)
    store = RecordStore(tmp_path / "records")
    errors = {"level": (0.1, 0.3, 0.3), "silp": (0.2, None, None)}
    for run in plan.runs:
        error = errors[run.key][run.split]
        record = RunRecord.failed(run, "no memory")
        if error is not None:
            record = replace(made_up_record(run), scores={"test_error": error})
        store.write(record)
    prepare(tmp_path / "results.zarr", plan, made_up_facts(plan, grids), store)
    (found,) = explain(tmp_path)
    assert (found.method, found.n_candidates) == ("level", 1)


@pytest.mark.parametrize("path", [5, None, ["results/mine"], np.eye(3)])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(SpecError, match=r"^path: found .*; expected a path$"):
        explain(path)
