"""Views of the points of a data set, and files of feature groups."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from mkldist.bank.bank_kernels import BankKernels
from mkldist.data.catalogue import load_dataset
from mkldist.data.dataset import Dataset, RawData, View
from mkldist.data.validate import summary_lines, validate
from mkldist.data.views import known_groups, read_groups
from mkldist.errors import GramError
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec, SplitsSpec
from tests.data.mistakes import mistake

TABLE = "id,age,bmi,label\np1,50,21,a\np2,60,,b\np3,70,23,a\np4,80,24,b\n"
GENES = "id,G1,G2\np4,8,9\np1,2,3\np3,6,5\np2,4,7\n"
ZERO = {"missing": "zero"}


def load(folder: Path, *views: dict[str, Any], **entry: Any) -> Dataset:
    entry = {"name": "t", "file": "t.csv", "id": "id", "impute": "mean", **entry}
    return load_dataset(DatasetSpec.model_validate({**entry, "views": views}), (), folder, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "genes.csv").write_text(GENES)
    return tmp_path


def said(dataset: Dataset) -> str:
    return "\n".join(summary_lines(dataset, PreprocessingSpec()))


def test_rows_are_joined_by_id_in_the_order_of_the_table(folder):
    found = load(folder, {"name": "clinical"}, {"name": "genes", "file": "genes.csv"})
    assert found.x is not None
    assert found.feature_names == ("age", "bmi", "genes.G1", "genes.G2")
    assert_array_equal(found.x[:, 2:], [[2, 3], [4, 7], [6, 5], [8, 9]])
    assert found.groups == {"clinical": (0, 1), "genes": (2, 3)}
    assert {name: view.columns for name, view in found.views.items()} == found.groups
    assert found.absent is None
    assert "  view:      genes, 2 features\n" in said(found)


def test_features_of_views_are_those_that_are_left_without_constant_ones(folder):
    (folder / "t.csv").write_text("id,age,bmi,label\np1,5,21,a\np2,5,20,b\np3,5,23,a\np4,5,24,b\n")
    found = load(folder, {"name": "clinical"}, {"name": "genes", "file": "genes.csv"})
    assert found.feature_names == ("bmi", "genes.G1", "genes.G2")
    assert found.groups == {"clinical": (0,), "genes": (1, 2)}
    assert {name: view.columns for name, view in found.views.items()} == found.groups


def test_rows_without_a_label_that_are_left_out_are_out_of_views_too(folder):
    (folder / "t.csv").write_text("id,age,label\np1,5,a\np2,6,\np3,7,a\np4,8,b\np5,9,b\n")
    grams = np.diag([5.0, 4.0, 3.0, 2.0, 1.0])[None]
    np.savez(folder / "k.npz", grams=grams, ids=["p5", "p4", "p3", "p2", "p1"])
    found = load(folder, {"name": "k", "grams": "k.npz"}, unlabelled="drop")
    assert found.ids is not None
    assert found.ids.tolist() == ["p1", "p3", "p4", "p5"]
    assert_array_equal(np.diag(found.given["k"].grams[0]), [1, 3, 4, 5])


def test_points_and_rows_without_a_partner_are_said(folder):
    (folder / "genes.csv").write_text(GENES.replace("p2", "q2"))
    found = load(folder, {"name": "genes", "file": "genes.csv", **ZERO})
    assert found.x is not None
    assert_array_equal(np.isnan(found.x[1]), [False, True, True, True])
    assert found.absent is not None
    assert_array_equal(found.absent[1], [False, False, True, True])
    assert not np.delete(found.absent, 1, axis=0).any()
    assert "genes, 2 features; 1 of 4 points lack it: its kernels are zero there" in said(found)
    assert "1 of its 4 rows are not in the data set and left out (q2)" in said(found)
    assert "1 of 4 rows miss values in 1 column" in said(found)  # the age, not the genes
    filled = load(folder, {"name": "genes", "file": "genes.csv", "missing": "impute"})
    assert filled.absent is None
    assert "1 of 4 points lack it: filled" in said(filled)
    assert filled.fingerprint != found.fingerprint


def test_rows_of_one_group_share_the_rows_of_views(folder):
    (folder / "t.csv").write_text(TABLE.replace("p3,", "p1,"))
    grams = np.array([[[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]]])
    np.savez(folder / "k.npz", grams=grams, ids=["p1", "p2", "p4"])
    views = [{"name": "genes", "file": "genes.csv"}, {"name": "k", "grams": "k.npz"}]
    with mistake("ids that occur more than once: 'p1'", "by id and by groups of [splits]"):
        load(folder, *views)
    entry = {"name": "t", "file": "t.csv", "id": "id", "impute": "mean", "views": views}
    spec = DatasetSpec.model_validate(entry)
    found = load_dataset(spec, (), folder, 0, SplitsSpec(groups="id"))
    assert found.x is not None
    assert_array_equal(found.x[:, 2:], [[2, 3], [4, 7], [2, 3], [8, 9]])
    assert found.row_groups is not None
    assert_array_equal(found.row_groups, [0, 1, 0, 2])
    assert_array_equal(found.given["k"].grams[0, 0], [1.0, 0.5, 1.0, 0.2])
    (folder / "t.csv").write_text(TABLE.replace("p3,", ","))
    with mistake("1 row without an id"):
        load_dataset(spec, (), folder, 0, SplitsSpec(groups="id"))


def test_a_point_that_lacks_a_view_must_be_asked_for(folder):
    (folder / "genes.csv").write_text(GENES.replace("p2", "q2"))
    with mistake(
        "view 'genes': found no value for 1 of 4 points (p2); expected a value of the view for "
        'each point, or missing, which says what holds without. Set missing = "zero" for its '
        'kernels to be zero at these points, or missing = "impute" to fill its features.'
    ):
        load(folder, {"name": "genes", "file": "genes.csv"})


def test_a_view_of_own_columns_may_be_lacked(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c,label\n1,2,3,x\n4,,,y\n5,,6,x\n7,8,9,y\n")
    view = {"name": "blood", "columns": ["b", 2]}
    found = load(tmp_path, {**view, **ZERO}, id=None)
    assert found.absent is not None
    assert_array_equal(found.absent.any(axis=1), [False, True, False, False])
    with mistake("view 'blood': found no value for 1 of 4 points (line 3)"):
        load(tmp_path, view, id=None)
    with mistake("view 'blood': columns: found no feature 'bb'", "Did you mean 'b'?"):
        load(tmp_path, {"name": "blood", "columns": ["bb"]}, id=None)


def test_arrays_and_sparse_files_are_views_too(folder):
    x = np.array([[8.0, 9], [2, 3], [6, 5]])
    np.savez(folder / "genes.npz", x=x, ids=["p4", "p1", "p3"], feature_names=["G1", "G2"])
    (folder / "genes.svm").write_text("0 1:2 2:3\n0 1:4 2:7\n0 2:5\n0 1:8\n")
    found = load(folder, {"name": "genes", "file": "genes.npz", **ZERO})
    assert found.x is not None
    assert_array_equal(found.x[:, 2:], [[2, 3], [np.nan, np.nan], [6, 5], [8, 9]])
    by_order = load(folder, {"name": "genes", "file": "genes.svm"})
    assert by_order.x is not None
    assert_array_equal(by_order.x[:, 2:], [[2, 3], [4, 7], [0, 5], [8, 0]])
    assert by_order.feature_names[2:] == ("genes.f0", "genes.f1")
    assert "view 'genes' has no ids: its rows are taken in their order" in said(by_order)


def test_ids_are_the_same_as_numbers_and_as_text(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.csv").write_text("id,a,label\n7,1,x\n12,2,y\n3,5,x\n")
    pd.DataFrame({"nr": [12, 3, 7], "g": [1.0, 2.0, 3.0]}).to_parquet(tmp_path / "g.parquet")
    found = load(tmp_path, {"name": "g", "file": "g.parquet", "id": "nr"})
    assert found.x is not None
    assert_array_equal(found.x[:, 1], [3, 1, 2])


def test_gram_matrices_are_joined_by_id(folder):
    gram = np.diag([4.0, 1, 3]) + 0.5
    np.savez(folder / "k.npz", grams=gram, ids=["p4", "p1", "p3"])
    found = load(folder, {"name": "strings", "grams": "k.npz", **ZERO})
    one = found.given["strings"]
    assert_array_equal(one.present, [True, False, True, True])
    expected = [[1.5, 0, 0.5, 0.5], [0, 0, 0, 0], [0.5, 0, 3.5, 0.5], [0.5, 0, 0.5, 4.5]]
    assert_array_equal(one.grams, [expected])
    assert "strings, 1 Gram matrix; 1 of 4 points lack it: its kernels are zero" in said(found)
    np.save(folder / "k.npy", np.stack([np.eye(4), 2 * np.eye(4)]))
    assert load(folder, {"name": "s", "grams": "k.npy"}).given["s"].grams.shape == (2, 4, 4)


def test_names_beside_matrices_join_and_are_those_of_kernels(folder):
    grams = np.stack([np.diag([4.0, 1, 3, 2]), np.ones((4, 4))])
    names = {"samples": ["p4", "p1", "p3", "p2"], "names": ["linear", "constant"]}
    np.savez(folder / "k.npz", grams=grams, **names)
    found = load(folder, {"name": "s", "grams": "k.npz"})
    assert_array_equal(found.given["s"].grams[0], np.diag([1.0, 2, 3, 4]))
    spec = BankSpec(name="b", kernels=[{"function": "precomputed", "features": ["s"]}])
    kernels = BankKernels.of(spec, found, 0)
    assert [one.name for one in kernels.given] == [
        "precomputed(linear)[s]",
        "precomputed(constant)[s]",
    ]


def test_tables_of_features_by_samples_join_by_their_header(folder):
    (folder / "turned.tsv").write_text("gene\tp4\tp1\tp3\tp2\nG1\t8\t2\t6\t4\nG2\t9\t3\t5\t7\n")
    found = load(folder, {"name": "genes", "file": "turned.tsv", "transpose": True})
    plain = load(folder, {"name": "genes", "file": "genes.csv"})
    assert_array_equal(found.x, plain.x)
    assert found.feature_names == plain.feature_names


def test_classes_that_are_left_out_leave_their_views(folder):
    text = TABLE.replace("80,24,b", "80,24,c")
    (folder / "t.csv").write_text(text)
    np.save(folder / "k.npy", np.diag([1.0, 2, 3, 4]))
    np.savez(folder / "half.npz", grams=np.eye(3), ids=["p1", "p2", "p3"])
    views = {"name": "s", "grams": "k.npy"}, {"name": "half", "grams": "half.npz"}
    found = load(folder, *views, classes=["a", "b"])
    assert_array_equal(found.given["s"].grams, [np.diag([1.0, 2, 3])])
    assert found.given["half"].present.all()


def test_a_table_may_hold_labels_alone(tmp_path):
    (tmp_path / "t.csv").write_text("id,label\np1,x\np2,y\n")
    np.save(tmp_path / "k.npy", np.eye(2))
    found = load(tmp_path, {"name": "s", "grams": "k.npy"}, impute=None)
    assert found.x is None
    assert found.n_features == 0


def test_groups_of_a_file_are_those_of_the_view_or_the_table(folder):
    (folder / "sets.gmt").write_text("A\t\tG1\tG2\tG3\nB\t\tG2\nC\t\tG1\n")
    (folder / "own.csv").write_text("set,column\nbody,age\nbody,bmi\n")
    (folder / "genes.csv").write_text(GENES.replace("p1,2", "p1,8").replace("p3,6", "p3,8")
                                      .replace("p2,4", "p2,8"))  # fmt: skip
    view = {"name": "genes", "file": "genes.csv", "group_file": "sets.gmt"}
    found = load(folder, view, group_file="own.csv")
    # G1 does not vary: it leaves its groups, and C with it.
    assert found.feature_names == ("age", "bmi", "genes.G2")
    assert found.groups == {"genes": (2,), "body": (0, 1), "A": (2,), "B": (2,)}
    assert "sets.gmt: 3 groups; 1 of their 3 features are not in the data" in said(found)


MISTAKES = [
    ({"file": "genes.csv", "id": "idd"}, "view 'v' (", "id: found no column 'idd'", "mean 'id'?"),
    ({"file": "twice.csv"}, "ids that occur more than once: 'p1'", "Correct these rows"),
    ({"file": "blank.csv"}, "1 row without an id", "an id of its own for each row"),
    ({"file": "label.csv"}, "a column 'label', as the label is called", 'ignore = ["label"]'),
    ({"file": "label.csv", "texts": ["label"]}, "a column 'label', as the label is"),
    ({"file": "others.csv"}, "ids such as q1, q2, none of them in the data set", "such as p1, p2"),
    ({"file": "short.svm"}, "1 row for 4 points, and no ids", "Set id = the column"),
    ({"file": "gene.csv"}, "no such file", "Did you mean 'genes.csv'?"),
    ({"grams": "k.npy"}, "3 rows for 4 points, and no ids"),
    ({"grams": "k.npz", "id": "names"}, "no array 'names'", "names the points"),
]


@pytest.mark.parametrize(("view", "messages"), [(m[0], m[1:]) for m in MISTAKES])
def test_a_view_that_cannot_be_joined_is_told(folder, view, messages):
    for name, text in {
        "twice.csv": GENES + "p1,1,1\n",
        "blank.csv": GENES + ",1,1\n",
        "label.csv": GENES.replace("G2", "label"),
        "others.csv": "id,G1\nq1,1\nq2,2\n",
        "short.svm": "0 1:1\n",
    }.items():
        (folder / name).write_text(text)
    np.save(folder / "k.npy", np.eye(3))
    np.savez(folder / "k.npz", grams=np.eye(4))
    with mistake(*messages):
        load(folder, {"name": "v", **view})


def test_ids_in_the_view_alone_are_refused(folder):
    with mistake("ids, but the data set has none", "Set id = the column of the data set"):
        load(folder, {"name": "g", "file": "genes.csv", "id": "id"}, id=None, ignore=["id"])


def test_a_given_matrix_must_be_a_gram_matrix(folder):
    np.save(folder / "k.npy", -np.eye(4))
    with pytest.raises(GramError, match=r"view 's' .*kernel 0: found a trace of -4"):
        load(folder, {"name": "s", "grams": "k.npy"})


def test_a_view_that_all_points_lack_is_refused():
    x = np.full((2, 1), np.nan)
    with mistake(
        "view 'v': found no value for 2 of 2 points (row 0 (from 0), row 1)", "Leave the view out"
    ):
        raw = RawData(np.array(["a", "b"]), x, ("f", "g"), views={"v": View((0,), "zero")})
        validate(DatasetSpec(name="t"), raw, "t")


GROUPS = {"CELL CYCLE": ("TP53", "CDK1"), "apoptosis": ("TP53", "BAX", "BCL2")}
FILES = {
    "g.gmt": "CELL CYCLE\thttps://x.org\tTP53\tCDK1\tTP53\t\napoptosis\t\tTP53\tBAX\tBCL2\n\n",
    "g.csv": "set,gene\nCELL CYCLE,TP53\napoptosis,TP53\nCELL CYCLE, CDK1\n"
    "apoptosis,BAX\napoptosis,BCL2\n",
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_groups(tmp_path, name):
    (tmp_path / name).write_text(FILES[name])
    found = read_groups(tmp_path / name, "t")
    assert found == GROUPS
    assert list(found) == list(GROUPS)


def test_blank_lines_and_long_names_are_no_mistakes(tmp_path):
    name = "x" * 150_000
    (tmp_path / "g.csv").write_text(f"\nset,gene\n\nA,TP53\n\nA,{name}\n\n")
    assert read_groups(tmp_path / "g.csv", "t") == {"A": ("TP53", name)}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.txt", "a", "t: found a file ending in '.txt'; expected groups in one of .gmt, .csv"),
        ("g.gmt", "\n", "t: found no groups; expected names of groups and features, such as NAME"),
        ("g.gmt", "A\tx\tB\nC D E\n", "t, line 2: found 1 field; expected a name, a description"),
        ("g.gmt", "A\tx\tB\nA\tx\tC\n", "t, line 2: found group 'A' twice; expected a name for"),
        ("g.csv", "set,gene\nA,B,C\n", "t, line 2: found 3 fields; expected two: a group and a"),
        ("g.csv", "set,gene\n\nA,B,C\n", "t, line 3: found 3 fields; expected two: a group and"),
        ("g.csv", 'set,gene\nA,"B\nA,C\n', "t, line 2: found a line that is no row of a"),
        ("g.csv", 'set,gene\nA,"B"C\n', "t, line 2: found a line that is no row of a table"),
    ],
)
def test_a_wrong_file_is_told(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with mistake(message):
        read_groups(tmp_path / name, "t")


def test_an_absent_file_names_the_one_that_is_meant(tmp_path):
    (tmp_path / "paths.gmt").write_text(FILES["g.gmt"])
    with mistake("t: found no such file; expected an existing file. Did you mean 'paths.gmt'?"):
        read_groups(tmp_path / "path.gmt", "t")


def test_features_that_the_data_lack_are_counted_and_left_out():
    columns, words = known_groups({**GROUPS, "other": ("X",)}, ["BAX", "TP53"], "t")
    assert columns == {"CELL CYCLE": (1,), "apoptosis": (1, 0)}
    assert words == (
        "2 groups; 3 of their 5 features are not in the data and left out (CDK1, BCL2, X); "
        "without any, and left out: other"
    )
    assert known_groups(GROUPS, ["BAX", "TP53", "CDK1", "BCL2"], "t")[1] == "2 groups"


def test_groups_of_no_known_feature_are_refused():
    with mistake(
        "t: found 2 groups of features such as TP53, CDK1, BAX, BCL2; expected features of the "
        "data, such as g1. Check that both are of one nomenclature."
    ):
        known_groups(GROUPS, ["g1"], "t")
