"""Parts of kernels in decision values, held to scikit-learn and to what sweeps predicted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import mkldist
from mkldist.analysis.explanation import KernelSets, decision_shares
from mkldist.core.metrics import METRICS
from mkldist.data.snapshot import load_snapshot
from mkldist.fit.explain import explained_runs
from mkldist.fit.select import inputs_of
from tests.models.test_used_texts import SWEEP as TEXTS
from tests.models.test_used_texts import write_tables
from tests.refit.sweeps import FEW_LABELS, entry, recorded, swept
from tests.refit.test_views import swept as swept_text
from tests.run.test_kinds_of_data import SWEEP as VIEWS
from tests.run.test_kinds_of_data import write_views

pytestmark = pytest.mark.slow
KERNELS = [
    {"function": "gaussian", "widths": [0.5, 2.0], "features": ["all", "each"]},
    {"function": "polynomial", "degrees": [2]},
]
"""Those of the sweeps of :mod:`tests.refit.sweeps`."""


def metric_of(record):
    return METRICS["rmse" if "rmse" in record.scores else "error"]


def parts_of(results, key: str):
    """Return the parts of the runs of a method, with their records."""
    records = sorted((r for r in recorded(results) if r.key == key), key=lambda r: r.split)
    found = explained_runs(results, records, metric_of(records[0]))
    assert not isinstance(found, str), found
    return [(found.parts(record), record) for record in records]


def assert_parts_make_the_predictions(results, keys) -> None:
    for key in keys:
        for parts, record in parts_of(results, key):
            made = parts.values.sum(axis=1) + parts.bias
            stored = np.atleast_2d(record.decision_values).T
            np.testing.assert_allclose(made, stored, atol=1e-10)
            metric = metric_of(record)
            assert parts.loss(made) == pytest.approx(record.scores[metric.variable()])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"fit": "all", "normalisation": '["centre", "trace"]'},
        {"normalisation": '["cosine", "variance"]', "scale": "minmax"},
    ],
    ids=str,
)
def test_the_parts_sum_to_what_the_sweep_predicted(changes, tmp_path):
    methods = entry("level", C=10.0) + entry("uniform", C=1.0) + entry("spicymkl", C=100.0)
    results = swept(tmp_path, methods, **changes)
    assert_parts_make_the_predictions(results, ("level", "uniform", "spicymkl"))


def test_classes_are_taken_apart(tmp_path):
    methods = entry("level", C=10.0) + entry(
        "level", label='"both"', kernel_weights='"shared"', C=10.0
    )
    assert_parts_make_the_predictions(swept(tmp_path, methods, "three"), ("level", "both"))


@pytest.mark.parametrize("normalisation", ["trace", "cosine", "variance"])
def test_views_that_points_lack_are_taken_apart(normalisation, tmp_path):
    write_views(tmp_path)
    text = VIEWS.format(normalisation=normalisation, backend="auto", C=50.0)
    assert_parts_make_the_predictions(swept_text(tmp_path, text), ("level",))


@pytest.mark.parametrize("normalisation", ["trace", "cosine"])
def test_kernels_of_texts_are_taken_apart(normalisation, tmp_path):
    write_tables(tmp_path)
    text = TEXTS.format(normalisation=f'"{normalisation}"')
    assert_parts_make_the_predictions(swept_text(tmp_path, text), ("uniform", "level"))


def test_real_values_are_taken_apart(tmp_path):
    methods = entry("spicymkl", C=100.0, loss='"squared"')
    results = swept(tmp_path, methods, "value", target="zscore", dataset='task = "regression"')
    assert_parts_make_the_predictions(results, ("spicymkl",))


def test_a_part_is_the_kernel_of_scikit_learn_by_weight_and_coefficients(tmp_path):
    results = swept(tmp_path, entry("level", C=10.0), impute="mean")
    ((parts, record), *_) = parts_of(results, "level")
    (snapshot,) = (results / "snapshots").iterdir()
    dataset, splits = load_snapshot(snapshot)
    split = splits[record.split]
    train, test = dataset.x[split.train], dataset.x[split.test]
    fill = np.nanmean(train, axis=0)
    train, test = (np.where(np.isnan(x), fill, x) for x in (train, test))
    mean, sd = train.mean(axis=0), train.std(axis=0)
    train, test = (train - mean) / sd, (test - mean) / sd
    widths = {0: 0.5, 1: 2.0}  # the first kernels of the bank are those of all features
    checked = 0
    for place, kernel in enumerate(parts.kernels.tolist()):
        if kernel not in widths:
            continue
        values = rbf_kernel(test, train, gamma=0.5 / widths[kernel] ** 2) / len(train)
        expected = record.weights[place] * values @ record.coefficients
        np.testing.assert_allclose(parts.values[:, place, 0], expected, atol=1e-12)
        checked += 1
    assert checked


def test_permuted_labels_give_the_shares_of_fits_on_them(tmp_path):
    results = swept(tmp_path, entry("uniform", C=1.0))
    records = sorted(recorded(results), key=lambda record: record.split)
    decisions = explained_runs(results, records, METRICS["error"])
    assert not isinstance(decisions, str)
    n_kernels = records[0].n_kernels
    every = KernelSets("kernel", tuple(map(str, range(n_kernels))), np.arange(n_kernels))
    (null,) = decisions.null(3, [every], n_kernels)
    assert null.shape == (3, n_kernels)
    np.testing.assert_allclose(null.sum(axis=1), 1.0)
    np.testing.assert_array_equal(decisions.null(2, [every], n_kernels)[0], null[:2])
    assert len({row.tobytes() for row in null}) == 3
    source, total = decisions.source, np.zeros(n_kernels)
    for record in records:
        draw = np.random.default_rng([source.spec.seed, record.split, 0])
        y, train = source.dataset.y.copy(), source.splits[record.split].train
        y[train] = draw.permutation(y[train])
        inputs = inputs_of(source, source.splits[record.split])
        with mkldist.KernelBank(inputs.points[train], KERNELS, normalisation="trace") as bank:
            solution = mkldist.solve("uniform", bank, y[train], C=1.0)
            test = inputs.points[source.splits[record.split].test]
            names = [*map(str, range(n_kernels))]
            parts = bank.expansion(solution).contributions(names, test)[:, :-1]
        total += decision_shares([(np.arange(n_kernels), parts)], n_kernels)
    np.testing.assert_allclose(null[0], total / len(records), atol=1e-3)


def test_features_stand_at_their_means_where_they_are_left_out(tmp_path):
    results = swept(tmp_path, entry("level", C=10.0))
    records = sorted(recorded(results), key=lambda record: record.split)
    decisions = explained_runs(results, records, METRICS["error"])
    assert not isinstance(decisions, str)
    (sets,) = [one for one in decisions.sets([], 1e9) if one.level == "feature"]
    record, source = records[0], decisions.source
    parts = decisions.parts(record, [sets])
    split = source.splits[0]
    x = inputs_of(source, split).points
    moved, column = x[split.test].copy(), sets.names.index("a")
    moved[:, column] = x[split.train, column].mean()
    with mkldist.KernelBank(x[split.train], KERNELS, normalisation="trace") as bank:
        weights = record.kernel_weights
        before, after = (
            bank.on(rows).decision_values(weights, record.coefficients, record.bias)
            for rows in (x[split.test], moved)
        )
    np.testing.assert_allclose(before, record.decision_values, atol=1e-10)
    changes = parts.changes["feature"][:, column, 0]
    np.testing.assert_allclose(changes, before - after, atol=1e-10)


def test_what_cannot_be_taken_apart_is_said(tmp_path):
    assert explained_runs(tmp_path, [], METRICS["error"]) == "no record of a complete run is there"
    methods = entry("lapmkl", gamma_a=0.01, gamma_i=0.1) + entry("level", C=1.0)
    results = swept(tmp_path, methods, splits=FEW_LABELS)
    records = recorded(results)
    few = [record for record in records if record.key == "lapmkl"]
    assert (
        explained_runs(results, few, METRICS["error"])
        == "methods that learn from a graph are not taken apart"
    )
    others = [record for record in records if record.key == "level"]
    assert not isinstance(explained_runs(results, others, METRICS["error"]), str)
    beyond = [replace(record, split=record.split + 2) for record in others]
    assert isinstance(explained_runs(results, beyond, METRICS["error"]), str)
