"""The kinds of columns at a first look, and the roles that follow."""

from pathlib import Path

import numpy as np
import pytest

from mkldist.data.catalogue import load_dataset
from mkldist.data.cells import apart_notes, likely_keys
from mkldist.data.table_profile import (
    Column,
    TableProfile,
    check_column,
    inspected,
    likely_label,
    possible_labels,
    read_columns,
)
from mkldist.errors import DataError
from mkldist.spec.datasets import DatasetSpec

PATIENTS = ["patient_id,age,smoker,site,admitted,note,pulse,disease"] + [
    f"P{i:02d},{30 + i * 7 % 50},{'true' if i % 3 else 'false'},{('Bern', 'Genf', 'Basel')[i % 3]},"
    f"2024-01-{i + 1:02d},seen at {i} o'clock,{'' if i == 4 else 60 + i},{'yes' if i % 2 else 'no'}"
    for i in range(12)
]


@pytest.fixture
def patients(tmp_path) -> Path:
    path = tmp_path / "patients.csv"
    path.write_text("\n".join(PATIENTS))
    return path


def column(*values: str, name: str = "c") -> Column:
    return Column(name, values)


def test_every_column_of_a_table_has_its_role(patients):
    look = TableProfile(read_columns(patients), "disease")
    assert look.n_rows == 12
    assert look.id == "patient_id"
    assert [c.name for c in look.features] == ["age", "smoker", "pulse"]
    assert [c.name for c in look.categorical] == ["site"]
    assert [c.name for c in look.ignored] == ["admitted", "note"]
    assert look.missing == (1, 1)


def test_the_roles_make_the_data_set_that_was_foreseen(patients):
    look = TableProfile(read_columns(patients), "disease")
    spec = DatasetSpec(
        name="patients",
        file=str(patients),
        label="disease",
        id=look.id,
        ignore=tuple(c.name for c in look.ignored),
        categorical=tuple(c.name for c in look.categorical),
        impute="median",
    )
    found = load_dataset(spec, (), patients.parent, seed=0)
    assert (found.n_points, found.n_features) == (look.n_rows, look.n_features) == (12, 6)


@pytest.mark.parametrize(
    ("one", "names_rows"),
    [
        (column(*map(str, range(3, 15))), True),
        (column("3", "4", "5"), False),  # too few to tell
        (column("10", "20", "35", name="customer_id"), True),
        (column("10", "20", "35", name="width"), False),
        (column("10", "20", "20", name="id"), False),
        (column("a", "b", "c"), True),
        (column("2024-01-01", "2024-01-02"), False),
    ],
)
def test_columns_that_name_rows_are_told_from_features(one, names_rows):
    assert one.names_rows is names_rows


@pytest.mark.parametrize(
    ("cell", "keys", "units"),
    [
        (lambda i: f"{i % 9 + 1},{101 * i + 100:03d}"[:5], {"decimal": ","}, []),
        (lambda i: f"1.{i + 100},5" if i else "0,7", {"decimal": ",", "thousands": "."}, []),
        (lambda i: f"1,{i + 100},250", {"thousands": ","}, []),
        (lambda i: f"\u2212{i / 4}" if i % 2 else f"{i / 4}", {}, []),
        (lambda i: f"{i + 1}\xa0564", {"thousands": "\xa0"}, []),
        (lambda i: f"{i} kB", {"units": {"a": "kB"}}, []),
        (lambda i: f"{'$€'[i % 2]}{i}.5", {}, ["$", "€"]),
        (lambda i: f"{i}.5 {'mg'[i % 2 :]}", {}, ["mg", "g"]),
        (lambda i: f"{i}.5{'%' * (i % 2)}", {}, ["", "%"]),
        (lambda i: f"{i}:{i + 10}", {}, ["h:min"]),
    ],
)
def test_numbers_are_features_or_of_several_units_and_never_ids(tmp_path, cell, keys, units):
    path = tmp_path / "t.csv"
    rows = [f"{cell(i)};{i * 3 % 7};{'xy'[i % 2]}" for i in range(30)]
    path.write_text("\n".join(["a;b;label", *rows]), encoding="utf-8")
    columns, format = inspected(path)
    look = TableProfile(columns, "label")
    assert (format.changes, look.id, columns["a"].units) == (keys, None, units)
    assert [c.name for c in (*look.ignored, *look.features)] == ["a", "b"]
    assert bool(look.ignored) == bool(units)


@pytest.mark.parametrize(
    ("values", "noted"),
    [
        ([30, 35, -1, 69, -1, 42], "-1"),
        ([0, 1, 2, 3, 9, 9], "9"),
        ([2, 9, 1e30, 4], "1e+30"),
        ([4.5, -999, 3.5, 6], "-999"),
        ([-1, 0, 1, 2, -1], ""),
        ([-1, 1, -1, 1], ""),
        ([3.1, 3.2, 3.3, 50.0], ""),  # once
        ([np.nan, np.nan], ""),
    ],
)
def test_values_that_may_stand_for_missing_ones_are_said(values, noted):
    notes = apart_notes(["a", "c"], np.array([range(len(values)), values], dtype=float).T)
    assert [note.partition(";")[0] for note in notes] == (
        [f"the value {noted} of 'c' stands apart from all others"] if noted else []
    )


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        (["001", "010", "002"], True),
        (["02139", "", "11201"], True),
        (["100", "200", "300"], False),
        (["07", "12", "01"], False),
        (["0.5", "0.7", "1.2"], False),
    ],
)
def test_codes_with_leading_zeros_are_no_numbers(values, codes):
    one = column(*values * 4)
    assert (one.holds_codes, one.is_numeric, one.names_rows) == (codes, not codes, False)


def test_a_few_bad_cells_leave_a_column_of_numbers_one():
    numbers = [str(i) for i in range(20)]
    assert column(*numbers, "unknwon").is_numeric
    assert column(*(f"{i},5" for i in range(20))).is_numeric
    assert not column(*numbers, *"abcdefgh").is_numeric
    assert not column(*["1"] * 10, *["2"] * 10, "x").is_numeric  # codes, not numbers


def test_free_text_names_no_rows():
    notes = column(*(f"seen at {i} o'clock" for i in range(12)), name="note")
    assert notes.holds_texts
    assert not notes.names_rows
    assert not column(*(f"P{i}" for i in range(12))).holds_texts


@pytest.mark.parametrize(
    ("one", "regression"),
    [
        (column(*(f"{i / 7}" for i in range(30))), True),
        (column(*(str(i % 10) for i in range(300))), False),
        (column(*(f"class {i}" for i in range(30))), False),
    ],
)
def test_many_different_numbers_are_no_classes(one, regression):
    assert one.is_regression is regression


def test_the_label_is_the_one_column_that_is_called_so(patients):
    columns = read_columns(patients)
    assert likely_label(columns) is None
    assert possible_labels(columns)[0] in ("smoker", "disease")
    assert {"patient_id", "admitted"}.isdisjoint(possible_labels(columns))
    assert likely_label({"x": column("1"), "Diagnosis": column("a")}) == "Diagnosis"
    assert likely_label({"y": column("1"), "label": column("a")}) is None
    with pytest.raises(DataError, match="Did you mean 'disease'"):
        check_column(columns, "desease", "--label")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('a,b\n1,"2\n3,4\n', "line 2: found a line that is no row of a table"),
        ("a,b\n1,2\n3", "line 3: found 1 field; expected 2"),
        ("a,b\n", "a header and no rows"),
        ("a,a\n1,2", "the name 'a' of columns"),
        ('a,b\n1,"2', "is no row of a table"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, said):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        read_columns(path)


@pytest.mark.parametrize("gaps", [[], [""], ["?"], ["", "NA", "-"]])
def test_numbers_of_nines_are_missing_ones_beside_any_others(tmp_path, gaps):
    cells = [*map(str, range(20, 40)), "-999", "-999", *gaps]
    rows = [f"{cell},{i}.5,{'xy'[i % 2]}" for i, cell in enumerate(cells)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,label", *rows]))
    columns, format = inspected(tmp_path / "t.csv")
    assert set(format.missing_values) == {-999, *gaps} & {-999, "-"}
    assert columns["a"].n_missing == 2 + len(gaps)


def test_texts_may_be_long(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"text,class\n{'word ' * 30_000},a\n")
    assert len(read_columns(path)["text"].values[0]) == 149_999


def test_separators_and_blanks_are_those_of_the_reader(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("a \tclass\n 1\tyes \n\n2\tno\n")
    columns = read_columns(path)
    assert columns["a"].values == ("1", "2")
    assert columns["class"].values == ("yes", "no")


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        (["1.5 mg", "2 mg", "0.7 mg"], {"units": {"c": "mg"}}),
        (["12.5%", "-3%", "0 %"], {"units": {"c": "%"}}),
        (["$10.49", "$1,094", "$3.2"], {"units": {"c": "$"}, "thousands": ","}),
        (["202,458", "1,177,859", "12,000"], {"thousands": ","}),
        (["1.250,5", "12.250,75"], {"thousands": ".", "decimal": ","}),
        (["1,5", "0,25", "-3,0"], {"decimal": ","}),
        (["1", "2.5", "3", "-"], {"missing_values": ["-"]}),
        (["5.1 mmol/l", ".", "4 mmol/l"], {"units": {"c": "mmol/l"}, "missing_values": ["."]}),
        (["1 mg", "2 g", "3 mg"], {}),
        (["4\xa0564", "\u22125\xa0504"], {"thousands": "\xa0"}),
        (["A12", "A11", "A34"], {}),  # codes
        (["P001", "P002"], {}),
        (["001 a", "002 a"], {}),
        (["+", "-"], {}),
        (["<0.5", "1.2", "3.4"], {}),  # too few
        (
            ["<0.5", "1.2", "3.4", "<LOD", "7", "Total"],
            {"missing_values": ["<0.5", "<LOD", "Total"]},
        ),
        (["2020-01-01", "2021-05-06"], {}),
    ],
)
def test_how_numbers_are_written_is_recognised(values, keys):
    assert likely_keys("c", values) == keys


@pytest.mark.parametrize(
    ("name", "values", "sequences"),
    [
        ("x", ["ACGTTGCA" * 3, "TTGACCGA" * 3, "GGATTACA" * 2], True),
        ("x", ["MKTAYIAKQRQISFVK", "GSHMLEDPVAANDERF"], True),
        ("x", ["CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C)C", "C1CCCCC1O"], True),
        ("smiles", ["CCCCO", "CCCCN", "CCCCCC"], True),
        ("peptide", ["SIINFEKL", "GILGFVFTL"], True),
        ("x", ["Bern", "Genf", "Basel"], False),
        ("x", ["P0001", "P0002", "P0003"], False),
        ("x", ["seen at noon and well", "was very ill today"], False),
        ("seq", ["1.25", "3.5", "8.25"], False),
    ],
)
def test_sequences_are_told_from_names(name, values, sequences):
    one = column(*values, name=name)
    assert one.holds_sequences is sequences
    assert not (sequences and one.names_rows)


@pytest.mark.parametrize(
    ("name", "values", "subjects"),
    [
        ("patient_id", [i // 2 for i in range(20)], True),
        ("Patient", [f"P{i // 2}" for i in range(20)], True),
        ("mouse no", [i // 2 for i in range(20)], True),
        ("age", [i // 2 for i in range(20)], False),
        ("persons", [i // 2 for i in range(20)], False),
        ("patient", [i // 10 for i in range(20)], False),  # two codes, not people
        ("patient", list(range(20)), False),
        ("visit_id", [f"2020-01-{1 + i // 2:02}" for i in range(20)], False),
    ],
)
def test_columns_that_say_whose_the_rows_are(name, values, subjects):
    assert column(*map(str, values), name=name).names_subjects is subjects


@pytest.mark.parametrize(
    ("values", "orders"),
    [
        (["2020-01-01", "2020/1/2"], False),
        (["31.12.2020", "1.1.2021"], True),
        (["2020-01-01", "2020-01-02 10:00"], True),
        (["2020-01-01", ""], False),
        (["1/2/2020", "3/4/2020"], False),
    ],
)
def test_dates_by_which_a_sweep_can_order(values, orders):
    assert column(*values).holds_dates
    assert column(*values).orders_rows is orders
