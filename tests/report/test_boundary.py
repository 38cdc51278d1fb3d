"""Decision functions that pictures show are those that the sweep scored."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.report.boundary import GRID, boundary, decision_function
from tests.report.sweeps import THREE, pictured, recorded, run, write_three_classes


@pytest.mark.parametrize(
    ("fit", "normalisation", "few_labels"),
    [
        pytest.param("train", '"trace"', False, marks=pytest.mark.slow),
        pytest.param("all", '["centre", "variance"]', False, marks=pytest.mark.slow),
        pytest.param("all", '["cosine", "trace"]', True, marks=pytest.mark.slow),
        ("train", '["centre", "trace"]', True),
    ],
)
@pytest.mark.slow
def test_the_function_is_the_one_that_was_scored(
    fit, normalisation, few_labels, tmp_path, scheduler
):
    spec = pictured(fit=fit, normalisation=normalisation, few_labels=few_labels)
    outcome = run(spec, tmp_path / "out", scheduler)
    assert not outcome.failed
    runs = list(recorded(spec, outcome.path))
    assert {record.method for *_, record in runs} >= {"level", "majority"}
    for bank, dataset, splits, record in runs:
        function = decision_function(bank, dataset, splits, record)
        assert len(record.test_rows) >= 30
        values = function(dataset.x[record.test_rows])[0]
        np.testing.assert_allclose(values, record.decision_values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "kernel_weights", [pytest.param("per-class", marks=pytest.mark.slow), "shared"]
)
@pytest.mark.slow
def test_several_classes_have_a_function_each(kernel_weights, tmp_path, scheduler):
    write_three_classes(tmp_path)
    spec = pictured(dataset=THREE, kernel_weights=kernel_weights, few_labels=True)
    outcome = run(spec, tmp_path / "out", scheduler)
    assert not outcome.failed
    assert sorted(path.name for path in outcome.figures) == [
        "three-lapmkl",
        "three-level",
        "three-majority",
    ]
    for bank, dataset, splits, record in recorded(spec, outcome.path):
        values = decision_function(bank, dataset, splits, record)(dataset.x[record.test_rows])
        assert values.shape == (3, len(record.test_rows))
        np.testing.assert_allclose(values, record.decision_values, rtol=1e-9, atol=1e-12)
        assert boundary(bank, dataset, splits, record).values.shape == (3, GRID, GRID)


@pytest.mark.slow
def test_the_grid_lies_around_all_points(tmp_path, scheduler):
    spec = pictured(few_labels=True)
    outcome = run(spec, tmp_path / "out", scheduler)
    for bank, dataset, splits, record in recorded(spec, outcome.path):
        shown = boundary(bank, dataset, splits, record)
        assert shown.values.shape == (1, GRID, GRID)
        for side, axis in zip(dataset.x.T, shown.axes, strict=True):
            assert axis[0] < side.min() < side.max() < axis[-1]
        function = decision_function(bank, dataset, splits, record)
        corner = np.array([[shown.axes[0][-1], shown.axes[1][0]]])
        assert function(corner)[0, 0] == pytest.approx(shown.values[0, 0, -1])
        rows = np.concatenate(list(shown.roles.values()))
        assert sorted(rows.tolist()) == list(range(60))
        assert set(shown.roles) == {"labelled", "unlabelled", "test"}
