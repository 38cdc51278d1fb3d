"""Models of columns of texts, of which they keep those `used_texts`, against sweeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.core.checksums import unframed
from mkldist.errors import DataError
from mkldist.fit.predictions import write_predictions
from mkldist.fit.select import choose, refit
from mkldist.results.schema import RunState
from tests.refit.sweeps import recorded
from tests.refit.test_views import chosen, swept

N = 54
SWEEP = """
name = "texts"
tol = 1e-4
[[datasets]]
name = "proteins"
file = "t.csv"
id = "id"
texts = ["note", "chain"]
impute = "median"
[[datasets.views]]
name = "dna"
columns = ["chain"]
missing = "zero"
[[datasets.views]]
name = "folds"
file = "folds.csv"
texts = ["rna", "motif"]
missing = "zero"
[splits]
repeats = 1
[[banks]]
normalisation = {normalisation}
[[banks.kernels]]
function = "gaussian"
widths = 1
features = ["all", "each"]
[[banks.kernels]]
function = "spectrum"
length = [1, 2]
features = ["chain", "folds.rna"]
[[methods]]
name = "uniform"
[[methods]]
name = "level"
[[methods]]
name = "best_single"
[outputs]
predictions = true
"""


def write_tables(folder: Path) -> None:
    """Write points of a number and texts, some of which lack a text or a row of the second file."""
    rng = np.random.default_rng(5)
    y = [row % 3 for row in range(N)]
    frame = pd.DataFrame(
        {
            "id": [f"p{i:02d}" for i in range(N)],
            "note": "some",
            "x": np.round(rng.normal(size=N) + y, 3),
            "chain": ["".join(rng.choice(list("abc"), 4)) + "äb" * 2 * (one > 0) for one in y],
            "label": np.array(["a", "b", "c"])[y],
        }
    )
    frame.loc[::5, "chain"] = ""
    frame.loc[[5, 21], "x"] = np.nan
    frame.to_csv(folder / "t.csv", index=False)
    folds = pd.DataFrame(
        {
            "id": frame["id"],
            "rna": ["".join(rng.choice(list("ug"), 5)) + "gg" * one for one in y],
            "motif": "-",
            "size": rng.normal(size=N) + (np.array(y) == 1),
        }
    )
    folds.iloc[::-1].drop(index=[2, 7, 11, 40]).to_csv(folder / "folds.csv", index=False)


@pytest.fixture(scope="module", params=['"trace"', '"cosine"', '"none"'])
def folder(request, tmp_path_factory) -> Path:
    """Return a folder with two tables and the results of a sweep over them."""
    folder = tmp_path_factory.mktemp("texts")
    write_tables(folder)
    swept(folder, SWEEP.format(normalisation=request.param))
    return folder


@pytest.mark.slow
def test_texts_are_predicted_as_in_the_sweep(folder, tmp_path):
    records = recorded(folder / "results")
    assert {record.state for record in records} == {RunState.COMPLETE}
    table = pd.read_csv(folder / "t.csv", keep_default_na=False, na_values={"x": ""})
    folds = pd.read_csv(folder / "folds.csv")
    lacked = 0
    for record in records:
        refit(folder / "results", chosen(record), record.split).save(tmp_path / "a.model")
        model = mkldist.load_model(tmp_path / "a.model")
        new = table.iloc[record.test_rows].drop(columns=["label", "note"])
        given = dict.fromkeys(model.needed_views, folds)
        found = model.decision_function(new, given)
        np.testing.assert_allclose(found, record.decision_values.T, rtol=0, atol=1e-10)
        new.iloc[:, ::-1].to_csv(tmp_path / "new.csv", index=False)
        files = dict.fromkeys(model.needed_views, folder / "folds.csv")
        write_predictions(
            model, tmp_path / "new.csv", tmp_path / "out.csv", views=files, overwrite=True
        )
        written = pd.read_csv(tmp_path / "out.csv").filter(like="decision")
        np.testing.assert_allclose(written, record.decision_values.T, rtol=0, atol=1e-10)
        lacked += int((new["chain"] == "").sum())
    assert lacked > 0


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """Return the results of a sweep in which texts of the table alone matter."""
    folder = tmp_path_factory.mktemp("one")
    write_tables(folder)
    text = SWEEP.format(normalisation='"trace"').replace('"folds.rna"', '"note"')
    swept(folder, text.split("[[methods]]")[0] + '[[methods]]\nname = "level"\nC = 10\n')
    return folder / "results"


@pytest.mark.slow
def test_only_texts_of_used_columns_are_kept(results, tmp_path):
    model = refit(results, choose(results))
    assert model.texts == {"chain": True}
    assert model.columns.texts == ("chain",)
    assert set(model.columns.others) == {"id", "note"}
    assert model.view_columns["folds"].texts == ()
    assert model.kernel_weights["kernel"].str.contains(r"spectrum\(\d\)\[chain\]").any()
    model.save(tmp_path / "a.model")
    content = (tmp_path / "a.model").read_bytes()
    _, arrays = unframed(content) or ({}, {})
    assert mkldist.load_model(tmp_path / "a.model").texts == model.texts
    kept = arrays["texts.content"].tobytes().decode()
    assert "äbäb" in kept
    assert "some" not in kept
    assert "-" not in kept
    assert arrays["texts.ends"].shape[1] == 1


@pytest.mark.slow
def test_tables_and_arrays_of_new_rows_are_predicted_alike(results, tmp_path):
    pytest.importorskip("pyarrow")
    model = refit(results, choose(results))
    rows = pd.DataFrame({"chain": ["abcä", "", "bb"], "x": [0.5, 1.0, np.nan], "id": list("pqr")})
    folds = pd.DataFrame({"id": ["p", "r"], "size": [0.1, 0.2]})
    views = {"folds": folds} if "folds" in model.needed_views else {}
    expected = model.decision_function(rows, views)
    none = rows.assign(chain=["abcä", None, "bb"])
    np.testing.assert_array_equal(model.decision_function(none, views), expected)
    rows.to_csv(tmp_path / "n.csv", index=False)
    none.to_parquet(tmp_path / "n.parquet")
    np.savez(
        tmp_path / "n.npz",
        x=rows[["x"]],
        chain=rows["chain"].to_numpy(str),
        id=np.array(list("pqr")),
    )
    folds.to_csv(tmp_path / "folds.csv", index=False)
    files = dict.fromkeys(views, tmp_path / "folds.csv")
    for ending in ("csv", "parquet", "npz"):
        out = tmp_path / f"{ending}-out.csv"
        write_predictions(model, tmp_path / f"n.{ending}", out, views=files)
        found = pd.read_csv(out).filter(like="decision")
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows.drop(columns="chain"), "X: found no column 'chain'; expected the 2"),
        (lambda rows: rows.rename(columns={"chain": "chains"}), "Did you mean 'chains'"),
        (lambda rows: rows[["x"]].to_numpy(), r"X: found an array.*columns of texts \('chain'\)"),
    ],
    ids=["missing", "renamed", "array"],
)
def test_rows_without_a_column_of_texts_are_refused(change, said, results):
    model = refit(results, choose(results))
    rows = pd.DataFrame({"chain": ["ab"], "x": [0.5], "id": ["p"]})
    views = {name: pd.DataFrame({"id": ["p"], "size": [0.1]}) for name in model.needed_views}
    with pytest.raises(DataError, match=said):
        model.predict(change(rows), views)


def test_texts_alone_make_a_model_that_knows_no_row_without_them(tmp_path):
    write_tables(tmp_path)
    table = pd.read_csv(tmp_path / "t.csv", keep_default_na=False)
    table = table[table["chain"] != ""]
    np.savez(tmp_path / "t.npz", y=table["label"].to_numpy(str), s=table["chain"].to_numpy(str))
    results = swept(
        tmp_path,
        'name = "alone"\n[[datasets]]\nname = "d"\nfile = "t.npz"\ntexts = ["s"]\n'
        "[splits]\nrepeats = 1\n[[banks]]\n[[banks.kernels]]\n"
        'function = "spectrum"\nlength = [1, 2]\nfeatures = "s"\n'
        '[[methods]]\nname = "uniform"\n[outputs]\npredictions = true\n',
    )
    [record] = recorded(results)
    refit(results, chosen(record), record.split).save(tmp_path / "a.model")
    model = mkldist.load_model(tmp_path / "a.model")
    texts = table["chain"].to_numpy(str)[record.test_rows]
    np.savez(tmp_path / "new.npz", s=texts)
    write_predictions(model, tmp_path / "new.npz", tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv").filter(like="decision")
    np.testing.assert_allclose(found, record.decision_values.T, rtol=0, atol=1e-10)
    frame = pd.DataFrame({"s": texts})
    np.testing.assert_array_equal(model.decision_function(frame), found)
    with pytest.raises(
        DataError, match=r"X: found no text in column 's' for row 1 \(from 0\); expected"
    ):
        model.predict(pd.DataFrame({"s": ["ab", ""]}))
