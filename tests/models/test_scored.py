"""Files of predictions with probabilities, contributions and scores, and notes on odd rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    f1_score,
    log_loss,
    r2_score,
    roc_auc_score,
)

import mkldist
from mkldist.calibration import Calibrated, Isotonic, Sigmoid
from mkldist.data.dataset import View
from mkldist.errors import DataError, SpecError
from mkldist.fit.predictions import write_predictions
from tests.models.made_up import made_up_model, made_up_table, made_up_views

TABLE = made_up_table()
HALF = Calibrated((Sigmoid(2.0, 0.5),), threshold=-0.25)


def calibrated(calibration: Calibrated = HALF, classes=("ill", "well")):
    """Return a model with probabilities."""
    return replace(made_up_model(classes), calibration=calibration)


def predicted(model, frame: pd.DataFrame, folder: Path, **settings):
    """Write a table and its predictions; return what was done, and the predictions."""
    frame.to_csv(folder / "new.csv", index=False)
    done = write_predictions(model, folder / "new.csv", folder / "out.csv", **settings)
    return done, pd.read_csv(folder / "out.csv")


def test_probabilities_follow_the_decision_and_read_back(tmp_path):
    calibrated().save(tmp_path / "a.model")
    model = mkldist.load_model(tmp_path / "a.model")
    assert model.calibration == HALF
    done, found = predicted(model, TABLE, tmp_path)
    assert list(found.columns) == ["row", "prediction", "decision", "probability"]
    expected = 1 / (1 + np.exp(-2.0 * found["decision"] - 0.5))
    np.testing.assert_allclose(found["probability"], expected)
    np.testing.assert_array_equal(model.predict_proba(TABLE)[:, 1], found["probability"])
    assert found["prediction"].tolist() == np.where(expected >= 0.5, "well", "ill").tolist()
    assert done.notes == ()


@pytest.mark.parametrize("threshold", [-np.inf, 0.3, np.inf])
def test_predictions_other_than_the_most_probable_class_are_counted(threshold, tmp_path):
    model = calibrated(replace(HALF, threshold=threshold))
    model.save(tmp_path / "a.model")
    done, found = predicted(mkldist.load_model(tmp_path / "a.model"), TABLE, tmp_path)
    positive = found["decision"] >= threshold
    assert (found["prediction"] == "well").tolist() == positive.tolist()
    other = int((positive != (found["probability"] > 0.5)).sum())
    [note] = done.notes
    assert note.startswith(f"{other} rows predicted as another class")


def test_several_classes_have_a_probability_each(tmp_path):
    curves = Sigmoid(1.0, 0.0), Isotonic((-1.0, 1.0), (0.0, 1.0)), Sigmoid(0.0, -1.0)
    calibration = Calibrated(curves, class_weights=(1.0, 1.0, 3.0))
    model = calibrated(calibration, ("p", "q", "r"))
    model.save(tmp_path / "a.model")
    _, found = predicted(mkldist.load_model(tmp_path / "a.model"), TABLE, tmp_path)
    values = found[["decision[p]", "decision[q]", "decision[r]"]].to_numpy().T
    by_hand = np.stack(
        [1 / (1 + np.exp(-values[0])), np.clip(values[1] / 2 + 0.5, 0, 1),
         np.full(len(found), 1 / (1 + np.e))], axis=1
    )  # fmt: skip
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    own = found[["probability[p]", "probability[q]", "probability[r]"]]
    np.testing.assert_allclose(own, by_hand)
    best = (by_hand * [1.0, 1.0, 3.0]).argmax(axis=1)
    assert found["prediction"].tolist() == np.array(["p", "q", "r"])[best].tolist()
    plain = replace(model, calibration=replace(calibration, class_weights=()))
    done, found = predicted(plain, TABLE, tmp_path, overwrite=True)
    assert found["prediction"].tolist() == made_up_model(("p", "q", "r")).predict(TABLE).tolist()
    other = int((by_hand.argmax(axis=1) != values.argmax(axis=0)).sum())
    assert [note.split()[0] for note in done.notes] == [str(other)]


def test_a_model_without_probabilities_says_how_to_have_them():
    with pytest.raises(SpecError, match=r"found a model without a calibration.*--calibrate"):
        made_up_model().predict_proba(TABLE)


@pytest.mark.parametrize("by", ["views", "features", "kernels"])
@pytest.mark.parametrize("classes", [("ill", "well"), ("p", "q", "r")], ids=len)
def test_contributions_and_intercept_are_the_decision(by, classes, tmp_path):
    model = replace(made_up_model(classes), views={"pair": View((0, 1)), "size": View((2, 3))})
    _, found = predicted(model, TABLE, tmp_path, explained_by=by)
    table = model.contributions(TABLE, by=by)
    for c in [""] if len(classes) == 2 else [f"[{name}]" for name in classes]:
        own = [n for n in found if n.startswith(f"contribution{c}[")]
        parts = found[[*own, f"intercept{c}"]]
        np.testing.assert_allclose(parts.sum(axis=1), found[f"decision{c}"], rtol=0, atol=1e-9)
        in_python = table[c[1:-1]] if c else table
        np.testing.assert_allclose(in_python, parts, rtol=0, atol=1e-12)
        names = [name.removeprefix(f"contribution{c}[")[:-1] for name in own]
        assert [*names, "intercept"] == in_python.columns.tolist()
        assert ("polynomial(2)[all]" if by == "kernels" else "all") in names
    if len(classes) == 2 and by == "kernels":
        [function] = model.functions
        assert table.shape[1] == function.n_kernels + 1


def test_contributions_of_views_are_those_of_their_kernels():
    found = made_up_views().contributions(
        [[0.0], [7.0]], by="views",
        views={"v": [[1.0, 1.0], [np.nan, np.nan]], "k": np.ones((2, 2, 4))},
    )  # fmt: skip
    assert found.columns.tolist() == ["v", "k", "intercept"]
    # 2 [(b + 2c) - 3b], zero where a row lacks the view, and 10 [K_0 + 4 K_2]
    np.testing.assert_allclose(found, [[0.0, 50.0, 0.5], [0.0, 50.0, 0.5]])


def test_scores_are_those_of_scikit_learn(tmp_path):
    table = TABLE.assign(answer=np.where(TABLE["b"] > 0.2, "well", "ill"))
    labels = replace(made_up_model().labels, answers=(0.9, 0.1))
    done, found = predicted(replace(calibrated(), labels=labels), table, tmp_path, scored=True)
    y, own = table["answer"], found["prediction"]
    positive, probable = y == "well", found["probability"]
    assert done.score.values == pytest.approx(
        {
            "error": (y != own).mean(),
            "balanced_error": 1 - balanced_accuracy_score(y, own),
            "auc": roc_auc_score(positive, found["decision"]),
            "average_precision": average_precision_score(positive, found["decision"]),
            "f1": f1_score(y, own, pos_label="well"),
            "log_loss": log_loss(positive, probable),
            "brier": brier_score_loss(positive, probable),
        }
    )
    plain, share = done.score.of_constant, positive.mean()  # of the fit: nine in ten are ill
    assert (plain["error"], plain["balanced_error"]) == (pytest.approx(share), 0.5)
    assert plain["brier"] == pytest.approx(brier_score_loss(positive, np.full(len(y), 0.1)))
    matrix = [[row[c] for c in ("ill", "well")] for row in done.score.confusion.values()]
    np.testing.assert_array_equal(matrix, confusion_matrix(y, own, labels=["ill", "well"]))


def test_real_values_are_scored_without_a_file(tmp_path):
    model = made_up_model(None)
    y = np.round(model.predict(TABLE) + np.linspace(-1, 1, len(TABLE)), 6)
    TABLE.assign(answer=y).to_csv(tmp_path / "new.csv", index=False)
    done = write_predictions(model, tmp_path / "new.csv", None, scored=True)
    assert [*done.score.values] == ["rmse", "mae", "r2"]
    assert done.score.values["r2"] == pytest.approx(r2_score(y, model.predict(TABLE)))
    of_fit = replace(model, labels=replace(model.labels, answers=(1.0, 2.0)))  # mean, median
    plain = write_predictions(of_fit, tmp_path / "new.csv", None, scored=True).score.of_constant
    assert plain["rmse"] == pytest.approx(np.sqrt(np.mean((y - 1.0) ** 2)))
    assert plain["mae"] == pytest.approx(np.abs(y - 2.0).mean())
    assert not (tmp_path / "out.csv").exists()


def test_arrays_have_their_labels_beside_them(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(x[:, 0] > 0, 1, 0)
    model = mkldist.MKLClassifier("uniform").fit(x, y).to_model()
    np.savez(tmp_path / "new.npz", x=x, y=y.astype(float))
    lines = [f"{label} 1:{a} 2:{b}" for label, (a, b) in zip(y, x.tolist(), strict=True)]
    (tmp_path / "new.svm").write_text("\n".join(lines))
    by_svm = write_predictions(model, tmp_path / "new.svm", None, scored=True)
    done = write_predictions(model, tmp_path / "new.npz", None, scored=True)
    assert by_svm.score == done.score
    wrong = float((model.predict(x) != y).mean())
    assert done.score.values["error"] == wrong
    assert done.score.of_constant["error"] == min(y.mean(), 1 - y.mean())


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (None, "found no labels; expected the column 'answer'"),
        ("sick", "found labels that the model does not know in 50 rows: 'sick' in 50; exp"),
        ("", "labels that the model does not know in 50 rows: '' in 50"),
    ],
)
def test_labels_that_cannot_be_scored_are_met_by_one_message(labels, said, tmp_path):
    table = TABLE if labels is None else TABLE.assign(answer=labels)
    table.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(DataError, match=said):
        write_predictions(calibrated(), tmp_path / "new.csv", tmp_path / "out.csv", scored=True)
    assert not (tmp_path / "out.csv").exists()


def test_values_far_outside_the_fit_are_counted(tmp_path):
    ranges = np.array([[-3.0, -3.0, 0.0, 0.0], [3.0, 3.0, 1.0, 1.0]])
    model = replace(made_up_model(), ranges=ranges)
    model.save(tmp_path / "a.model")
    table = TABLE.copy()
    table.loc[[1, 2], "a"] = 9.1  # more than the width of the range beyond it
    table.loc[2, "b"] = -9.1
    table.loc[3, "b"] = 8.9
    done, _ = predicted(mkldist.load_model(tmp_path / "a.model"), table, tmp_path)
    [note] = done.notes
    assert note.startswith("2 of 50 rows have values outside the range of the fit")
    assert note.endswith("'a' in 2 (-3 to 3), 'b' in 1 (-3 to 3)")
    assert predicted(model, TABLE, tmp_path, overwrite=True)[0].notes == ()


@pytest.mark.parametrize("missing", ["zero", "impute"])
def test_rows_that_lack_a_view_are_counted(missing, tmp_path):
    model = replace(made_up_model(), views={"pair": View((0, 1), missing)})
    table = TABLE.copy()
    table.loc[[4, 5, 6], ["a", "b"]] = np.nan
    done, _ = predicted(model, table, tmp_path, rows_at_once=6)
    [note] = done.notes
    assert note.startswith("view 'pair': 3 of 50 rows lack it; its ")
    assert ("zero" in note) == (missing == "zero")


def test_rows_that_lack_a_view_of_a_file_are_counted(tmp_path):
    pd.DataFrame({"row": ["x", "y", "z"], "a": 1.0}).to_csv(tmp_path / "new.csv", index=False)
    pd.DataFrame({"row": ["z"], "b": 1.0, "c": 2.0}).to_csv(tmp_path / "v.csv", index=False)
    np.savez(tmp_path / "k.npz", grams=np.ones((2, 2, 4)), ids=["x", "y"])
    files = {"v": tmp_path / "v.csv", "k": tmp_path / "k.npz"}
    done = write_predictions(
        made_up_views(), tmp_path / "new.csv", tmp_path / "o.csv", views=files, explained_by="views"
    )
    found = pd.read_csv(tmp_path / "o.csv")
    parts = found[["contribution[v]", "contribution[k]", "intercept"]]
    np.testing.assert_allclose(parts.sum(axis=1), found["prediction"], rtol=0, atol=1e-9)
    assert (parts["contribution[v]"] == 0).tolist() == [True, True, False]
    assert (parts["contribution[k]"] == 0).tolist() == [False, False, True]
    assert [note.split(";")[0] for note in done.notes] == [
        "view 'v': 2 of 3 rows lack it",
        "view 'k': 1 of 3 rows lack it",
    ]
