"""CSV files, the checks of `columns`, and the choice of the label column."""

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.data.dataset import RawData
from mkldist.data.files import read_file
from mkldist.data.tables import ColumnChoice
from mkldist.spec.datasets import TableFormat
from tests.data.mistakes import mistake

GOOD = "a,b,label\n1,2.5,yes\n-3,4e2,no\n"


def write(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(
    folder: Path, text: str | bytes, label: str | int | None = None, **columns: Any
) -> RawData:
    return read_file(write(folder, text), ColumnChoice(label, **columns), "data set 't'")


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace("\n", "\n\n"),
        GOOD.rstrip("\n"),
        "\ufeff" + GOOD,
        GOOD.replace("yes", '" yes "').replace("a,", ' "a" ,'),
        gzip.compress(GOOD.encode(), mtime=0),
    ],
)
def test_equal_tables_however_they_are_written(tmp_path, text):
    raw = read(tmp_path, text)
    np.testing.assert_array_equal(raw.x, [[1, 2.5], [-3, 400]])
    assert raw.labels.tolist() == ["yes", "no"]
    assert [name.strip('"') for name in raw.feature_names] == ["a", "b"]


def test_missing_values_become_nan(tmp_path):
    raw = read(tmp_path, "a,b,c,d,label\n,?,NA, nan ,1\n1,2,3,None,0\n")
    np.testing.assert_array_equal(raw.x, [[np.nan] * 4, [1, 2, 3, np.nan]])


def test_column_numbers_of_pandas_are_names(tmp_path):
    assert read(tmp_path, "0,1,2,label\n5,6,7,a\n").feature_names == ("0", "1", "2")


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
        min_size=1,
        max_size=5,
    )
)
def test_every_float_is_read_exactly(tmp_path_factory, rows):
    text = "a,b,label\n" + "".join(f"{p!r},{q!r},1\n" for p, q in rows)
    raw = read(tmp_path_factory.mktemp("csv"), text)
    np.testing.assert_array_equal(raw.x, rows)


def test_ragged_rows_are_refused_by_line(tmp_path):
    with mistake("line 3", "2 fields", "3, as in the header"):
        read(tmp_path, "a,b,label\n1,2,x\n1,2\n")
    with mistake("line 2", "4 fields"):
        read(tmp_path, "a,b,label\n1,2,3,x\n")
    with mistake("line 4", "2 fields"):
        read(tmp_path, 'a,b,label\n1,2,"x\ny"\n1,2\n')


@pytest.mark.parametrize(
    "rows",
    [
        "5.1,3.5,1.4,0.2,setosa\n5.1,3.5,1.4,0.2,setosa\n",
        "1,2,3,4,5.5\n1,2,3,4,5.5\n",
        "-1,?,2.5,3,4\n-1,?,2.5,3,4\n",
        "54,male,typical,sick\n32,male,none,well\n44,female,typical,sick\n",
        "rep,n,y,y\ndem,y,n,?\nrep,n,?,y\n",
        f"+,S10,{'acgt' * 9}\n-,S11,{'tgca' * 9}\n+,S12,{'ggca' * 9}\n",
        "A12 32 A33 8564 1\nA11 12 A34 -548 2\nA12 21 A34 3925 1\n",
        "# by us\n54,male,typical,sick\n32,male,none,well\n44,female,typical,sick\n",
    ],
)
def test_a_first_line_of_data_is_not_lost(tmp_path, rows):
    comment = {"comment": "#"} if rows.startswith("#") else {}
    with mistake("line 2" if comment else "line 1", "numbers", "header = false", "header = true"):
        read(tmp_path, rows, format=TableFormat(**comment))
    keys = TableFormat(header=False, **comment)
    others = tuple(f"f{i}" for i in range(1, len(re.split("[, ]", rows.splitlines()[-1]))))
    whole = read(tmp_path, rows, "f0", format=keys, ignore=others, bare=True)
    assert len(whole.labels) == 3 - 1 * (len(rows.splitlines()) == 2)
    assert whole.columns is not None
    assert whole.columns.format["names"][:2] == ("f0", "f1")


@pytest.mark.parametrize(
    "text",
    [
        "sex,smoker,class\nm,smoker,y\nf,no,n\n",
        "y,a,b\ny,1,2\nn,2,3\n",
        "x1,x2,label\n1,2,x1\n3,4,x2\n",
        "note,class\nfree text,a\nother,b\n",
        "400,402,404,class\n1,2,3,a\n4,5,6,b\n",
    ],
)
def test_a_header_is_no_row(tmp_path, text):
    names = text.partition("\n")[0].split(",")
    raw = read(tmp_path, text, names[-1], ignore=tuple(names[:-1]), bare=True)
    assert len(raw.labels) == 2


WRITTEN: list[tuple[str | bytes, dict[str, Any]]] = [
    ("sep=|\na|b|label\n1|2.5|yes\n-3|4e2|no\n", {}),
    (GOOD.encode("utf-16"), {}),
    (GOOD.encode("utf-16-le"), {}),
    (GOOD.encode("utf-16-be"), {}),
    ("\n".join("'" + line.replace(",", "','") + "'" for line in GOOD.split()), {}),
    ("% ours\n%\n" + GOOD, {"comment": "%"}),
    (GOOD.replace(",", "  ").replace("no\n", "no \n"), {}),
    ("# ours\n#\n" + GOOD, {"comment": "#"}),
    (GOOD.replace("\n-3", "\n#9,9,x\n-3"), {"comment": "#"}),
    (GOOD.replace(",", "|"), {"separator": "|"}),
    (GOOD.replace("yes\n", "yes,\n").replace("no\n", "no,\n"), {}),
    (GOOD.replace(",", " ").replace("yes", '"yes"'), {"separator": "whitespace"}),
    (GOOD.replace(",", ";").replace("2.5", "2,5"), {"decimal": ","}),
    (GOOD.replace("4e2", '"400,0"').replace("2.5", '"2,50"'), {"decimal": ","}),
    (GOOD.partition("\n")[2], {"header": False, "names": ("a", "b", "label")}),
    (GOOD.partition("\n")[2], {"names": ("a", "b", "label")}),
    ("1,2,3\n1,2.5,yes\n-3,4e2,no\n", {"header": True, "names": ("a", "b", "label")}),
    (GOOD.replace("4e2", "€ 400").replace("2.5", "€2.50"), {"units": {"b": "€"}}),
    (
        GOOD.replace("4e2", "40_000 %").replace("2.5", "250%"),
        {"units": {"b": "%"}, "thousands": "_"},
    ),
]


@pytest.mark.parametrize(("text", "keys"), WRITTEN)
def test_tables_as_people_write_them(tmp_path, text, keys):
    raw = read(tmp_path, text, "label", format=TableFormat(**keys))
    factor = 100.0 if keys.get("units") == {"b": "%"} else 1.0
    np.testing.assert_array_equal(raw.x, [[1, 2.5 * factor], [-3, 400 * factor]])
    assert raw.labels.tolist() == ["yes", "no"]
    said = " ".join(raw.summary.notes)
    assert ("separator '|'" in said) == (text[:4] == "sep=")
    assert ("UTF-16" in said) == isinstance(text, bytes)


def test_the_names_of_rows_that_r_writes_have_no_name(tmp_path):
    text = 'a b label\n"1" 1 2.5 yes\n"2" -3 4e2 no\n'
    raw = read(tmp_path, text, id="Unnamed: 0")
    assert raw.ids is not None
    assert raw.ids.tolist() == ["1", "2"]
    assert raw.feature_names == ("a", "b")
    assert any("one short" in note for note in raw.summary.notes)


def test_values_that_stand_for_missing_ones(tmp_path):
    text = "a,b,c,label\n-,-999,x,-999\n1,2,.,1\n2,-999.0,y,2\n.,4,x,3\n#N/A,5,y,4\n"
    keys = TableFormat(missing_values=("-", ".", -999))
    raw = read(tmp_path, text, format=keys, categorical=("c",))
    np.testing.assert_array_equal(raw.x[:, 0], [np.nan, 1, 2, np.nan, np.nan])
    np.testing.assert_array_equal(raw.x[:, 1], [np.nan, 2, np.nan, 4, 5])
    assert raw.feature_names[2:] == ("c=x", "c=y", "c=?")
    assert raw.labels.tolist() == ["", "1", "2", "3", "4"]
    raw = read(tmp_path, text, ignore=("a", "c"))
    assert any("-999 of 'b' stands apart" in note for note in raw.summary.notes)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"names": ("a", "b")}, ("names: found 2 names of 3 columns",)),
        ({"units": {"c": "mg"}}, ("units: found no column 'c'",)),
        ({"units": {"b": "mg"}}, ("2.5 (not in mg)", "column 'b'")),
        ({"encoding": "utf-16"}, ("BOM", "encoding")),
    ],
)
def test_a_format_that_is_not_that_of_the_file(tmp_path, keys, said):
    with mistake(*said):
        read(tmp_path, GOOD, format=TableFormat(**keys))


def test_a_first_comment_is_no_header(tmp_path):
    with mistake("line 1", "a comment", 'Set comment = "#"'):
        read(tmp_path, "# made by us\n" + GOOD)
    with mistake("line 1", "a comment", 'Set comment = "%"'):
        read(tmp_path, "% made by us\n" + GOOD)
    for lines in ("Study: X\nOf 2024\n\n", "Study: X\nSites: A, B\n"):
        for separator in ",;":
            with mistake("line 1", "'Study:", "rows of 3", "Remove 2 lines"):
                read(tmp_path, lines + (GOOD + "1,2,no\n").replace(",", separator))
    notes = read(tmp_path, GOOD.replace("no\n", "no # ok\n")).summary.notes
    assert any("'# ok'" in note for note in notes)
    assert read(tmp_path, "#" + GOOD).feature_names == ("#a", "b")


@pytest.mark.parametrize("text", ["red", "1_000", "0x1F", "1,5"])
def test_text_in_a_feature_column_is_refused_by_line_and_column(tmp_path, text):
    with mistake("line 3", "column 'b'", repr(text), "a number"):
        read(tmp_path, f'a,b,label\n1,2,x\n1,"{text}",y\n')


def test_truth_values_are_numbers(tmp_path):
    raw = read(tmp_path, "a,b,label\ntrue,2,x\n False,3,y\n")
    np.testing.assert_array_equal(raw.x, [[1, 2], [0, 3]])


def test_columns_have_the_roles_that_they_are_given(tmp_path):
    text = "id,sex,a,note,ill,b\n7,m,1,x_1,yes,2\n8,f,3,,no,4\n9,m,5,z,no,6\n"
    raw = read(tmp_path, text, "ill", id="id", ignore=("note",), categorical=("sex",))
    assert raw.feature_names == ("a", "b", "sex=f", "sex=m")
    np.testing.assert_array_equal(raw.x, [[1, 2, 0, 1], [3, 4, 1, 0], [5, 6, 0, 1]])
    assert raw.labels.tolist() == ["yes", "no", "no"]
    only = read(tmp_path, text, "ill", ignore=("id", "note", "a", "b"), categorical=("sex",))
    np.testing.assert_array_equal(only.x, raw.x[:, 2:])


def test_all_mistakes_of_a_file_are_in_one_message(tmp_path):
    text = "sex,a,day,label\nm,1,2021-03-01,x\nf,?,2021-03-02,y\nf,one,2021-03-03,y\n1,2\n"
    with mistake(
        "column 'sex' (3 of 4 rows", "dates in column 'day' (3 of 4 rows", "column 'a' (1 of 4",
        "'one' in line 4", "1 row of another length", "2 fields in line 5",
    ):  # fmt: skip
        read(tmp_path, text)


def test_files_that_hold_no_table(tmp_path):
    with mistake("an empty file"):
        read(tmp_path, gzip.compress(b"", mtime=0))
    with mistake("a blank first line"):
        read(tmp_path, "\n\n1,2\n")
    with mistake("a header and no rows"):
        read(tmp_path, "a,b,label\n\n")
    with mistake("1 column (a|b|label)", "comma, semicolon or tab"):
        read(tmp_path, "a|b|label\n1|2|x\n")


def test_texts_may_be_long(tmp_path):
    text = "word " * 30_000 + "end"
    found = read(tmp_path, f'a,note,label\n1,"{text}",x\n2,short,y\n', texts=("note",))
    assert found.texts is not None
    assert found.texts.values.ravel().tolist() == [text, "short"]


def test_an_open_quotation_mark_is_refused_where_its_row_begins(tmp_path):
    with mistake("data set 't', line 3: found a line that is no row", "read to line 5"):
        read(tmp_path, 'a,label\n1,x\n2,"y\n3,x\n4,y\n')


def test_a_gzip_file_cut_short_or_damaged(tmp_path):
    table = "a,b,label\n" + "".join(f"{i},{i * i % 97},{i % 2}\n" for i in range(2000))
    packed = gzip.compress(table.encode(), mtime=0)
    with mistake("cut short or damaged"):
        read(tmp_path, packed[: len(packed) // 2])
    with mistake("cut short or damaged"):
        read(tmp_path, packed[:8])
    middle = len(packed) // 2
    flipped = packed[:middle] + bytes([packed[middle] ^ 0xFF]) + packed[middle + 1 :]
    with mistake():
        read(tmp_path, flipped)


def test_bytes_that_are_no_text(tmp_path):
    with mistake("not UTF-8", "iconv"):
        read(tmp_path, "größe,b,label\n1,2,x\n".encode("latin1"))
    with mistake("line 2"):
        read(tmp_path, 'a,b,label\n1,2,"x\n')


def test_a_first_column_without_a_name_needs_a_role(tmp_path):
    text = ",a,label\n7,1,yes\n8,2,no\n"
    with mistake("no name of column 1, as pandas", 'Set id = "Unnamed: 0"', "index=False"):
        read(tmp_path, text)
    raw = read(tmp_path, text, id="Unnamed: 0")
    assert raw.feature_names == ("a",)
    assert raw.ids is not None
    assert raw.ids.tolist() == ["7", "8"]
    assert read(tmp_path, text, ignore=("Unnamed: 0",)).feature_names == ("a",)


def test_rows_of_predictions_are_named_by_id_or_else_by_groups(tmp_path):
    text = "patient,a,label\n7,1,yes\n7,2,no\n"
    for columns in ({"of_splits": ("patient",), "groups": "patient"}, {"id": "patient"}):
        raw = read(tmp_path, text, **columns)
        assert raw.columns is not None
        assert raw.columns.id == "patient"
