"""Sweeps of real values against scikit-learn on kernels made by hand, for worker.scoring."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from mkldist.data.snapshot import load_snapshot
from mkldist.errors import SpecError
from mkldist.results.schema import RunState
from mkldist.results.tree import open_results
from tests.run.sweeps import record_times, records, run_here
from tests.variants import quick

WIDTHS = (0.5, 2.0)
EPSILON = 0.1
SWEEP = """
name = "values"
tol = 1e-8
[[datasets]]
name = "friedman1"
options = { n = 60, d = 5 }
[preprocessing]
fit = "FIT"
target = "TARGET"
[splits]
repeats = 2
train_fraction = 0.7
[[banks]]
normalisation = "NORMALISATION"
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
features = ["all", "each"]
[outputs]
predictions = true
coefficients = true
[[methods]]
name = "spicymkl"
label = "uniform_svr"
loss = "epsilon"
regularizer = "uniform"
C = [0.1, 1.0]
trace = true
"""


def sweep(fit: str = "train", target: str = "zscore", normalisation: str = "trace") -> str:
    text = SWEEP.replace("FIT", fit).replace("TARGET", target)
    return text.replace("NORMALISATION", normalisation)


def hand_made_kernel(x, split, fit, normalisation):
    """Return the sum of the normalised kernels, (n, n) and (n_test, n)."""
    scaler = StandardScaler().fit(x[split.train] if fit == "train" else x)
    train, test = scaler.transform(x[split.train]), scaler.transform(x[split.test])
    both = np.concatenate([train, test])
    total = np.zeros((len(both), len(train)))
    for columns in (list(range(5)), *([j] for j in range(5))):
        for width in WIDTHS:
            K = rbf_kernel(both[:, columns], train[:, columns], gamma=1 / (2 * width**2))
            if normalisation == "centre":
                K = K - K.mean(axis=1, keepdims=True)
                K = K - K[: len(train)].mean(axis=0)
            total += K / (np.trace(K[: len(train)]) if normalisation == "trace" else 1.0)
    return total[: len(train)], total[len(train) :]


@pytest.mark.parametrize(
    ("fit", "target", "normalisation"),
    quick([("train", "zscore", "trace"), ("all", "none", "none"), ("all", "zscore", "centre")]),
)
def test_uniform_weights_give_the_support_vector_regression_of_scikit_learn(
    tmp_path, scheduler, fit, target, normalisation
):
    output = tmp_path / "out" / "values"
    outcome = run_here(sweep(fit, target, normalisation), output, scheduler)
    assert outcome.counts[RunState.COMPLETE] == 4
    [snapshot] = (output / "snapshots").iterdir()
    data, splits = load_snapshot(snapshot)
    assert data.task == "regression"
    for record in records(output).values():
        split = splits[record.split]
        train, test = hand_made_kernel(data.x, split, fit, normalisation)
        y, wanted = data.y[split.train], data.y[split.test]
        centre, spread = (y.mean(), y.std()) if target == "zscore" else (0.0, 1.0)
        machine = SVR(C=record.params["C"], epsilon=EPSILON, kernel="precomputed", tol=1e-9)
        machine.fit(train, (y - centre) / spread)
        expected = centre + spread * machine.predict(test)
        np.testing.assert_allclose(record.decision_values, expected, atol=2e-3 * y.std())
        assert record.scores == {
            "rmse": pytest.approx(math.sqrt(np.mean((record.decision_values - wanted) ** 2))),
            "mae": pytest.approx(np.mean(np.abs(record.decision_values - wanted))),
            "r2": pytest.approx(metrics.r2_score(wanted, record.decision_values)),
        }
        by_hand = record.kernel_weights[0] * (test @ record.coefficients) + record.bias
        np.testing.assert_allclose(by_hand, record.decision_values, atol=1e-8)
    check_tree(output, splits)


def check_tree(output, splits):
    with open_results(output) as tree:
        node = tree["friedman1/uniform_svr"]
        assert (node.state == "complete").all()
        assert "test_error" not in node.ds
        for record in records(output).values():
            found = node.ds.sel(split=record.split, C=record.params["C"])
            assert found.rmse.item() == record.scores["rmse"]
            train = splits[record.split].train
            np.testing.assert_array_equal(found.coefficients.sel(sample=train), record.coefficients)
            trace = node["convergence"].ds.sel(split=record.split, C=record.params["C"])
            n = len(record.trace["gap"])
            assert n > 0
            for name in ("gap", "objective", "dual_objective", "seconds", "largest_weights"):
                np.testing.assert_array_equal(
                    trace[name].values[:n, ...], record.trace[name], err_msg=name
                )
            assert trace.gap[n:].isnull().all()
            assert trace.gap.values[n - 1] == pytest.approx(record.gap, abs=1e-12)


def test_traces_come_whole_out_of_a_sweep_that_is_resumed(tmp_path, scheduler):
    output = tmp_path / "out" / "values"
    run_here(sweep(), output, scheduler)
    before = record_times(output)
    changed = sweep().replace("C = [0.1, 1.0]", "C = [0.01, 0.1, 1.0]")
    outcome = run_here(changed, output, scheduler)
    assert (outcome.computed, outcome.skipped) == (2, 4)
    assert {k: v for k, v in record_times(output).items() if k in before} == before
    [snapshot] = (output / "snapshots").iterdir()
    check_tree(output, load_snapshot(snapshot)[1])


def test_targets_in_other_units_are_other_runs_on_the_same_banks(tmp_path, scheduler):
    output = tmp_path / "out" / "values"
    first = run_here(sweep(), output, scheduler)
    second = run_here(sweep(target="none"), output, scheduler)
    assert (second.computed, second.skipped) == (4, 0)
    assert {bank.id for bank in first.plan.banks} == {bank.id for bank in second.plan.banks}


MIXED = """
name = "mixed"
[[datasets]]
name = "friedman1"
options = { n = 40, d = 5 }
[[datasets]]
name = "two_moons"
options = { n = 40 }
[preprocessing]
target = "zscore"
[[banks]]
family = "do2009"
[[methods]]
name = "spicymkl"
loss = "squared"
"""


def test_classes_and_values_in_one_sweep(tmp_path, scheduler):
    output = tmp_path / "out" / "mixed"
    outcome = run_here(MIXED, output, scheduler)
    assert outcome.counts[RunState.COMPLETE] == 2
    with open_results(output) as tree:
        assert tree["friedman1/spicymkl"].r2.item() > 0.3
        assert tree["two_moons/spicymkl"].test_error.item() < 0.3
        assert "rmse" not in tree["two_moons/spicymkl"].ds


def test_precomputed_matrices_of_real_values(tmp_path, scheduler):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 3))
    y = 100 + 30 * x[:, 0] * x[:, 1] + rng.normal(size=40)
    np.savez(tmp_path / "mine.npz", grams=[(1 + x @ x.T) ** k for k in (1, 2)], y=y)
    text = """
        name = "given"
        datasets = [{ name = "mine", grams = "mine.npz", task = "regression" }]
        splits = { kind = "kfold", folds = 3 }
        banks = [{ family = "precomputed" }]
        methods = [{ name = "spicymkl", loss = "squared", C = 100.0 }]
    """
    run_here(text, tmp_path / "given", scheduler)
    with open_results(tmp_path / "given") as tree:
        assert (tree["mine/spicymkl"].r2 > 0.9).all()


def test_methods_of_classes_are_refused_before_anything_is_done(tmp_path):
    for name, said in (
        ("level", "level with loss hinge, which learns two classes"),
        ("spicymkl", "spicymkl with loss logistic, which learns two classes"),
    ):
        text = MIXED.replace('name = "spicymkl"\nloss = "squared"', f'name = "{name}"')
        with pytest.raises(SpecError, match=said) as caught:
            run_here(text, tmp_path / "out", None)
        assert "data set 'friedman1' is one of regression" in str(caught.value)
        assert "remove the method or the data set" in str(caught.value)
        assert list(tmp_path.iterdir()) == []
    assert 'loss = "squared" or "epsilon"' in str(caught.value)


def test_one_loss_of_a_list_that_cannot_is_named(tmp_path):
    text = MIXED.replace('"squared"', '["squared", "hinge"]')
    with pytest.raises(SpecError, match="loss hinge"):
        run_here(text, tmp_path / "out", None)
