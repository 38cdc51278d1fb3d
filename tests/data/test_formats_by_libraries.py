"""Files of MATLAB, Excel, Weka and anndata, as the libraries that own these formats write them."""

import gzip
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import openpyxl
import pandas as pd
import pytest
import scipy.io
from scipy.io import loadmat, savemat
from scipy.sparse import csc_array

from mkldist.data import checks
from mkldist.data.dataset import RawData
from mkldist.data.files import read_file
from mkldist.data.gram_files import read_grams
from mkldist.data.mat_files import open_mat
from mkldist.data.table_profile import inspected
from mkldist.data.tables import ColumnChoice
from mkldist.spec.datasets import TableFormat
from tests.data.mistakes import mistake

WRITTEN_BY_MATLAB = Path(scipy.io.__file__).parent / "matlab/tests/data"  # which scipy brings
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).round(3)
Y = np.array([1.0, 2, 1, 2, 1, 2])
IDS = [f"s{row}" for row in range(6)]
GRAMS = np.stack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(-1))])


def cell(*members: Any) -> np.ndarray:
    found = np.empty((1, len(members)), dtype=object)
    found[0] = members
    return found


def save_73(path: Path, variables: dict[str, Any]) -> None:
    """Write variables as MATLAB 7.3 does: HDF5, axes reversed, cells by reference."""
    with h5py.File(path, "w", userblock_size=512) as file:

        def write(name: str, value: Any) -> Any:
            if isinstance(value, str):
                codes = np.array([[ord(letter)] for letter in value], dtype=np.uint16)
                item, kind = file.create_dataset(name, data=codes), b"char"
            elif value.dtype == object:
                members = [write(f"#refs#/{name}{n}", one) for n, one in enumerate(value.ravel())]
                refs = np.array([one.ref for one in members], dtype=h5py.ref_dtype)
                item, kind = file.create_dataset(name, data=refs.reshape(value.T.shape)), b"cell"
            else:
                item, kind = file.create_dataset(name, data=np.atleast_2d(value).T), b"double"
            item.attrs["MATLAB_class"] = np.bytes_(kind)
            return item

        for name, value in variables.items():
            write(name, value)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.0 MAT-file, Platform: GLNX86".ljust(124) + b"\x00\x02IM")


@pytest.fixture(params=["5", "7.3"])
def save(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    def written(**variables: Any) -> Path:
        path = tmp_path / "t.mat"
        savemat(path, variables) if request.param == "5" else save_73(path, variables)
        return path

    return written


def read(path: Path, label: str | None = None, **choice: Any) -> RawData:
    keys = choice.keys() & TableFormat.model_fields.keys()
    format = TableFormat(**{key: choice.pop(key) for key in keys})
    return read_file(path, ColumnChoice(label, format=format, **choice), "t")


def test_features_of_matlab(save):
    labels = cell("case", "control", "case", "control", "case", "control")
    found = read(
        save(X=X, Y=Y, names=cell(*IDS), train=np.array([1.0, 2, 3]), test=np.array([6.0]))
    )
    np.testing.assert_array_equal(found.x, X)
    assert found.labels.tolist() == Y.tolist()
    assert found.ids is not None
    assert found.ids.tolist() == IDS
    assert [part.tolist() for part in (found.partitions[0].train, found.partitions[0].test)] == [
        [0, 1, 2],
        [5],
    ]
    other = read(
        save(fea=X.T, state=labels, feature_names=cell("a", "b", "c")), "state", transpose=True
    )
    np.testing.assert_array_equal(other.x, X)
    assert other.labels.tolist() == list(labels[0])
    assert other.feature_names == ("a", "b", "c")
    assert any("'fea'" in note for note in other.summary.notes)


@pytest.mark.parametrize("version", ["4.2c_SOL2", "6.5.1_GLNX86", "7.1_GLNX86", "7.4_GLNX86"])
@pytest.mark.parametrize("name", ["double", "matrix", "sparse", "minus"])
def test_variables_that_matlab_wrote(name, version):
    with open_mat(WRITTEN_BY_MATLAB / f"test{name}_{version}.mat", "t") as variables:
        found = variables[f"test{name}"]
    expected = loadmat(WRITTEN_BY_MATLAB / f"test{name}_{version}.mat")[f"test{name}"]
    expected = expected.toarray() if name == "sparse" else expected.squeeze()
    np.testing.assert_array_equal(found, expected)


def test_a_file_of_hdf5_that_matlab_called_7_0():
    with open_mat(WRITTEN_BY_MATLAB / "testhdf5_7.4_GLNX86.mat", "t") as variables:
        np.testing.assert_allclose(variables["testdouble"], np.pi / 4 * np.arange(9))


@pytest.mark.parametrize("form", ["array", "cell", "one"])
def test_gram_matrices_of_matlab(save, form):
    kernels = {"array": GRAMS.transpose(1, 2, 0), "cell": cell(*GRAMS), "one": GRAMS[0]}[form]
    names = cell("linear") if form == "one" else cell("linear", "gaussian")
    found = read_grams(save(K=kernels, y=Y, names=names), None, None, "t")
    np.testing.assert_allclose(found.grams, GRAMS[: 1 if form == "one" else 2], atol=1e-14)
    assert found.gram_names == tuple(names[0])
    if form == "array":
        train, test = GRAMS[:, :4, :4].transpose(1, 2, 0), GRAMS[:, 4:, :4].transpose(1, 2, 0)
        apart = save(Ktrain=train, Ktest=test, ytrain=Y[:4], ytest=Y[4:])
        np.testing.assert_allclose(
            read_grams(apart, None, None, "t").grams[:, :, :4], GRAMS[:, :, :4], atol=1e-14
        )


def test_variables_of_matlab_that_cannot_be_read(save, tmp_path, monkeypatch):
    sparse = cell(*map(csc_array, GRAMS))
    savemat(tmp_path / "s.mat", {"X": csc_array(X), "y": Y, "info": {"a": 1}, "grams": sparse})
    np.testing.assert_array_equal(read(tmp_path / "s.mat").x, X)
    found = read_grams(tmp_path / "s.mat", None, None, "t").grams
    np.testing.assert_allclose(found, GRAMS, atol=1e-14)
    with mistake("no array 'x' (the arrays are y)"):
        read(save(y=Y))
    path = save(X=X, y=Y)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    with mistake("damaged"):
        read(path)
    path = save(X=np.zeros((300, 300)), y=Y)
    monkeypatch.setattr(checks, "physical_memory", lambda: 2**20)
    with mistake("half of this machine's memory"):
        read(path)


TABLE = pd.DataFrame({"a": [1, 2.5, None], "sex": ["f", "m", "f"], "label": ["x", "y", "x"]})


def test_sheets_of_excel(tmp_path):
    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path) as book:
        TABLE.to_excel(book, sheet_name="first", index=False)
        TABLE.assign(a=[7, 8, 9]).to_excel(book, sheet_name="second", index=False)
    found = read(path, ignore=("sex",))
    np.testing.assert_array_equal(found.x, TABLE[["a"]])
    assert found.labels.tolist() == ["x", "y", "x"]
    assert found.row_labels.of(1) == "line 3"
    assert any("'second'" in note for note in found.summary.notes)
    assert read(path, part="second", ignore=("sex",)).x[:, 0].tolist() == [7, 8, 9]
    with mistake("no part 'secnd'", "'second'"):
        read(path, part="secnd")
    with mistake("text in column 'sex'"):
        read(path, part="second")
    path.write_bytes(b"no workbook")
    with mistake("cannot be read"):
        read(path)


@pytest.mark.parametrize("several", [False, True])
def test_sheets_without_a_header_lose_no_row(tmp_path, several):
    path = tmp_path / "t.xlsx"
    rows = pd.DataFrame(X).assign(label=[*"xyxyxy"])
    with pd.ExcelWriter(path) as book:
        if several:
            pd.DataFrame({"note": ["made by X"]}).to_excel(book, sheet_name="README", index=False)
        rows.to_excel(book, sheet_name="rows", index=False, header=False)
    part = {"part": "rows"} if several else {}
    with mistake("line 1", "looks like a row", "header = false"):
        read(path, label="label", **part)
    found = read(path, label="f3", header=False, **part)
    np.testing.assert_array_equal(found.x, X)
    assert found.labels.tolist() == [*"xyxyxy"]
    named = read(path, label="d", names=["a", "b", "c", "d"], **part)
    assert named.feature_names == ("a", "b", "c")
    columns, format = inspected(path)
    assert list(columns) == ["f0", "f1", "f2", "f3"]
    assert format.changes == {"header": False, **part}
    with mistake("separator for a .xlsx file"):
        read(path, separator=";")
    if several:
        with mistake("1 column (note)", 'part = another of "README", "rows"', "above the header"):
            read(path)


def test_cells_merged_over_rows_have_the_value_of_the_first(tmp_path):
    path = tmp_path / "t.xlsx"
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=[*"xxxyyy"]).to_excel(path, index=False)
    book = openpyxl.load_workbook(path)
    for cells in ("D2:D4", "D5:D7"):
        book.active.merge_cells(cells)
    book.save(path)
    for choice in ({}, {"part": "Sheet1"}):
        found = read(path, **choice)
        assert found.labels.tolist() == [*"xxxyyy"]
        np.testing.assert_array_equal(found.x, X)
        assert any("D2:D4, D5:D7" in note for note in found.summary.notes)


def test_a_workbook_that_unpacks_to_far_more(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * (2**28 + 1))
    with mistake("unpacks to more than"):
        read(tmp_path / "t.xlsx")


ARFF = """% made up
@relation t
@attribute age numeric
@attribute stage {I, II, 'III a'}
@attribute code {1, 2}
@attribute class {sick, well}
@data
50, I, 1, sick
?, 'III a', 2, well
41, ?, 2, sick
40, I, 1, well
"""


def test_arff(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(ARFF)
    found = read(path)
    assert found.feature_names == (
        "age", "stage=I", "stage=III a", "stage=?", "code=1", "code=2",
    )  # fmt: skip
    np.testing.assert_array_equal(
        found.x,
        [[50, 1, 0, 0, 1, 0], [np.nan, 0, 1, 0, 0, 1], [41, 0, 0, 1, 0, 1], [40, 1, 0, 0, 1, 0]],
    )
    assert found.labels.tolist() == ["sick", "well", "sick", "well"]
    assert found.summary.encoded == ("'stage' as 3 features", "'code' as 2 features")
    path.write_text(
        "@relation t\n@attribute a numeric\n@attribute class {x, y}\n@data\n{0 3}\n{1 y}\n"
    )
    sparse = read(path)
    assert (sparse.x[:, 0].tolist(), sparse.labels.tolist()) == ([3, 0], ["x", "y"])
    dated = ARFF.replace("@data", "@attribute 'seen on' DATE \"yyyy-MM-dd\"\n@data")
    dated = re.sub("(sick|well)$", r"\1, 2020-01-02", dated, flags=re.MULTILINE)
    path.write_text(dated)
    np.testing.assert_array_equal(read(path, "class", ignore=("seen on",)).x, found.x)
    with mistake("dates in column 'seen on'"):
        read(path, "class")
    for wrong, line in (("50, I, 1", 8), ("@attribute age numeric", 3)):
        path.write_text(ARFF.replace(wrong, wrong.replace("50", "fifty").replace("numeric", "day")))
        with mistake(f"at line {line}", "a CSV file"):
            read(path)


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    """Return a file that anndata 0.12.19 wrote: 24 rows, sparse counts, and a dense layer."""
    path = tmp_path / "t.h5ad"
    path.write_bytes(gzip.decompress((Path(__file__).parent / "anndata.h5ad.gz").read_bytes()))
    return path


def counts() -> np.ndarray:
    return np.random.default_rng(0).poisson(1.0, (24, 6)).astype(float)


def test_matrices_of_anndata(annotated):
    x, genes = counts(), tuple(f"G{column}" for column in range(6))
    found = read(annotated, "state", of_splits=("donor",), groups="donor")
    np.testing.assert_array_equal(found.x, x)
    assert found.feature_names == genes
    assert found.labels.tolist() == np.where(x[:, 0] + x[:, 1] > 2, "case", "control").tolist()
    assert found.of_splits["donor"].tolist() == [f"d{row % 6}" for row in range(24)]
    assert found.ids is not None
    assert found.ids[:2].tolist() == ["cell00", "cell01"]
    assert "'depth' (describes the rows)" in found.summary.left_out
    np.testing.assert_allclose(read(annotated, "state", part="logged").x, np.log1p(x))
    np.testing.assert_array_equal(read(annotated, "state", part="X_pca").x, x[:, :2] - 1)
    obs = read(annotated, "state", part="obs", ignore=("donor",))
    np.testing.assert_array_equal(obs.x, np.c_[x.sum(1), [1, 2, np.nan] * 8])
    with mistake("no label", "'donor'"):
        read(annotated)
    with h5py.File(annotated, "r+") as file:
        file["X"].attrs["shape"] = (23, 6)
    with mistake("/X: found shape (23, 6)", "(24, 6)"):
        read(annotated, "state")
    with h5py.File(annotated, "r+") as file:
        del file["obs"].attrs["encoding-type"]
    with mistake("no frame 'obs'", "anndata 0.8"):
        read(annotated, "state")


@pytest.mark.parametrize(
    ("package", "name"), [("h5py", "t.h5ad"), ("openpyxl", "t.xlsx"), ("arff", "t.arff")]
)
def test_a_missing_package(tmp_path, monkeypatch, package, name):
    (tmp_path / name).write_bytes(b"1")
    monkeypatch.setitem(sys.modules, package, None)
    with mistake("no package", "pip install 'mkldist[formats]'"):
        read(tmp_path / name)


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_tables_whose_rows_are_features(tmp_path, ending):
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=IDS).T.rename_axis("gene").reset_index()
    labels = pd.DataFrame([["label", *"xyxyxy"]], columns=frame.columns)
    mixed = pd.concat([frame, labels]) if ending == "csv" else frame
    path = tmp_path / f"t.{ending}"
    {"csv": mixed.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}[ending](
        path, index=False
    )
    found = read(path, labelled=ending == "csv", transpose=True)
    np.testing.assert_array_equal(found.x, X)
    assert found.feature_names == ("a", "b", "c")
    assert found.ids is not None
    assert found.ids.tolist() == IDS
    if ending == "csv":
        assert found.labels.tolist() == list("xyxyxy")
