"""Features of every kind, and files, by every way."""

import json

import numpy as np
import pandas as pd
import pytest

import mkldist
from tests.fit.problems import FEW_KERNELS, METHODS, TEST, THREE, TRAIN, TWO, N, X, given
from tests.fit.ways import (
    TOL,
    assert_model,
    assert_near,
    by_estimator,
    by_solve,
    by_sweep,
    called,
    model_of,
    predicted,
    standardised,
    sweep,
)

LABELS = TWO[TRAIN]
METHOD = {"name": "level", "C": 10.0}
SETTINGS = {"C": 10.0, "normalisation": "trace", "tol": TOL}
NAMES = ["age", "dose", "ratio", "score"]


def with_gaps() -> np.ndarray:
    """Return the features, some of which are missing."""
    draw = np.random.default_rng(8)
    return np.where(draw.random(X.shape) < 0.1, np.nan, X)


def filled(x: np.ndarray, how: str, rows: np.ndarray) -> np.ndarray:
    """Return features whose gaps hold the median or the mean of some rows."""
    middle = {"median": np.nanmedian, "mean": np.nanmean}[how](x[rows], axis=0)
    return np.where(np.isnan(x), middle, x)


def scaled(x: np.ndarray, how: str, rows: np.ndarray) -> np.ndarray:
    """Return features as a sweep scales them on some rows."""
    if how == "none":
        return x
    if how == "zscore":
        return standardised(x, rows)
    low, high = x[rows].min(axis=0), x[rows].max(axis=0)
    return 2.0 * (x - low) / (high - low) - 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "impute", "fit"),
    [
        ("zscore", None, "train"),
        ("minmax", None, "train"),
        ("none", None, "train"),
        ("zscore", "median", "train"),
        ("minmax", "mean", "train"),
        ("zscore", "mean", "all"),
    ],
)
def test_preparation(scale, impute, fit, tmp_path):
    x = X if impute is None else with_gaps()
    rows = np.arange(N) if fit == "all" else TRAIN
    whole = x if impute is None else filled(x, impute, rows)
    points = scaled(whole, scale, rows)
    bank = mkldist.KernelBank(points[TRAIN], FEW_KERNELS, normalisation="trace")
    expected = by_solve("level", bank, LABELS, points[TEST], C=10.0)

    datasets = [{"name": "mine", **({"impute": impute} if impute else {})}]
    tree = sweep(
        tmp_path / "r", given(TWO, x), [METHOD], {"kernels": FEW_KERNELS},
        datasets=datasets, preprocessing={"scale": scale, "fit": fit},
    )  # fmt: skip
    if fit == "train":
        expected.assert_near(by_sweep(tree["mine/level"], TEST))
        model = model_of(tmp_path / "r", tmp_path / "a.model")
        assert_model(model, expected, x[TEST])
        fitted = mkldist.MKLClassifier(
            kernels=FEW_KERNELS, impute=impute, scale=None if scale == "none" else scale,
            **SETTINGS,
        ).fit(x[TRAIN], LABELS)  # fmt: skip
        kept = fitted.to_model()
        assert_near(kept.decision_function(x[TEST]), expected.values)
        expected.assert_near(by_estimator(fitted, x[TEST]))
    else:  # kernels are normalised on all rows too
        model = model_of(tmp_path / "r", tmp_path / "a.model")
        found = by_sweep(tree["mine/level"], TEST)
        assert_model(model, found, x[TEST])


def table_of_texts() -> pd.DataFrame:
    """Return a number and a text a row."""
    draw = np.random.default_rng(5)
    texts = ["".join(draw.choice(list("abc"), 6)) + "ab" * (1 + one) for one in TWO]
    return pd.DataFrame({"age": X[:, 0], "dna": texts})


TEXT_KERNELS = [
    {"function": "gaussian", "widths": [1.0]},
    {"function": "spectrum", "length": [1, 2], "features": "dna"},
]


@pytest.mark.slow
def test_texts(tmp_path):
    table = table_of_texts()
    points = table.assign(age=standardised(table[["age"]].to_numpy(), TRAIN)[:, 0])
    settings = {"texts": ["dna"], "normalisation": "cosine"}
    bank = mkldist.KernelBank(points.iloc[TRAIN], TEXT_KERNELS, **settings)
    expected = by_solve("level", bank, LABELS, points.iloc[TEST], C=10.0)

    grams = [
        mkldist.kernels.spectrum_gram(table["dna"].tolist(), length=length) for length in (1, 2)
    ]
    own = np.array([_cosines(gram) for gram in grams])
    found = bank[[1, 2]]
    by_hand = mkldist.KernelBank.from_grams(own[:, TRAIN[:, None], TRAIN])
    by_solve("level", by_hand, LABELS, own[:, TEST[:, None], TRAIN], C=10.0).assert_near(
        by_solve("level", found, LABELS, points.iloc[TEST], C=10.0)
    )

    fitted = mkldist.MKLClassifier(
        kernels=TEXT_KERNELS, **{**SETTINGS, **settings}
    ).fit(table.iloc[TRAIN], LABELS)  # fmt: skip
    expected.assert_near(by_estimator(fitted, table.iloc[TEST]))
    fitted.to_model().save(tmp_path / "b.model")
    kept = mkldist.load_model(tmp_path / "b.model")
    assert_model(kept, expected, table.iloc[TEST])

    tree = sweep(
        tmp_path / "r", {"mine": split_table(table)}, [METHOD],
        {"kernels": TEXT_KERNELS, "normalisation": "cosine"},
        datasets=[{"name": "mine", "texts": ["dna"], "label": "label"}], splits=BY_COLUMN,
    )  # fmt: skip
    expected.assert_near(by_sweep(tree["mine/level"], TEST))
    model = model_of(tmp_path / "r", tmp_path / "a.model")
    assert_model(model, expected, table.iloc[TEST])
    table.iloc[TEST].to_csv(tmp_path / "new.csv", index=False)
    values = predicted(tmp_path / "a.model", tmp_path / "new.csv")["decision"]
    assert_near(values, expected.values)


BY_COLUMN = {"kind": "predefined", "column": "part"}


def split_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with labels and a column that says the part of each row."""
    part = np.full(N, "unlabelled", dtype=object)
    part[TRAIN], part[TEST] = "train", "test"
    part[part == "unlabelled"] = "test"
    return table.assign(part=part, label=np.where(TWO > 0, "yes", "no"))


def _cosines(gram: np.ndarray) -> np.ndarray:
    lengths = np.sqrt(np.diag(gram))
    return gram / np.outer(lengths, lengths)


LACKING = np.arange(N) % 4 == 1
VIEW_KERNELS = [
    {"function": "gaussian", "widths": [1.0, 3.0], "features": "views"},
    {"function": "linear", "features": "genes"},
]


def of_views() -> tuple[np.ndarray, np.ndarray]:
    """Return two views, the second of which a quarter of the rows lack."""
    genes = X[:, 2:].copy()
    genes[LACKING] = np.nan
    return X[:, :2], genes


def standardised_views() -> dict[str, np.ndarray]:
    """Return the views, scaled on the training rows that have them."""
    clinical, genes = of_views()
    own = genes[TRAIN]
    return {
        "clinical": standardised(clinical, TRAIN),
        "genes": (genes - np.nanmean(own, axis=0)) / np.nanstd(own, axis=0),
    }


def rows_of(views: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: x[rows] for name, x in views.items()}


@pytest.mark.slow
def test_views_that_rows_lack(tmp_path):
    views = standardised_views()
    bank = mkldist.KernelBank(
        rows_of(views, TRAIN), VIEW_KERNELS, missing="zero", normalisation="trace"
    )
    expected = by_solve("level", bank, LABELS, rows_of(views, TEST), C=10.0)
    x = np.hstack(of_views())
    frame = pd.DataFrame(x, columns=NAMES)

    fitted = mkldist.MKLClassifier(
        kernels=VIEW_KERNELS, views={"clinical": NAMES[:2], "genes": NAMES[2:]}, **SETTINGS
    ).fit(frame.iloc[TRAIN], LABELS)
    expected.assert_near(by_estimator(fitted, frame.iloc[TEST]))
    kept = fitted.to_model()
    assert_model(kept, expected, frame.iloc[TEST])

    entry = {
        "name": "mine", "label": "label", "impute": "median",
        "views": [
            {"name": "clinical", "columns": NAMES[:2]},
            {"name": "genes", "columns": NAMES[2:], "missing": "zero"},
        ],
    }  # fmt: skip
    tree = sweep(
        tmp_path / "r", {"mine": split_table(frame)}, [METHOD], {"kernels": VIEW_KERNELS},
        datasets=[entry], splits=BY_COLUMN,
    )  # fmt: skip
    expected.assert_near(by_sweep(tree["mine/level"], TEST))
    model = model_of(tmp_path / "r", tmp_path / "a.model")
    assert_model(model, expected, frame.iloc[TEST])
    frame.iloc[TEST].to_csv(tmp_path / "new.csv", index=False)
    values = predicted(tmp_path / "a.model", tmp_path / "new.csv")["decision"]
    assert_near(values, expected.values)


FRAME = pd.DataFrame(X, columns=NAMES)
BANK = {"kernels": FEW_KERNELS}
LEVEL = {"name": "level", "C": 10.0}


def test_a_file_of_an_estimator_predicts_files(tmp_path):
    fitted = mkldist.MKLClassifier(kernels=FEW_KERNELS).fit(FRAME.iloc[TRAIN], THREE[TRAIN])
    fitted.to_model().save(tmp_path / "a.model")
    rows = FRAME.iloc[TEST]
    rows.to_csv(tmp_path / "new.csv", index=False)
    found = predicted(tmp_path / "a.model", tmp_path / "new.csv")
    assert found["prediction"].tolist() == fitted.predict(rows).tolist()
    assert_near(found.filter(like="decision["), fitted.decision_function(rows))


def test_a_model_on_all_rows_is_an_estimator_on_all_rows(tmp_path):
    sweep(tmp_path / "r", given(TWO), [{"name": "level", "C": [1.0, 10.0]}], BANK)
    called("fit", tmp_path / "r", "-o", tmp_path / "a.model", "--set", "C=10")
    model = mkldist.load_model(tmp_path / "a.model")
    fitted = mkldist.MKLClassifier(
        C=10.0, kernels=FEW_KERNELS, normalisation="trace", tol=1e-8
    ).fit(X, TWO)
    assert_near(model.facts["objective"], fitted.objective_)
    assert_near(model.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize("method", ["level", "primalmkl", "uniform"])
def test_explanations_are_of_the_weights_and_decisions(method, tmp_path):
    params = dict(METHODS[method])
    data = given(TWO, X, feature_names=NAMES)
    tree = sweep(tmp_path / "r", data, [{"name": method, **params}], BANK)
    weights = tree[f"mine/{method}"].kernel_weights.squeeze().to_series()
    [told] = mkldist.explain(tmp_path / "r", method=method)
    fitted = mkldist.MKLClassifier(
        method, C=params.pop("C", 1.0), kernels=FEW_KERNELS, normalisation="trace", tol=TOL,
        method_params=params,
    ).fit(FRAME.iloc[TRAIN], TWO[TRAIN])  # fmt: skip
    parts = fitted.contributions(FRAME.iloc[TEST], by="kernels")
    parts -= parts.mean()
    whole = parts.sum(axis=1)
    covered = 0.0
    for share in told.of("kernel"):
        assert_near(share.weight.mean, weights[share.name] / weights.sum())
        part = parts[share.name] if share.name in parts else 0.0 * whole
        # A bank that another run of this process has used may round otherwise.
        expected = (part * whole).sum() / (whole**2).sum()
        assert_near(share.decision.mean, expected, 10 * TOL, 1.0)
        covered += share.weight.mean
    assert covered == pytest.approx(1.0)


def test_the_command_explains_as_python_does(tmp_path):
    sweep(tmp_path / "r", given(TWO), [LEVEL], BANK)
    [told] = mkldist.explain(tmp_path / "r")
    [document] = json.loads(called("explain", tmp_path / "r", "--json"))["explanations"]
    assert document["method"] == "level"
    found = {(one["level"], one["name"]): one["weight"]["mean"] for one in document["shares"]}
    assert found == {(one.level, one.name): one.weight.mean for one in told.shares}
