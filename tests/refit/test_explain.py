"""Explanations of a small sweep: the method, its shares, and the loss against uniform weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mkldist.analysis.pairing import Results
from mkldist.errors import InputError, SpecError
from mkldist.fit.explain import explain
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
from tests.refit.sweeps import entry, swept
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

METHODS = (
    entry("level", C=[1.0, 100.0])
    + entry("silp", C=[1e-3])
    + entry("uniform", C=[1.0, 100.0])
    + entry("majority")
)
SIZES = {"n_train": np.full(3, 80), "n_test": np.full(3, 20), "n_unlabelled": np.zeros(3, int)}
"""Those of three splits."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("explained"), METHODS)


@pytest.mark.slow
def test_the_method_of_least_mean_loss_is_explained(results):
    (found,) = explain(results)
    means = {}
    for node in Results.of(results).nodes():
        dims = [dim for dim in node.ds.test_error.dims if dim != "split"]
        means[node.name] = float(node.ds.test_error.mean("split").min(dims))
    assert found.method == min(("level", "silp", "uniform"), key=lambda name: means[name])
    assert found.n_candidates == 3


@pytest.mark.slow
def test_a_method_is_held_to_uniform_weights_and_its_shares_sum_to_one(results):
    (found,) = explain(results, method="level", permutations=2)
    assert (found.n_splits, found.no_decision, found.n_settings) == (2, "", 2)
    pair = found.against_uniform
    assert pair is not None
    assert (pair.first, pair.second) == ("level", "uniform")
    functions, features = found.of("function"), found.of("feature")
    for kind in ("weight", "decision"):
        assert sum(getattr(share, kind).mean for share in functions) == pytest.approx(1.0)
    assert sum(share.null for share in functions) == pytest.approx(1.0)
    assert {share.p_value for share in features} <= {1 / 3, 2 / 3, 1.0}
    assert [share.rank for share in features] == sorted(share.rank for share in features)
    table = found.table
    assert table["decision"].tolist() == [share.decision.mean for share in found.shares]
    assert {"level", "name", "left_out_low", "selected_high", "p_value"} <= {*table}


@pytest.mark.slow
def test_uniform_weights_are_explained_if_asked_for(results):
    (found,) = explain(results, method="uniform")
    assert (found.selected, found.always) == (found.n_kernels, found.n_kernels)
    assert found.against_uniform is None
    assert found.n_candidates == 1
    sizes = {share.name: share.n_kernels / found.n_kernels for share in found.of("function")}
    weights = {share.name: share.weight.mean for share in found.of("function")}
    assert weights == pytest.approx(sizes)


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


def test_results_without_a_complete_run_say_so(tmp_path):
    plan = made_up_plan({"level": {}})
    store = Journal(tmp_path / "records.journal")
    for run in plan.runs:
        store.append([RunRecord.failed(run, "no memory")])
    lay_out(tmp_path, plan, made_up_facts(plan, {"level": {}}))
    with pytest.raises(InputError, match="no complete run of level"):
        explain(tmp_path)


def test_a_method_is_not_explained_for_the_splits_that_others_lack(tmp_path):
    grids = {"level": {}, "silp": {}}
    plan = made_up_plan(grids)
    store = Journal(tmp_path / "records.journal")
    errors = {"level": (0.1, 0.3, 0.3), "silp": (0.2, None, None)}
    for run in plan.runs:
        error = errors[run.key][run.split]
        record = RunRecord.failed(run, "no memory")
        if error is not None:
            record = replace(made_up_record(run), scores={"test_error": error})
        store.append([record])
    facts = replace(made_up_facts(plan, grids), splits={"heart": SIZES})
    lay_out(tmp_path, plan, facts)
    (found,) = explain(tmp_path)
    assert (found.method, found.n_candidates) == ("level", 1)


@pytest.mark.parametrize(("constant", "better"), [(0.9, True), (0.05, False)])
def test_a_method_is_held_to_the_best_constant_prediction(constant, better, tmp_path):
    plan = made_up_plan({"level": {}})
    store = Journal(tmp_path / "records.journal")
    for run, error in zip(plan.runs, (0.1, 0.12, 0.14), strict=True):
        store.append([replace(made_up_record(run), scores={"test_error": error})])
    splits = SIZES | {"n_new": np.full(3, 20), "n_rarest": np.full(3, 5)}
    facts = made_up_facts(plan, {"level": {}})
    facts = replace(facts, splits={"heart": splits | {"constant_score": np.full(3, constant)}})
    lay_out(tmp_path, plan, facts)
    (found,) = explain(tmp_path)
    assert (found.no_better == "") == better


@pytest.mark.parametrize("path", [5, None, ["results/mine"], np.eye(3)])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(SpecError, match=r"^path: found .*; expected a path$"):
        explain(path)


@pytest.mark.parametrize("number", [-1, 2.5])
def test_a_number_of_permutations_is_not_negative(number, tmp_path):
    with pytest.raises(SpecError):
        explain(tmp_path, permutations=number)
