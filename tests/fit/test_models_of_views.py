"""Models of views, their `anchors`, and sparse features against the predictions of sweeps."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

import mkldist
from mkldist.errors import DataError, InputError, UnknownCategoryWarning
from mkldist.fit.predictions import write_predictions
from mkldist.fit.select import choose, refit
from mkldist.results.schema import RunState
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep
from tests.fit.sweeps import POINTS, SPARSE_SWEEP, VIEWS, chosen, recorded, write_views

METHODS = """
[[methods]]
name = "uniform"
C = 50
[[methods]]
name = "easymkl"
[[methods]]
name = "best_single"
C = 50
"""


def swept(folder: Path, text: str) -> Path:
    """Run a sweep of this text; return the folder of its results."""
    file = folder / "mine.toml"
    file.write_text(text)
    run_sweep(load_sweep(file), origin=file, output=folder / "results")
    return folder / "results"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with three views of patients, who lack some, and a finished sweep."""
    folder = tmp_path_factory.mktemp("views")
    write_views(folder)
    genes = pd.read_csv(folder / "genes.csv", dtype={"patient": str})
    genes["const"] = 3.0
    genes["kind"] = np.where(np.arange(len(genes)) % 3, "x", "y")
    genes.to_csv(folder / "genes.csv", index=False)
    text = VIEWS.format(normalisation="trace", backend="auto", C=50.0) + METHODS
    text = text.replace('file = "genes.csv"', 'file = "genes.csv"\ncategorical = ["kind"]')
    swept(folder, text)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        ('missing = "zero"', 'missing = "impute"'),
        ("[splits]", '[preprocessing]\nfit = "all"\nscale = "minmax"\n[splits]'),
        ('"trace"', '["variance"]'),
        ('"trace"', '"none"'),
    ],
    ids=str,
)
def test_other_preprocessing_is_that_of_the_sweep(change, tmp_path):
    write_views(tmp_path)
    text = VIEWS.format(normalisation="trace", backend="auto", C=50.0).replace(*change, 1)
    results = swept(tmp_path, text)
    table = pd.read_csv(tmp_path / "clinical.csv").drop(columns="ill")
    genes = pd.read_csv(tmp_path / "genes.csv", dtype={"patient": str})
    for record in recorded(results):
        model = refit(results, chosen(record), record.split)
        values = cross_values(tmp_path, model, record.test_rows)
        names = table["patient"].iloc[record.test_rows].tolist()
        whole = np.zeros((len(names), len(model.given.names)))
        for name, row in zip(values["ids"].tolist(), values["grams"], strict=True):
            place = [model.given.names.index(point) for point in values["points"].tolist()]
            whole[names.index(name), place] = row
        found = model.decision_function(
            table.iloc[record.test_rows], {"genes": genes, "strings": whole}
        )
        np.testing.assert_allclose(found, record.decision_values, rtol=0, atol=1e-10)


def cross_values(folder: Path, model: mkldist.Model, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return the given kernel between some patients and those of a model, as a user computes it."""
    with np.load(folder / "strings.npz") as archive:
        grams, ids = archive["grams"], archive["ids"].tolist()
    names = [f"p{i:02d}" for i in rows.tolist()]
    known = [name for name in names if name in ids]
    fitted = [name for name in model.given.names if name in ids]
    place = [ids.index(name) for name in fitted]
    between = grams[[ids.index(name) for name in known]][:, place]
    return {"grams": between, "ids": np.array(known), "points": np.array(fitted)}


@pytest.mark.slow
def test_views_are_predicted_as_in_the_sweep(folder, tmp_path):
    records = recorded(folder / "results")
    assert {record.state for record in records} == {RunState.COMPLETE}
    assert {record.method for record in records} == {"level", "uniform", "easymkl", "best_single"}
    table = pd.read_csv(folder / "clinical.csv")
    genes = pd.read_csv(folder / "genes.csv", dtype={"patient": str})
    lacked = 0
    for record in records:
        refit(folder / "results", chosen(record), record.split).save(tmp_path / "a.model")
        model = mkldist.load_model(tmp_path / "a.model")
        rows = record.test_rows
        new = table.iloc[rows].drop(columns="ill")
        names = new["patient"].tolist()
        new.to_csv(tmp_path / "new.csv", index=False)
        own = genes[genes["patient"].isin(names)].sample(frac=1.0, random_state=0)
        own.to_csv(tmp_path / "genes.csv", index=False)
        np.savez(tmp_path / "strings.npz", **cross_values(folder, model, rows))
        write_predictions(
            model,
            tmp_path / "new.csv",
            tmp_path / "out.csv",
            views={
                name: tmp_path / f"{name}.{'npz' if name == 'strings' else 'csv'}"
                for name in model.needed_views
            },
            overwrite=True,
        )
        found = pd.read_csv(tmp_path / "out.csv")
        assert found["patient"].tolist() == names
        np.testing.assert_allclose(found["decision"], record.decision_values, rtol=0, atol=1e-10)
        lacked += len(set(names) - set(own["patient"]))
    assert lacked > 0


def test_views_are_predicted_in_python_as_from_files(folder):
    results = folder / "results"
    model = refit(results, choose(results, method="uniform"))
    assert model.needed_views == ("genes", "strings")
    assert len(model.given.names) == 60
    table = pd.read_csv(folder / "clinical.csv").drop(columns="ill")
    genes = pd.read_csv(folder / "genes.csv", dtype={"patient": str})
    whole = np.zeros((60, 60))
    values = cross_values(folder, model, np.arange(60))
    rows = [model.given.names.index(name) for name in values["ids"].tolist()]
    columns = [model.given.names.index(name) for name in values["points"].tolist()]
    whole[np.ix_(rows, columns)] = values["grams"]
    joined = model.decision_function(table, {"genes": genes, "strings": whole})
    # The same without ids, in the order of the table.
    aligned = table[["patient"]].merge(genes, how="left").drop(columns="patient")
    with pytest.warns(UnknownCategoryWarning, match="'kind': 15 rows of unknown"):
        found = model.decision_function(table, {"genes": aligned, "strings": whole})
    lacking = ~table["patient"].isin(genes["patient"]).to_numpy()
    np.testing.assert_allclose(found[~lacking], joined[~lacking], rtol=0, atol=1e-12)
    # Kernels that are zero at a patient leave the others and the intercept.
    [function] = model.functions
    alone = model.decision_function(
        table.iloc[[0]].assign(age=1e9, bmi=1e9),
        {"genes": genes.iloc[:0], "strings": np.zeros((1, 60))},
    )
    np.testing.assert_allclose(alone, function.bias)


@pytest.mark.parametrize(
    ("views", "said"),
    [
        (
            {},
            "views: found no views 'genes', 'strings'; expected a table of 'genes'; kernel values "
            r"of 'strings'\. Name each: --view genes=FILE --view strings=FILE",
        ),
        (
            {"strings": 0},
            r"views: found no view 'genes'; expected a table of 'genes'.*--view genes=FILE",
        ),
        ({"gene": 0}, "views: found a view 'gene'; expected one of 'genes', 'strings'.*'genes'"),
        (
            {"genes": np.zeros((2, 5)), "strings": np.zeros((1, 60))},
            "DataFrame, for columns of categories",
        ),
        (
            {"genes": "all", "strings": np.zeros((2, 59))},
            r"views\['strings'\]: found kernel values with 59 rows of the data set; expected 60",
        ),
        (
            {"genes": "all", "strings": np.zeros((3, 60))},
            r"views\['strings'\]: found 3 rows without ids, another number than in the table",
        ),
        (
            {"genes": "others", "strings": np.zeros((2, 60))},
            "ids such as q, none of them in the table",
        ),
        ({"genes": "twice", "strings": np.zeros((2, 60))}, "ids that occur more than once: 'p01'"),
    ],
)
def test_views_that_do_not_fit_are_refused(views, said, folder):
    results = folder / "results"
    model = refit(results, choose(results, method="uniform"))
    table = pd.read_csv(folder / "clinical.csv").drop(columns="ill").iloc[:2]
    genes = pd.read_csv(folder / "genes.csv", dtype={"patient": str}).iloc[:2]
    tables = {
        "all": genes.assign(patient=["p00", "p01"]),
        "others": genes.iloc[:1].assign(patient="q"),
        "twice": genes.assign(patient="p01"),
    }
    given = {
        name: tables.get(one, one) if isinstance(one, str) else one for name, one in views.items()
    }
    with pytest.raises(DataError, match=said):
        model.predict(table, given)


@pytest.mark.parametrize(
    ("normalisation", "scale"), [("cosine", "none"), ("none", "none"), ("cosine", "tfidf")]
)
@pytest.mark.parametrize("ending", ["svm", "npz"])
@pytest.mark.slow
def test_sparse_features_are_predicted_as_in_the_sweep(normalisation, scale, ending, tmp_path):
    y = np.where(POINTS.sum(axis=1) > np.median(POINTS.sum(axis=1)), 1, -1)
    points, zero_based = POINTS.copy(), ending == "svm"  # an index 0 occurs in the sweep's file

    def write(rows: np.ndarray, path: Path) -> Path:
        part = points[rows]
        if ending == "svm":
            dump_svmlight_file(part, np.zeros(len(rows)), str(path), zero_based=zero_based)
        else:
            np.savez(
                path, data=part.data, indices=part.indices, indptr=part.indptr, shape=part.shape,
                y=y[rows],
            )  # fmt: skip
        return path

    if ending == "svm":
        dump_svmlight_file(points, y, str(tmp_path / "wide.svm"), zero_based=True)
    else:
        write(np.arange(60), tmp_path / "wide.npz")
    text = SPARSE_SWEEP.format(sparse="sparse = true").replace("wide.svm", f"wide.{ending}")
    text = text.replace('scale = "none"', f'scale = "{scale}"')
    results = swept(tmp_path, text.replace('"cosine"', f'"{normalisation}"'))
    records = recorded(results)
    assert {record.state for record in records} == {RunState.COMPLETE}
    for record in records:
        refit(results, chosen(record), record.split).save(tmp_path / "a.model")
        model = mkldist.load_model(tmp_path / "a.model")
        assert model.is_sparse
        new = write(record.test_rows, tmp_path / f"new.{ending}")
        write_predictions(model, new, tmp_path / "out.csv", overwrite=True)
        found = pd.read_csv(tmp_path / "out.csv")["decision"]
        np.testing.assert_allclose(found, record.decision_values, rtol=0, atol=1e-10)
        kept = points if model.columns.n_features == 40 else points[:, np.unique(points.indices)]
        in_python = model.decision_function(kept[record.test_rows])
        np.testing.assert_allclose(in_python, record.decision_values, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_features_that_a_sparse_model_does_not_know_are_told(tmp_path):
    y = np.where(POINTS.sum(axis=1) > np.median(POINTS.sum(axis=1)), 1, -1)
    dump_svmlight_file(POINTS, y, str(tmp_path / "wide.svm"), zero_based=False)
    results = swept(tmp_path, SPARSE_SWEEP.format(sparse="sparse = true"))
    model = refit(results, choose(results))
    (tmp_path / "new.svm").write_text("0 3:1 70:2 71:1\n0 4:1\n")
    (tmp_path / "known.svm").write_text("0 3:1\n0 4:1\n")
    done = write_predictions(model, tmp_path / "new.svm", tmp_path / "a.csv")
    assert done.notes == ("2 features that no row of the model's data has (f69, f70), left out",)
    write_predictions(model, tmp_path / "known.svm", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    (tmp_path / "zero.svm").write_text("0 0:1\n")
    with pytest.raises(DataError, match=r"zero\.svm: found an index 0; expected indices from 1"):
        write_predictions(model, tmp_path / "zero.svm", tmp_path / "c.csv")


def test_cosines_of_given_matrices_are_refused(tmp_path):
    write_views(tmp_path)
    results = swept(tmp_path, VIEWS.format(normalisation="cosine", backend="auto", C=50.0))
    with pytest.raises(InputError, match=r"\"cosine\" of Gram matrices of a view"):
        refit(results, choose(results))
