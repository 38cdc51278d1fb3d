"""Features of every kind, and files, by every way."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.datasets import dump_svmlight_file

import mkldist
from tests.fit.problems import FEW_KERNELS, METHODS, TEST, THREE, TRAIN, TWO, VALUES, N, X, given
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


def sparse_points() -> csr_array:
    """Return sparse counts, (n, 30)."""
    points = csr_array(random_array((N, 30), density=0.2, rng=np.random.default_rng(0)))
    points.data[:] = np.round(9 * points.data) + 1
    return points


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


@pytest.mark.slow
def test_categories(tmp_path):
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


FRAME = pd.DataFrame(X, columns=NAMES)
BANK = {"kernels": FEW_KERNELS}
LEVEL = {"name": "level", "C": 10.0}


def write(rows: pd.DataFrame, kind: str, folder: Path) -> Path:
    """Write rows to a file of some kind."""
    file = folder / f"new.{kind}"
    if kind == "csv":
        rows.to_csv(file, index=False)
    elif kind == "tsv":
        rows.to_csv(file, index=False, sep="\t")
    elif kind == "csv.gz":
        rows.to_csv(file, index=False)
    elif kind == "parquet":
        rows.to_parquet(file)
    elif kind == "npz":
        np.savez(file, x=rows.to_numpy(), feature_names=np.array(list(rows)))
    else:
        dump_svmlight_file(rows.to_numpy(), np.zeros(len(rows)), str(file), zero_based=False)
    return file


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """Return the model of a table that lacks values, and decision values of the test rows."""
    folder = tmp_path_factory.mktemp("two")
    frame = pd.DataFrame(with_gaps(), columns=NAMES)
    datasets = [{"name": "mine", "label": "label", "impute": "median"}]
    data = {"mine": split_table(frame)}
    tree = sweep(folder / "r", data, [LEVEL], BANK, datasets=datasets, splits=BY_COLUMN)
    model_of(folder / "r", folder / "a.model")
    return folder / "a.model", by_sweep(tree["mine/level"], TEST).values


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "npz"])
def test_tables_of_every_kind(kind, two, tmp_path):
    file, expected = two
    rows = pd.DataFrame(with_gaps(), columns=NAMES).iloc[TEST, ::-1]
    found = predicted(file, write(rows, kind, tmp_path))
    assert_near(found["decision"], expected)
    model = mkldist.load_model(file)
    np.testing.assert_array_equal(found["decision"], model.decision_function(rows))
    assert found["prediction"].tolist() == model.predict(rows).tolist()
    assert set(found["prediction"]) == {"no", "yes"}


@pytest.mark.parametrize("kind", ["npz", "svm"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_arrays_without_names(kind, is_sparse, tmp_path):
    points = sparse_points()
    dump_svmlight_file(points, TWO, str(tmp_path / "all.svm"), zero_based=False)
    entry = {"name": "mine", "file": str(tmp_path / "all.svm"), "sparse": is_sparse}
    kernels = [{"function": "gaussian", "widths": [10.0, 30.0]}, {"function": "linear"}]
    sweep(
        tmp_path / "r", {}, [{"name": "primalmkl", "C": 10.0}], {"kernels": kernels},
        datasets=[entry],
        preprocessing={"scale": "none"}, splits={"kind": "holdout"},
    )  # fmt: skip
    node = mkldist.open_results(tmp_path / "r")["mine/primalmkl"]
    values = node.decision_values.values.squeeze()
    test = np.flatnonzero(~np.isnan(values))
    assert len(test) == len(TWO) // 2
    model = model_of(tmp_path / "r", tmp_path / "a.model")
    rows = points[test] if is_sparse else points[test].toarray()
    assert_near(model.decision_function(rows), values[test])
    if kind == "svm":
        file = tmp_path / "new.svm"
        dump_svmlight_file(points[test], np.zeros(len(test)), str(file), zero_based=False)
    elif is_sparse:
        file = tmp_path / "new.npz"
        parts = {name: getattr(rows, name) for name in ("data", "indices", "indptr", "shape")}
        np.savez(file, **parts)
    else:
        file = tmp_path / "new.npz"
        np.savez(file, x=rows)
    assert_near(predicted(tmp_path / "a.model", file)["decision"], values[test])


@pytest.mark.slow
def test_three_classes_and_real_values(tmp_path):
    names = np.array(["low", "middle", "high"])[THREE]
    sweep(tmp_path / "three", given(names, feature_names=NAMES), [LEVEL], BANK)
    model = model_of(tmp_path / "three", tmp_path / "three.model")
    rows = FRAME.iloc[TEST]
    found = predicted(tmp_path / "three.model", write(rows, "csv", tmp_path))
    assert found["prediction"].tolist() == model.predict(rows).tolist()
    columns = [name for name in found if name.startswith("decision[")]
    assert sorted(columns) == ["decision[high]", "decision[low]", "decision[middle]"]
    np.testing.assert_array_equal(found[columns], model.decision_function(rows))

    datasets = [{"name": "mine", "task": "regression"}]
    entry = {"name": "primalmkl", "loss": "squared", "C": 100.0}
    sweep(tmp_path / "values", given(VALUES, feature_names=NAMES), [entry], BANK, datasets=datasets)
    model = model_of(tmp_path / "values", tmp_path / "values.model")
    found = predicted(tmp_path / "values.model", write(rows, "parquet", tmp_path))
    assert list(found) == ["prediction"]
    np.testing.assert_array_equal(found["prediction"], model.predict(rows))


def test_a_file_of_an_estimator_predicts_files(tmp_path):
    fitted = mkldist.MKLClassifier(kernels=FEW_KERNELS).fit(FRAME.iloc[TRAIN], THREE[TRAIN])
    fitted.to_model().save(tmp_path / "a.model")
    rows = FRAME.iloc[TEST]
    found = predicted(tmp_path / "a.model", write(rows, "csv", tmp_path))
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
