"""Data sets given in Python, from memory and from the files that hold them."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_matrix, csr_array

from mkldist.data.catalogue import load_dataset
from mkldist.data.inputs import SUFFIX, InputData, input_data, is_sound, read_inputs
from mkldist.data.splits import make_splits
from mkldist.data.tables import ColumnChoice
from mkldist.errors import DataError
from mkldist.spec.datasets import DatasetSpec, SplitsSpec

X = np.arange(12.0).reshape(6, 2)
Y = np.array([1, -1, 1, -1, 1, -1])


@pytest.mark.parametrize(
    "labels",
    [Y.tolist(), Y[:, None], pd.Series(Y, index=range(5, 11)), Y.astype(object)],
    ids=["list", "column", "series", "objects"],
)
def test_labels_have_any_form(labels):
    raw = input_data((X, labels), "data").raw_data(ColumnChoice(), "data")
    assert raw.labels.astype(float).tolist() == Y.tolist()


def test_features_have_any_form():
    for points in (X.tolist(), csr_array(X), X.astype(np.float32), X.astype(object)):
        raw = input_data((points, Y), "data").raw_data(ColumnChoice(), "data")
        np.testing.assert_array_equal(raw.x, X)
    frame = pd.DataFrame(X, columns=["a", "b"], index=range(9, 3, -1))
    raw = input_data((frame, Y), "data").raw_data(ColumnChoice(), "data")
    np.testing.assert_array_equal(raw.x, X)
    assert raw.feature_names == ("a", "b")
    named = input_data({"x": X, "y": Y, "feature_names": ["a", "b"]}, "data")
    assert named.raw_data(ColumnChoice(), "data").feature_names == ("a", "b")


@pytest.mark.parametrize("form", [csr_array, coo_matrix])
def test_sparse_features_stay_sparse_where_the_sweep_says_so(form, tmp_path):
    given = input_data({"x": form(X), "y": Y, "feature_names": ["a", "b"]}, "data")
    raw = given.raw_data(ColumnChoice(sparse=True), "data")
    assert raw.x is None
    np.testing.assert_array_equal(raw.sparse.toarray(), X)
    assert raw.feature_names == ("a", "b")
    file = tmp_path / f"kept-{given.id}.inputs.npz"
    given.save(file)
    kept = read_inputs(file, ColumnChoice(sparse=True), "data")
    np.testing.assert_array_equal(kept.sparse.toarray(), X)


@pytest.mark.parametrize("points", [X, pd.DataFrame(X), np.ones((2, 6, 6))])
def test_dense_features_are_no_sparse_ones(points):
    with pytest.raises(DataError, match=r"data.*: found sparse = true for dense features"):
        input_data((points, Y), "data").raw_data(ColumnChoice(sparse=True), "data")


def test_days_and_whole_numbers_are_spelled_as_in_files():
    given = {"x": X, "y": Y, "order": pd.date_range("2021-03-01", periods=6), "groups": [1.0] * 6}
    arrays = input_data(given, "data").arrays
    assert arrays["order"][0] == "2021-03-01"
    assert arrays["groups"].tolist() == ["1"] * 6
    times = {"x": X, "y": Y, "order": pd.date_range("2021-03-01 08:30", periods=6)}
    assert input_data(times, "data").arrays["order"][0] == "2021-03-01T08:30:00"


def test_columns_that_divide_rows_are_those_given_for_it():
    frame = pd.DataFrame(X, columns=["order", "groups"])
    assert input_data((frame, Y), "data").of_splits == ()
    assert input_data((X, Y, Y), "data").of_splits == ("groups",)
    assert input_data((frame[["order"]], Y, Y), "data").of_splits == ("groups",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mine.csv", r"data: found str; expected \(X, y\)"),
        ((X,), "data: found tuple"),
        ({"x": X}, "data: found keys x; expected x or grams, and y"),
        ({"x": X, "grams": X, "y": Y}, "expected x or grams, and y"),
        ({"x": X, "y": Y, "group": Y}, "unknown key 'group'.*Did you mean 'groups'"),
        (([[1, 2], [3]], [1, -1]), "data: X: found list"),
        ((X, np.c_[Y, Y]), r"data: y: found numpy.ndarray of shape \(6, 2\)"),
        ((X, Y, Y[:3]), "data: groups: found 3; expected 6, one a point"),
        ((X, Y, np.c_[Y, Y]), "data: groups: found numpy.ndarray of lists"),
        ((np.array([["a"] * 2] * 6, dtype=object), Y), "X: found values that are no numbers"),
        ((pd.DataFrame(X), Y[:3]), "6 rows of features but 3 labels"),
        ((pd.DataFrame(X, columns=["a", "label"]), Y), "a column 'label' in X, beside y"),
        ({"x": pd.DataFrame(X), "y": Y, "train": [0]}, "train beside a DataFrame; expected none"),
    ],
)
def test_anything_else_is_told(given, said):
    with pytest.raises(DataError, match=said):
        input_data(given, "data")


def test_bytes_are_texts_in_utf8():
    frame = pd.DataFrame(
        {"a": X[:, 0], "dna": [b"ac", "gé".encode()] * 3, "label": [b"p", b"q"] * 3}
    )
    choice = ColumnChoice("label", texts=("dna",))
    raw = input_data(frame, "data").raw_data(choice, "data")
    assert raw.texts is not None
    assert raw.texts.values.ravel().tolist() == ["ac", "gé"] * 3
    assert raw.labels.tolist() == ["p", "q"] * 3
    with pytest.raises(
        DataError, match=r"column 'dna', row 0 \(from 0\): found bytes that are not"
    ):
        input_data(frame.assign(dna=[b"\xff"] * 6), "data")


N = 12
RNG = np.random.default_rng(0)
GIVEN_FILES_X = RNG.normal(size=(N, 3))
GIVEN_FILES_Y = np.where(np.arange(N) % 3 == 0, "well", "ill")
GRAMS = np.array([GIVEN_FILES_X @ GIVEN_FILES_X.T, (1 + GIVEN_FILES_X @ GIVEN_FILES_X.T) ** 2])
FRAME = pd.DataFrame(
    {
        "age": np.arange(N),
        "dose": np.where(np.arange(N) == 4, np.nan, GIVEN_FILES_X[:, 0]),
        "smokes": np.arange(N) % 2 == 0,
        "sex": pd.Categorical(["f", "m", None, "f"] * 3),
        "ward": pd.array([1, 2, None] * 4, dtype="Int64"),
        "day": pd.date_range("2021-03-01", periods=N),
        "disease": GIVEN_FILES_Y,
    }
)
ENTRIES = {
    "arrays": ((GIVEN_FILES_X, GIVEN_FILES_Y), {}, {}),
    "numbers": ((GIVEN_FILES_X, np.arange(N) % 2), {}, {}),
    "groups": ((GIVEN_FILES_X, GIVEN_FILES_Y, np.repeat(range(6), 2)), {}, {"groups": "groups"}),
    "grams": ((GRAMS, GIVEN_FILES_Y), {}, {}),
    "grams in groups": (
        {"grams": GRAMS, "y": GIVEN_FILES_Y, "groups": np.repeat(range(6), 2)},
        {},
        {"groups": "groups"},
    ),
    "grams in time": (
        {"grams": GRAMS, "y": GIVEN_FILES_Y, "order": np.arange(N)[::-1]},
        {},
        {"kind": "time", "order": "order"},
    ),
    "parts": (
        {"X": GIVEN_FILES_X, "y": GIVEN_FILES_Y, "train": range(8), "test": range(8, N)},
        {},
        {},
    ),
    "values": ((GIVEN_FILES_X, GIVEN_FILES_X[:, 0]), {"task": "regression"}, {}),
    "frame": (
        FRAME,
        {"label": "disease", "categorical": ["sex"], "impute": "median"},
        {"kind": "time", "order": "day"},
    ),
    "views": (
        FRAME.drop(columns="day"),
        {
            "label": "disease",
            "impute": "median",
            "texts": ["sex"],
            "views": [{"name": "self", "columns": ["age", "sex"], "missing": "zero"}],
        },
        {},
    ),
    "frame beside labels": (
        (FRAME[["age", "smokes"]], FRAME["disease"], [f"p{i % 4}" for i in range(N)]),
        {},
        {"groups": "groups"},
    ),
}


def loaded(given: InputData | None, entry: dict[str, object], splits: SplitsSpec, folder):
    spec = DatasetSpec.model_validate({"name": "mine", **entry})
    return load_dataset(spec, (), folder, 0, splits, given)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_kept_data_set_is_the_one_that_was_given(name, tmp_path):
    given, entry, split_words = ENTRIES[name]
    data, splits = input_data(given, "data['mine']"), SplitsSpec.model_validate(split_words)
    data.save(tmp_path / f"mine-{data.id}{SUFFIX}")
    here = loaded(data, entry, splits, tmp_path)
    there = loaded(None, {**entry, "file": f"mine-{data.id}{SUFFIX}"}, splits, tmp_path)
    assert here.fingerprint == there.fingerprint
    assert (here.classes, here.feature_names, here.groups) == (
        there.classes,
        there.feature_names,
        there.groups,
    )
    for part in ("row_groups", "row_order"):
        np.testing.assert_array_equal(getattr(here, part), getattr(there, part))
    assert [split.fingerprint for split in here.predefined] == [
        split.fingerprint for split in there.predefined
    ]


@pytest.mark.parametrize("least", [2**53, 2**63])
def test_large_whole_numbers_are_different_classes(least, tmp_path):
    labels = least + np.arange(N, dtype=np.uint64) % 2
    frame = pd.DataFrame({"a": GIVEN_FILES_X[:, 0], "y": labels})
    for given in ((GIVEN_FILES_X, labels), frame, (frame[["a"]], labels), (GRAMS, labels)):
        data = input_data(given, "data")
        data.save(tmp_path / f"mine-{data.id}{SUFFIX}")
        for found in (data, None):
            entry = {} if found else {"file": f"mine-{data.id}{SUFFIX}"}
            one = loaded(found, entry, SplitsSpec(), tmp_path)
            assert one.classes == (str(least), str(least + 1))


def test_points_of_given_gram_matrices_stay_with_their_group(tmp_path):
    groups, splits = np.repeat(range(6), 2), SplitsSpec(groups="groups", repeats=5)
    given = input_data((GRAMS, GIVEN_FILES_Y, groups), "data")
    for split in make_splits(splits, loaded(given, {}, splits, tmp_path), 0):
        assert not set(groups[split.train]) & set(groups[split.test])


@pytest.mark.parametrize("missing", [None, np.nan, pd.NaT, pd.NA])
def test_a_point_without_a_group_is_named(missing, tmp_path):
    groups = ["a", missing, *map(str, range(N - 2))]
    splits = SplitsSpec(groups="groups")
    with pytest.raises(DataError, match=r"no group in 1 of 12 rows, the first is row 1 \(from 0"):
        loaded(input_data((GIVEN_FILES_X, GIVEN_FILES_Y, groups), "data"), {}, splits, tmp_path)


def test_columns_of_a_frame_are_taken_as_from_a_csv_file(tmp_path):
    """The file is written by pandas and read without it."""
    FRAME.to_csv(tmp_path / "mine.csv", index=False)
    entry = {"label": "disease", "categorical": ["sex"], "ignore": ["day"], "impute": "median"}
    of_file = loaded(None, {**entry, "file": "mine.csv"}, SplitsSpec(), tmp_path)
    given = loaded(input_data(FRAME, "data"), entry, SplitsSpec(), tmp_path)
    assert given.fingerprint == of_file.fingerprint
    assert given.feature_names == of_file.feature_names


@pytest.mark.parametrize("entry", [{}, {"categorical": ["sex"]}, {"ignore": ["sex"]}])
def test_columns_of_a_categorical_type_are_categories(entry, tmp_path):
    frame = FRAME[["age", "sex"]].assign(stage=pd.Categorical([3, 1, 2] * 4))
    given = input_data((frame, pd.Categorical(GIVEN_FILES_Y)), "data")
    given.save(tmp_path / f"mine-{given.id}{SUFFIX}")
    frame.assign(y=pd.Categorical(GIVEN_FILES_Y)).to_parquet(tmp_path / "mine.parquet")
    plain = pd.get_dummies(frame["sex"].cat.add_categories("?").fillna("?"), dtype=float)
    numbers = frame[["age", "stage"]].astype(float)
    expected = numbers if "ignore" in entry else pd.concat([numbers, plain], axis=1)
    for data, file in (
        (given, {}),
        (None, {"file": f"mine-{given.id}{SUFFIX}"}),
        (None, {"file": "mine.parquet", "label": "y"}),
    ):
        found = loaded(data, {**entry, **file}, SplitsSpec(), tmp_path)
        np.testing.assert_array_equal(found.x, expected)
        assert found.classes == ("ill", "well")


def test_the_id_tells_contents_apart():
    same = input_data((GIVEN_FILES_X, GIVEN_FILES_Y), "data").id
    assert input_data((GIVEN_FILES_X.copy(), GIVEN_FILES_Y.tolist()), "data").id == same
    other = GIVEN_FILES_X.copy()
    other[3, 1] = np.nextafter(other[3, 1], 1.0)
    assert input_data((other, GIVEN_FILES_Y), "data").id != same
    assert input_data((GIVEN_FILES_X, GIVEN_FILES_Y, GIVEN_FILES_Y), "data").id != same


def test_a_damaged_file_is_told(tmp_path):
    given = input_data((GIVEN_FILES_X, GIVEN_FILES_Y), "data")
    path = tmp_path / f"mine-{given.id}{SUFFIX}"
    given.save(path)
    content = bytearray(path.read_bytes())
    content[content.find(GIVEN_FILES_X.tobytes()) + 5] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="array 'x': found an array that is cut short or damaged"):
        read_inputs(path, ColumnChoice(), "mine")


def test_a_file_of_other_data_than_its_name_says_is_refused(tmp_path):
    mine, other = (
        input_data((GIVEN_FILES_X, GIVEN_FILES_Y), "data"),
        input_data((GIVEN_FILES_X + 1.0, GIVEN_FILES_Y), "data"),
    )
    path = tmp_path / f"mine-{mine.id}{SUFFIX}"
    mine.save(path)
    assert read_inputs(path, ColumnChoice(), "mine").x is not None
    other.save(path)
    with pytest.raises(DataError, match=r"found other data, or .* Repeat the call in Python"):
        read_inputs(path, ColumnChoice(), "mine")
    assert not is_sound(path)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (ColumnChoice(label="y"), "label = 'y' beside given labels"),
        (ColumnChoice(id="f0"), "id, but no table of columns"),
        (ColumnChoice(of_splits=("patient",)), "splits: found no column 'patient'"),
    ],
)
def test_arrays_have_no_columns_to_choose(choice, said):
    with pytest.raises(DataError, match=said):
        input_data((GIVEN_FILES_X, GIVEN_FILES_Y), "data").raw_data(choice, "data")


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "a"], ["a", "b", "c", "d"]])
def test_names_of_features_are_as_many_as_features_and_distinct(names):
    given = input_data({"x": GIVEN_FILES_X, "y": GIVEN_FILES_Y, "feature_names": names}, "data")
    with pytest.raises(DataError, match=r"array 'feature_names': found \d names, .* 3 distinct"):
        given.raw_data(ColumnChoice(), "data")
