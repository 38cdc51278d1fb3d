"""Features of every kind by every way: scaled, missing, sparse, views, texts, given kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.metrics.pairwise import linear_kernel

import mkldist
from tests.fit.problems import FEW_KERNELS, TEST, TRAIN, TWO, N, X, given
from tests.fit.ways import (
    TOL,
    assert_model,
    assert_near,
    by_estimator,
    by_solve,
    by_sweep,
    model_of,
    predicted,
    standardised,
    sweep,
)

pytestmark = pytest.mark.slow

LABELS = TWO[TRAIN]
METHOD = {"name": "level", "C": 10.0}
SECOND = {"name": "primalmkl", "C": 100.0}
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
def test_preparation(scale: str, impute: str | None, fit: str, tmp_path: Path) -> None:
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


def sparse_points() -> csr_array:
    """Return sparse counts, (n, 30)."""
    points = csr_array(random_array((N, 30), density=0.2, rng=np.random.default_rng(0)))
    points.data[:] = np.round(9 * points.data) + 1
    return points


SPARSE_KERNELS = [
    {"function": "gaussian", "widths": [10.0, 30.0]},
    {"function": "linear"},
    {"function": "polynomial", "degrees": [2]},
]


@pytest.mark.parametrize("is_sparse", [True, False], ids=["sparse", "dense"])
def test_sparse_features(is_sparse: bool, tmp_path: Path) -> None:
    points = sparse_points()
    dense = points.toarray()
    bank = mkldist.KernelBank(dense[TRAIN], SPARSE_KERNELS, normalisation="trace")
    expected = by_solve("level", bank, LABELS, dense[TEST], C=10.0)
    x = points if is_sparse else dense

    own = mkldist.KernelBank(x[TRAIN], SPARSE_KERNELS, normalisation="trace")
    expected.assert_near(by_solve("level", own, LABELS, x[TEST], C=10.0))
    tree = sweep(
        tmp_path / "r", given(TWO, x), [METHOD], {"kernels": SPARSE_KERNELS},
        datasets=[{"name": "mine", "sparse": is_sparse, "drop_constant": False}],
        preprocessing={"scale": "none"},
    )  # fmt: skip
    expected.assert_near(by_sweep(tree["mine/level"], TEST))
    model = model_of(tmp_path / "r", tmp_path / "a.model")
    assert_model(model, expected, x[TEST])
    fitted = mkldist.MKLClassifier(kernels=SPARSE_KERNELS, impute=None, scale=None, **SETTINGS)
    fitted.fit(x[TRAIN], LABELS)
    expected.assert_near(by_estimator(fitted, x[TEST]))
    assert_near(fitted.to_model().decision_function(x[TEST]), expected.values)


def table_of_texts() -> pd.DataFrame:
    """Return a number and a text a row."""
    draw = np.random.default_rng(5)
    texts = ["".join(draw.choice(list("abc"), 6)) + "ab" * (1 + one) for one in TWO]
    return pd.DataFrame({"age": X[:, 0], "dna": texts})


TEXT_KERNELS = [
    {"function": "gaussian", "widths": [1.0]},
    {"function": "spectrum", "length": [1, 2], "features": "dna"},
]


def test_texts(tmp_path: Path) -> None:
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


def test_views_that_rows_lack(tmp_path: Path) -> None:
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


def given_kernel() -> np.ndarray:
    """Return a Gram matrix of all rows, zero for those that lack the view."""
    draw = np.random.default_rng(9)
    factors = draw.normal(size=(N, 3)) + 0.5 * TWO[:, None]
    factors[LACKING] = 0.0
    return linear_kernel(factors)


def test_given_kernels_beside_features(tmp_path: Path) -> None:
    points, gram = standardised(X, TRAIN), given_kernel()
    own = gram[np.ix_(TRAIN, TRAIN)].copy()
    lacking = LACKING[TRAIN]
    own[lacking], own[:, lacking] = np.nan, np.nan
    kernels = [*FEW_KERNELS, mkldist.kernels.Precomputed(own, name="strings")]
    bank = mkldist.KernelBank(points[TRAIN], kernels, missing="zero", normalisation="trace")
    between = gram[np.ix_(TEST, TRAIN)].copy()
    between[LACKING[TEST]] = np.nan
    between[:, lacking] = 0.0
    grams = {"strings": between}
    expected = by_solve("level", bank, LABELS, points[TEST], grams=grams, C=10.0)

    names = np.array([f"p{i:02d}" for i in range(N)])
    has = np.flatnonzero(~LACKING)[::-1]
    np.savez(tmp_path / "strings.npz", grams=gram[np.ix_(has, has)], ids=names[has])
    frame = pd.DataFrame(X, columns=NAMES)
    split_table(frame).assign(id=names).to_csv(tmp_path / "mine.csv", index=False)
    swept_kernels = [*FEW_KERNELS, {"function": "precomputed", "features": "strings"}]
    entry = {
        "name": "mine", "file": str(tmp_path / "mine.csv"), "label": "label", "id": "id",
        "views": [
            {"name": "table"},
            {"name": "strings", "grams": str(tmp_path / "strings.npz"), "missing": "zero"},
        ],
    }  # fmt: skip
    tree = sweep(
        tmp_path / "r",
        {},
        [METHOD, SECOND],
        {"kernels": swept_kernels},
        datasets=[entry],
        splits=BY_COLUMN,
    )
    expected.assert_near(by_sweep(tree["mine/level"], TEST))
    second = by_solve("primalmkl", bank, LABELS, points[TEST], grams=grams, C=100.0)
    second.assert_near(by_sweep(tree["mine/primalmkl"], TEST))

    model = model_of(tmp_path / "r", tmp_path / "a.model", "--method", "level")
    order = [names.tolist().index(name) for name in model.given.names]
    values = model.decision_function(
        frame.iloc[TEST], {"strings": np.where(LACKING[TEST, None], np.nan, gram[TEST][:, order])}
    )
    assert_near(values, expected.values)
    frame.iloc[TEST].assign(id=names[TEST]).to_csv(tmp_path / "new.csv", index=False)
    own_rows = TEST[~LACKING[TEST]]
    np.savez(
        tmp_path / "new.npz", grams=gram[np.ix_(own_rows, has)], ids=names[own_rows],
        points=names[has],
    )  # fmt: skip
    from_files = predicted(
        tmp_path / "a.model", tmp_path / "new.csv", "--view", f"strings={tmp_path / 'new.npz'}"
    )
    assert from_files["id"].tolist() == names[TEST].tolist()
    assert_near(from_files["decision"], expected.values)


def test_views_of_several_files(tmp_path: Path) -> None:
    clinical, genes = of_views()
    names = np.array([f"p{i:02d}" for i in range(N)])
    table = pd.DataFrame(clinical, columns=NAMES[:2]).assign(id=names)
    split_table(table).to_csv(tmp_path / "mine.csv", index=False)
    has = np.flatnonzero(~LACKING)[::-1]
    own = pd.DataFrame(genes[has], columns=NAMES[2:]).assign(sample=names[has])
    own.to_csv(tmp_path / "genes.csv", index=False)
    entry = {
        "name": "mine", "file": str(tmp_path / "mine.csv"), "label": "label", "id": "id",
        "views": [
            {"name": "clinical"},
            {
                "name": "genes", "file": str(tmp_path / "genes.csv"), "id": "sample",
                "missing": "zero",
            },
        ],
    }  # fmt: skip
    tree = sweep(
        tmp_path / "r", {}, [METHOD], {"kernels": VIEW_KERNELS}, datasets=[entry], splits=BY_COLUMN
    )
    views = standardised_views()
    bank = mkldist.KernelBank(
        rows_of(views, TRAIN), VIEW_KERNELS, missing="zero", normalisation="trace"
    )
    expected = by_solve("level", bank, LABELS, rows_of(views, TEST), C=10.0)
    expected.assert_near(by_sweep(tree["mine/level"], TEST))
    model = model_of(tmp_path / "r", tmp_path / "a.model")
    assert model.needed_views == ("genes",)
    assert_near(model.decision_function(table.iloc[TEST], {"genes": own}), expected.values)
    table.iloc[TEST].to_csv(tmp_path / "new.csv", index=False)
    own.to_parquet(tmp_path / "new.parquet")
    found = predicted(
        tmp_path / "a.model", tmp_path / "new.csv", "--view", f"genes={tmp_path / 'new.parquet'}"
    )
    assert_near(found["decision"], expected.values)


def test_categories(tmp_path: Path) -> None:
    sizes = np.random.default_rng(2).choice(["S", "M", "L"], N)
    frame = pd.DataFrame(X, columns=NAMES).assign(size=sizes)
    codes = (sizes[:, None] == np.unique(sizes)).astype(float)
    points = standardised(np.hstack([X, codes]), TRAIN)
    kernels = [{"function": "gaussian", "widths": [1.0, 3.0]}]
    bank = mkldist.KernelBank(points[TRAIN], kernels, normalisation="trace")
    expected = by_solve("level", bank, LABELS, points[TEST], C=10.0)
    tree = sweep(
        tmp_path / "r", {"mine": split_table(frame)}, [METHOD], {"kernels": kernels},
        datasets=[{"name": "mine", "label": "label", "categorical": ["size"]}], splits=BY_COLUMN,
    )  # fmt: skip
    expected.assert_near(by_sweep(tree["mine/level"], TEST))
    model = model_of(tmp_path / "r", tmp_path / "a.model")
    assert_model(model, expected, frame.iloc[TEST, ::-1])
