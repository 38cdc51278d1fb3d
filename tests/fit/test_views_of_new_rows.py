"""Views and texts that new rows bring."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.core.checksums import unframed
from mkldist.data.dataset import SourceColumns, View
from mkldist.errors import DataError
from mkldist.fit.new_rows import ViewRows
from mkldist.fit.predictions import write_predictions
from mkldist.fit.select import choose, refit
from mkldist.results.schema import RunState
from tests.fit.made_up import GIVEN, made_up_views
from tests.fit.sweeps import chosen, recorded
from tests.fit.test_models_of_views import swept

NAN = np.nan


def view(ids: list[str] | None, *, required: bool = False) -> ViewRows:
    """Return two rows of a view of two features."""
    names = None if ids is None else np.array(ids)
    return ViewRows("v", np.array([[1.0, 2.0], [3.0, 4.0]]), names, "v.csv", required)


def test_rows_are_joined_by_ids_block_by_block():
    one = view(["y", "x"])
    np.testing.assert_array_equal(one.joined(["x"], 1)[0], [[3.0, 4.0]])
    np.testing.assert_array_equal(one.joined(["z", "x"], 2)[0], [[NAN, NAN], [3.0, 4.0]])
    assert one.check_end() == ("view 'v': 1 of its 2 rows are not in the table and left out (y)")


def test_rows_without_ids_have_the_order_of_the_table():
    one = view(None)
    np.testing.assert_array_equal(one.joined(["x"], 1)[0], [[1.0, 2.0]])
    with pytest.raises(DataError, match=r"v\.csv: found 2 rows without ids, another number"):
        one.check_end()
    np.testing.assert_array_equal(one.joined(None, 1)[0], [[3.0, 4.0]])
    assert one.check_end() == ""
    with pytest.raises(DataError, match="2 rows without ids, another number"):
        one.joined(None, 1)


def test_rows_that_must_have_the_view_are_named():
    said = r"v\.csv: found no value of view 'v' for z; expected a value of the view for each row"
    with pytest.raises(DataError, match=said):
        view(["y", "x"], required=True).joined(["x", "z"], 2)


def test_ids_stand_in_both():
    with pytest.raises(DataError, match="ids, but the table has none"):
        view(["y", "x"]).joined(None, 2)


def test_kernel_values_are_those_with_the_anchors_that_have_the_view():
    whole = np.arange(1.0, 17.0).reshape(2, 2, 4)
    expected = np.stack([whole[..., 0], whole[..., 2], np.zeros((2, 2))], axis=-1)
    np.testing.assert_array_equal(GIVEN.values("k", whole, None, "k"), expected)
    order = [3, 2, 0]
    named = np.array(["s", "r", "p"])
    np.testing.assert_array_equal(GIVEN.values("k", whole[..., order], named, "k"), expected)
    with pytest.raises(DataError, match=r"array 'points': found no 'r'; expected the 2 support"):
        GIVEN.values("k", whole[..., :2], np.array(["p", "q"]), "k")
    with pytest.raises(DataError, match=r"shape \(2, 4\); expected kernel values \(2, t rows, 4\)"):
        GIVEN.values("k", whole[0], None, "k")


def test_a_model_of_views_is_its_formula_and_reads_back(tmp_path):
    model = made_up_views()
    model.save(tmp_path / "a.model")
    again = mkldist.load_model(tmp_path / "a.model")
    table, b_and_c = np.array([[0.0], [7.0], [1.0]]), np.array([[1.0, 1.0], [NAN, NAN], [2.0, 0.0]])
    between = np.zeros((2, 3, 4))
    between[1] = [[1.0, 9.0, 2.0, 9.0], [NAN] * 4, [3.0, 9.0, 0.0, 9.0]]
    # 2 [(b + 2c) - 3b] + 10 [K_0 + 4 K_2] + 1/2, zero where a row lacks the view
    expected = [2 * (3.0 - 3.0) + 10 * 9.0 + 0.5, 0.5, 2 * (2.0 - 6.0) + 10 * 3.0 + 0.5]
    between[0, 1] = NAN
    for one in (model, again):
        found = one.decision_function(table, {"v": b_and_c, "k": between})
        np.testing.assert_allclose(found, expected)
    assert again.needed_views == ("v", "k")
    assert again.kernel_weights["kernel"].tolist() == ["linear[v]", "precomputed(1)[k]"]
    assert again.views == model.views
    assert again.view_columns == model.view_columns
    assert again.given == model.given


def test_a_view_that_no_kernel_uses_is_not_needed(tmp_path):
    model = made_up_views()
    [function] = model.functions
    own = replace(
        function, given=(), rows=None, index=function.index[:1], weights=function.weights[:1]
    )
    without = replace(model, functions=(own,))
    assert without.needed_views == ("v",)
    (tmp_path / "v.csv").write_text("row,b,c\nx,1,2\n")
    (tmp_path / "t.csv").write_text("row,a\nx,1\n")
    files = {"v": tmp_path / "v.csv", "k": tmp_path / "nothing.npz"}
    done = write_predictions(without, tmp_path / "t.csv", tmp_path / "out.csv", views=files)
    assert done.notes == ("view 'k': no active kernel uses it, and it is not read",)
    assert (done.n_rows, done.unseen) == (1, Counter())


def test_files_of_views_are_tables_and_kernel_values(tmp_path):
    (tmp_path / "v.csv").write_text("c,row,b,note\n2,x,1,-\n4,y,3,-\n")
    values = np.arange(1.0, 13.0).reshape(2, 2, 3)
    np.savez(tmp_path / "k.npz", grams=values, ids=["x", "y"], points=["p", "r", "new"])
    paths = {"v": tmp_path / "v.csv", "k": tmp_path / "k.npz"}
    [table, given] = made_up_views().join(paths, "--view", ["v.note"])
    np.testing.assert_array_equal(table.joined(["y"], 1)[0], [[3.0, 4.0]])
    expected = np.concatenate([values[:, 1:, :2], np.zeros((2, 1, 1))], axis=-1)
    np.testing.assert_array_equal(given.joined(["y"], 1)[0], expected)
    with pytest.raises(DataError, match=r"column 'note', unknown to the model.*--ignore v\.note"):
        made_up_views().join(paths, "--view")
    (tmp_path / "v.csv").write_text("b,c\n2,1\n")
    with pytest.raises(DataError, match=r"v\.csv: found no column 'row', which names the rows"):
        made_up_views().join(paths, "--view")


def test_square_matrices_of_fitted_rows_have_their_ids_on_both_sides(tmp_path):
    square = np.arange(18.0).reshape(2, 3, 3)
    np.savez(tmp_path / "k.npz", grams=square, ids=["r", "p", "new"])
    (tmp_path / "v.csv").write_text("row,b,c\n")
    paths = {"v": tmp_path / "v.csv", "k": tmp_path / "k.npz"}
    [_, given] = made_up_views().join(paths, "--view")
    np.testing.assert_array_equal(given.joined(["new"], 1)[0][..., :2], square[:, 2:, [1, 0]])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("k.csv", b"a", "a file ending in '.csv'; expected .npz, .npy, .mat"),
        ("k.npy", b"no", "a .npy file that is cut short"),
        ("k.npz", b"no", "k.npz"),
    ],
)
def test_files_of_kernel_values_are_checked(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    (tmp_path / "v.csv").write_text("row,b,c\n")
    with pytest.raises(DataError, match=said):
        made_up_views().join({"v": tmp_path / "v.csv", "k": tmp_path / name}, "--view")


def test_an_array_of_kernel_values_has_no_names(tmp_path):
    (tmp_path / "v.csv").write_text("row,b,c\n")
    values = np.arange(16.0).reshape(2, 2, 4)
    for name in ("k.npy", "K.NPY"):
        with (tmp_path / name).open("wb") as file:
            np.save(file, values)
        paths = {"v": tmp_path / "v.csv", "k": tmp_path / name}
        [_, given] = made_up_views().join(paths, "--view")
        assert given.ids is None
        np.testing.assert_array_equal(given.joined(None, 2)[0][..., :2], values[..., [0, 2]])


def test_arrays_of_a_view_have_named_features_or_those_in_order(tmp_path):
    columns = SourceColumns(("b", "c"), id="row", others=("row",))
    model = replace(made_up_views(), view_columns={"v": columns})
    np.savez(tmp_path / "k.npz", grams=np.ones((1, 2, 4)), ids=["x", "y"])
    names = {"feature_names": ["c", "b"], "row": ["x", "y"]}
    np.savez(tmp_path / "v.npz", x=[[2.0, 1.0], [4.0, 3.0]], **names)
    paths = {"v": tmp_path / "v.npz", "k": tmp_path / "k.npz"}
    model = replace(model, given=replace(GIVEN, views={"k": replace(GIVEN.views["k"], n_grams=1)}))
    found = model.join(paths, "--view")
    np.testing.assert_array_equal(found[0].joined(["y"], 1)[0], [[3.0, 4.0]])
    assert not any(one.note for one in found)
    (tmp_path / "v.svm").write_text("0 1:1 2:2\n0 1:3 2:4\n")
    without = replace(model, view_columns={"v": SourceColumns(("b", "c"))})
    [note] = [one.note for one in without.join({**paths, "v": tmp_path / "v.svm"}, "-") if one.note]
    assert note.startswith("view 'v': its features have no names and are taken by their position")


def test_rows_must_have_a_view_that_the_model_knows_no_row_without():
    model = replace(made_up_views(), views={"v": View((1, 2))})
    values = {"v": np.array([[NAN, NAN]]), "k": np.zeros((2, 1, 4))}
    with pytest.raises(DataError, match="X: found no value of view 'v' for row 0"):
        model.predict([[1.0]], values)


def test_points_have_a_name_each(tmp_path):
    values = np.arange(16.0).reshape(2, 2, 4)
    np.savez(tmp_path / "k.npz", grams=values, points=["p", "r", "p", "q"])
    (tmp_path / "v.csv").write_text("row,b,c\n")
    paths = {"v": tmp_path / "v.csv", "k": tmp_path / "k.npz"}
    with pytest.raises(
        DataError, match=r"k\.npz, array 'points': found ids that occur more than o"
    ):
        made_up_views().join(paths, "--view")


def test_views_are_given_by_name():
    with pytest.raises(ValueError, match=r"views: found a list of rows without the names of their"):
        made_up_views().predict([[1.0]], [1, 2])


def test_frames_of_views_name_the_rows_of_x():
    model = made_up_views()
    names = ["p", "q"]
    x = pd.DataFrame(np.zeros((2, len(model.columns.names))), names, model.columns.names)
    own = pd.DataFrame(np.zeros((2, 1)), names[::-1])
    with pytest.raises(DataError, match=r"views\['.*'\]: found the names .* in another order"):
        model.predict(x, dict.fromkeys(model.needed_views, own))


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
def test_tables_of_new_rows_are_predicted_alike(results, tmp_path):
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
    folds.to_csv(tmp_path / "folds.csv", index=False)
    files = dict.fromkeys(views, tmp_path / "folds.csv")
    for ending in ("csv", "parquet"):
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
    table = table[["label", "chain"]].rename(columns={"chain": "s"})
    table.to_csv(tmp_path / "alone.csv", index=False)
    results = swept(
        tmp_path,
        'name = "alone"\n[[datasets]]\nname = "d"\nfile = "alone.csv"\ntexts = ["s"]\n'
        "[splits]\nrepeats = 1\n[[banks]]\n[[banks.kernels]]\n"
        'function = "spectrum"\nlength = [1, 2]\nfeatures = "s"\n'
        '[[methods]]\nname = "uniform"\n[outputs]\npredictions = true\n',
    )
    [record] = recorded(results)
    refit(results, chosen(record), record.split).save(tmp_path / "a.model")
    model = mkldist.load_model(tmp_path / "a.model")
    frame = table[["s"]].iloc[record.test_rows]
    frame.to_csv(tmp_path / "new.csv", index=False)
    write_predictions(model, tmp_path / "new.csv", tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv").filter(like="decision")
    np.testing.assert_allclose(found, record.decision_values.T, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(frame), found, rtol=1e-12)
    with pytest.raises(
        DataError, match=r"X: found no text in column 's' for row 1 \(from 0\); expected"
    ):
        model.predict(pd.DataFrame({"s": ["ab", ""]}))
