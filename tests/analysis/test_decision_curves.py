"""Curves of recorded decisions, against scikit-learn on the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

from mkldist import analysis
from mkldist.analysis.curves import (
    calibration,
    decisions_of,
    out_of_split_probabilities,
    precision_recall,
    roc,
)
from mkldist.analysis.pairing import Results, methods_by_data_set
from mkldist.calibration import fit_calibration
from mkldist.errors import InputError
from tests.refit.sweeps import entry, recorded, swept, table


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return the results of a sweep of two classes."""
    return swept(tmp_path_factory.mktemp("curves"), entry("uniform", C=10.0))


def sides(results):
    """Return the methods of a sweep of one data set."""
    [(_, found)] = methods_by_data_set(Results.of(results))
    return found


def test_decisions_are_those_of_the_records(results):
    found = decisions_of(sides(results)["uniform"])
    records = recorded(results)
    assert [one.split for one in found] == [0, 1]
    for one, record in zip(found, sorted(records, key=lambda r: r.split), strict=True):
        np.testing.assert_array_equal(one.values, record.decision_values)
        np.testing.assert_array_equal(one.positive, table()["two"][record.test_rows] == "well")


def test_curves_of_one_split_are_those_of_scikit_learn(results):
    one = decisions_of(sides(results)["uniform"])[:1]
    rate, hits, _ = roc_curve(one[0].positive, one[0].values)
    found = roc(one)
    np.testing.assert_array_equal(found["false_positive_rate"], rate)
    np.testing.assert_array_equal(found["true_positive_rate"], hits)
    precision, recall, _ = precision_recall_curve(one[0].positive, one[0].values)
    for row in precision_recall(one).to_dict("records"):
        first = np.flatnonzero(recall >= row["recall"] - 1e-9)[-1]  # recalls descend
        assert row["precision"] == precision[first]


def test_mean_curves_have_the_mean_areas(results):
    several = decisions_of(sides(results)["uniform"])
    found = roc(several)
    areas = [auc(*roc_curve(one.positive, one.values)[:2]) for one in several]
    own = auc(found["false_positive_rate"], found["true_positive_rate"])
    assert own == pytest.approx(np.mean(areas), abs=0.01)
    assert found["true_positive_rate"].iloc[-1] == 1.0
    assert (found["sd"] >= 0).all()
    precisions = [average_precision_score(one.positive, one.values) for one in several]
    found = precision_recall(several)
    assert found["precision"][1:].mean() == pytest.approx(np.mean(precisions), abs=0.005)


def test_probabilities_of_a_split_are_learnt_on_rows_of_others(results):
    first, second = decisions_of(sides(results)["uniform"])
    new = ~np.isin(second.rows, first.rows)
    by_hand = fit_calibration(second.values[new], second.positive[new])
    found = out_of_split_probabilities([first, second])
    np.testing.assert_array_equal(found[0], by_hand.probabilities(first.values))
    curve = calibration([first, second])
    assert curve["n"].sum() == len(first.values) + len(second.values)
    positive = np.concatenate([first.positive, second.positive])
    frequency, mean = calibration_curve(
        positive, np.concatenate(found), n_bins=10, strategy="quantile"
    )
    np.testing.assert_array_equal(curve["frequency"], frequency)
    np.testing.assert_array_equal(curve["probability"], mean)
    assert (curve["frequency"] * curve["n"]).sum() == pytest.approx(positive.sum())


def test_the_other_class_has_the_mirrored_curve(results):
    side = sides(results)["uniform"]
    well, ill = decisions_of(side)[0], decisions_of(side, "ill")[0]
    np.testing.assert_array_equal(ill.positive, ~well.positive)
    np.testing.assert_array_equal(ill.values, -well.values)


def test_a_class_of_several_is_against_the_rest(tmp_path):
    results = swept(tmp_path, entry("uniform", C=10.0), "three")
    side = sides(results)["uniform"]
    record = min(recorded(results), key=lambda one: one.split)
    for place, name in enumerate(["0", "10", "20"]):
        one = decisions_of(side, name)[0]
        np.testing.assert_array_equal(one.values, record.decision_values[place])
        expected = table()["three"][record.test_rows] == 10 * place
        np.testing.assert_array_equal(one.positive, expected)


def test_a_method_has_all_curves_by_name(results):
    found = analysis.prediction_curves(results, "mine", "uniform")
    assert list(found) == ["roc", "precision_recall", "calibration"]
    with pytest.raises(InputError, match="no decision values of test rows"):
        analysis.prediction_curves(results, "mine", "level")
