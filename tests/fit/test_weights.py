"""Weights of rows and classes in sweeps, against scikit-learn's machine and against `solve`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.svm import SVC

import mkldist
from mkldist.errors import DataError, SpecError
from mkldist.kernels import Gaussian
from mkldist.results.journal import Journal
from tests.fit.ways import called

N, C, WIDTHS = 90, 2.0, (0.7, 2.0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
SCORE = X[:, 0] + 0.7 * RNG.normal(size=N)
TWO = np.where(SCORE > 0.9, "yes", "no")
THREE = np.digitize(SCORE, [-0.3, 1.0]).astype(str)
WEIGHTS = np.where(np.arange(N) % 7 == 0, 0.0, RNG.uniform(0.2, 3.0, N))
TRAIN, TEST = np.arange(0, 60), np.arange(60, N)
GRAMS = np.array([rbf_kernel(X, gamma=0.5 / width**2) for width in WIDTHS])


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def swept(methods: list[dict[str, Any]], y: np.ndarray, widths: Any = WIDTHS, **keys: Any) -> Any:
    """Return the results of a sweep on the only split; `keys` are those of data and data set."""
    given = {"x": X, "y": y, "train": TRAIN[None], "test": TEST[None]}
    given |= {"weights": keys.pop("weights")} if "weights" in keys else {}
    folds = keys.pop("selection", 0)
    spec = {
        "name": "mine",
        "selection": {"folds": folds},
        "datasets": [{"name": "mine", **keys}],
        "preprocessing": {"scale": "none"},
        "outputs": {"predictions": True},
        "banks": [{"kernels": [Gaussian(widths=list(widths))], "normalisation": "none"}],
        "methods": [{"tol": 1e-8, **method} for method in methods],
    }
    return mkldist.sweep(spec, {"mine": given})["mine"]


def balanced(y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return weights of rows times ``n / (k n_c)``, where a row counts as often as it weighs."""
    classes = np.unique(y)
    sums = {name: weights[y == name].sum() for name in classes}
    return weights * np.array([weights.sum() / (len(classes) * sums[name]) for name in y])


def values_of(tree: Any, method: str) -> np.ndarray:
    return tree[method].decision_values.squeeze().dropna("sample").to_numpy()


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["classes", "classes-and-rows"])
def test_a_sweep_solves_the_weighted_problem_of_scikit_learn(weights):
    given = {} if weights is None else {"weights": weights}
    methods = [
        {"name": "level", "C": C},
        {"name": "svm", "kernel_number": 1, "C_min": C, "C_num": 1},
    ]
    tree = swept(methods, TWO, class_weight="balanced", **given)
    own = np.ones(N) if weights is None else weights
    used = TRAIN[own[TRAIN] > 0.0]
    of_rows = balanced(TWO[used], own[used])
    if weights is None:
        plain = SVC(C=C, kernel="precomputed", class_weight="balanced", tol=1e-9)
        plain.fit(GRAMS[1][np.ix_(used, used)], TWO[used])
    else:
        plain = SVC(C=C, kernel="precomputed", tol=1e-9)
        plain.fit(GRAMS[1][np.ix_(used, used)], TWO[used], sample_weight=of_rows)
    expected = plain.decision_function(GRAMS[1][np.ix_(TEST, used)])
    np.testing.assert_allclose(values_of(tree, "svm"), expected, atol=1e-5)
    y = np.where(TWO[used] == "yes", 1.0, -1.0)
    bank = GRAMS[:, used[:, None], used]
    solution = mkldist.solve("level", bank, y, weights=of_rows, C=C, tol=1e-8)
    assert tree["level"].objective.item() == pytest.approx(solution.objective, rel=1e-6)
    expected = solution.decision_function(GRAMS[:, TEST[:, None], used])
    np.testing.assert_allclose(values_of(tree, "level"), expected, atol=1e-4)


@pytest.mark.parametrize("normalisation", ["variance", "trace", ["centre", "variance"]])
@pytest.mark.parametrize("scale", ["zscore", "tfidf"])
def test_a_sweep_with_weights_is_that_of_rows_repeated(normalisation, scale):
    weights = np.where(np.isin(np.arange(N), TEST), 1, RNG.integers(0, 4, N))
    rows = np.repeat(np.arange(N), weights)
    x = np.where(RNG.random(X.shape) < 0.1, np.nan, np.round(X, 1))
    kernels = [Gaussian(relative_widths=[0.5, 1.0])]
    spec = {
        "name": "repeats",
        "datasets": [{"name": name, "impute": "median"} for name in ("weighted", "repeated")],
        "preprocessing": {"scale": scale},
        "outputs": {"predictions": True},
        "banks": [{"kernels": kernels, "normalisation": normalisation}],
        "methods": [{"name": "uniform", "C": C, "tol": 1e-10}],
    }
    train = np.flatnonzero(np.isin(rows, TRAIN))
    data = {
        "weighted": {
            "x": x,
            "y": TWO,
            "weights": weights,
            "train": TRAIN[None],
            "test": TEST[None],
        },
        "repeated": {
            "x": x[rows],
            "y": TWO[rows],
            "train": train[None],
            "test": np.flatnonzero(np.isin(rows, TEST))[None],
        },
    }
    tree = mkldist.sweep(spec, data)
    one, two = (tree[name]["uniform"] for name in data)
    assert one.objective.item() == pytest.approx(two.objective.item(), rel=1e-8)
    values = [one.decision_values.squeeze().dropna("sample").to_numpy() for one in (one, two)]
    np.testing.assert_allclose(*values, atol=1e-4)


def test_each_class_against_the_rest_has_the_weights_of_the_rows_own_classes():
    tree = swept([{"name": "uniform", "C": C}], THREE, [2.0], class_weight={"0": 3.0, "2": 0.5})
    found = tree["uniform"].decision_values.squeeze().dropna("sample")
    assert json.loads(tree.root.attrs["data"])["mine"]["weights"] == "classes 0 3, 2 0.5"
    weights = np.select([THREE == "0", THREE == "2"], [3.0, 0.5], 1.0)[TRAIN]
    K = GRAMS[1]
    for number, name in enumerate("012"):
        machine = SVC(C=C, kernel="precomputed", tol=1e-9)
        machine.fit(K[np.ix_(TRAIN, TRAIN)], THREE[TRAIN] == name, sample_weight=weights)
        expected = machine.decision_function(K[np.ix_(TEST, TRAIN)])
        of_class = found.transpose("class_name", "sample")[number]
        np.testing.assert_allclose(of_class, expected, atol=1e-5)


def test_inner_folds_are_balanced_on_the_rows_they_train_on():
    tree = swept([{"name": "uniform", "C": C}], TWO, [2.0], class_weight="balanced", selection=3)
    y, K, wrong = TWO[TRAIN], GRAMS[1][np.ix_(TRAIN, TRAIN)], 0
    for rest, held in RepeatedStratifiedKFold(n_splits=3, n_repeats=1, random_state=0).split(y, y):
        machine = SVC(C=C, kernel="precomputed", class_weight="balanced", tol=1e-9)
        machine.fit(K[np.ix_(rest, rest)], y[rest])
        wrong += (machine.predict(K[np.ix_(held, rest)]) != y[held]).sum()
    assert tree["uniform"].validation_error.item() == pytest.approx(wrong / len(y))


def test_a_model_of_all_rows_has_their_weights():
    swept([{"name": "uniform", "C": C}], TWO, class_weight="balanced", weights=WEIGHTS)
    called("fit", "results/mine", "-o", "mine.model")
    model = mkldist.load_model("mine.model")
    used = np.flatnonzero(WEIGHTS)
    y = np.where(TWO[used] == "yes", 1.0, -1.0)
    bank, of_rows = GRAMS[:, used[:, None], used], balanced(TWO[used], WEIGHTS[used])
    solution = mkldist.solve("uniform", bank, y, weights=of_rows, C=C, tol=1e-8)
    assert model.facts["objective"] == pytest.approx(solution.objective, rel=1e-6)
    values = solution.decision_function(GRAMS[:, :, used])
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-4)


def test_a_changed_weight_runs_anew_and_the_same_one_does_not():
    def n_runs() -> int:
        return len(Journal(Path("results/mine/records.journal")).states())

    counts = []
    for asked in ("balanced", {"yes": 3.0}, "balanced"):
        swept([{"name": "majority"}], TWO, class_weight=asked)
        counts.append(n_runs())
    swept([{"name": "majority"}], TWO, class_weight="balanced", weights=WEIGHTS)
    assert [*counts, n_runs()] == [1, 2, 2, 3]


def test_a_class_of_weight_zero_is_refused_by_its_name():
    with pytest.raises(DataError, match=r"weight 0 for all rows of class '1'.*\[\"0\", \"2\"\]"):
        swept([{"name": "level"}], THREE, weights=(THREE != "1").astype(float))


def test_methods_that_cannot_weigh_points_are_refused_and_those_that_can_named():
    for keys in ({"class_weight": "balanced"}, {"weights": WEIGHTS}):
        with pytest.raises(SpecError, match=r"easymkl.*mine.*weigh.*expected.*level.*svm"):
            swept([{"name": "level"}, {"name": "easymkl"}], TWO, **keys)
    assert not Path("results").exists()
