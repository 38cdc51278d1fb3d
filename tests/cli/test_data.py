"""The command that writes a first sweep: what it asks, writes, prints and refuses."""

import os
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file

from mkldist.cli import first_sweep
from mkldist.cli.data import init_command, show_command
from mkldist.cli.sweeps import plan_command
from mkldist.errors import MkldistError
from mkldist.from_python.listings import known, known_of
from mkldist.kernel_functions import FUNCTIONS
from mkldist.kernels.families import NAMED_FAMILIES, kernel_list
from mkldist.methods.registry import METHODS
from mkldist.spec.banks import BankSpec
from mkldist.spec.load import load_sweep, shipped_sweeps


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """Return the folder of the command, with a table in a folder beside it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "work").mkdir()
    rows = "\n".join(f"{i},{i * 7 % 11},{'ill' if i % 2 else 'well'}" for i in range(40))
    (tmp_path / "data" / "my heart.csv").write_text(f"no,pulse,state\n{rows}\n")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def run_init(*words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(init_command, words, input=typed, catch_exceptions=False)


def test_it_writes_a_sweep_and_prints_its_plan(here):
    done = run_init("../data/my heart.csv", "--label", "state")
    assert done.exit_code == 0
    assert "\nwrote my_heart.toml, and mkldist.schema.json" in done.output
    assert "my_heart: 50 runs in 5 batches" in done.output
    assert "left out:  'no' (names the rows)" in done.output
    assert done.output.endswith("mkldist sweep my_heart.toml runs it\n")
    (dataset,) = load_sweep(Path("my_heart.toml")).datasets
    assert (dataset.file, dataset.label, dataset.id) == ("../data/my heart.csv", "state", "no")
    assert {path.name for path in here.iterdir()} == {"mkldist.schema.json", "my_heart.toml"}


@pytest.mark.parametrize("name", ["d [x]*\n e.csv", "a\r\x7f\x1b#.csv", 'q"\\n\t.csv'])
def test_any_name_of_a_file_and_any_value_of_a_label_give_a_sweep_that_parses(name):
    rows = pd.DataFrame({"la\x7fbel": ["i\nll", "we\x00ll"] * 20, "pulse": np.arange(40.0)})
    rows.to_csv(name, index=False)
    assert run_init(name, "--label", "la\x7fbel", "--to", "first\nsweep.toml").exit_code == 0
    (dataset,) = load_sweep(Path("first\nsweep.toml")).datasets
    assert (dataset.file, dataset.label) == (name, "la\x7fbel")


def test_the_file_may_lie_elsewhere_and_is_not_replaced_unasked(here):
    words = ("../data/my heart.csv", "--label", "state", "--to", "../data/first.toml")
    assert "50 runs" in run_init(*words).output
    assert load_sweep(Path("../data/first.toml")).datasets[0].file == "my heart.csv"
    with pytest.raises(MkldistError, match="by --overwrite"):
        run_init(*words)
    assert "50 runs" in run_init(*words, "--overwrite").output


def test_without_anybody_to_ask_the_label_is_demanded(here):
    with pytest.raises(MkldistError, match=r"Give --label, one of 'state', 'pulse'.*\.views"):
        run_init("../data/my heart.csv")
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("../data/my heart.csv", "--label: found no column 'z'; .* Choose one of state, pulse"),
        ("d.npz", "found no array 'z' .* Give --label the name of the array of labels, or write"),
        ("d.parquet", "found no column 'z'; expected the name of a column. Choose one of"),
    ],
)
def test_a_label_that_the_file_lacks_is_told_in_words_of_the_command(file, message):
    np.savez("d.npz", x=np.eye(4), y=[0, 0, 1, 1])
    if file.endswith(".parquet"):
        pytest.importorskip("pyarrow")
        pd.DataFrame({"a": [1, 2], "b": [3, 4]}).to_parquet("d.parquet")
    with pytest.raises(MkldistError, match=message) as error:
        run_init(file, "--label", "z")
    assert "label = " not in str(error.value)


def test_the_label_is_asked_for(monkeypatch):
    class Terminal:
        stdin = type("", (), {"isatty": staticmethod(lambda: True)})

    monkeypatch.setattr(first_sweep, "sys", Terminal)
    done = run_init("../data/my heart.csv", typed="stat\nstate\n")
    assert "  state: 2 values (well, ill)\n" in done.output
    assert "'stat' is not one of 'state', 'pulse'" in done.output
    assert "50 runs" in done.output


@pytest.mark.parametrize("form", ["npz", "mat", "svm", "apart"])
def test_gram_matrices_are_named_by_grams(form):
    x = np.random.default_rng(0).normal(size=(40, 3))
    gram, y = x @ x.T, np.where(x[:, 0] > 0, 2.0, 1.0)
    file = f"k.{form.replace('apart', 'npz')}"
    if form == "npz":
        np.savez(file, grams=gram[None], y=y)
    elif form == "apart":
        parts = {"y_train": y[:30], "y_test": y[30:]}
        np.savez(file, K_train=gram[:30, :30], K_test=gram[30:, :30], **parts)
    elif form == "mat":
        savemat(file, {"K": gram, "y": y})
    else:
        rows = np.column_stack([np.arange(1, 41), gram])
        dump_svmlight_file(rows, y, file, zero_based=True)
    done = run_init(file)
    assert done.exit_code == 0, done.output
    sweep = load_sweep(Path("k.toml"))
    assert [(one.grams, one.file) for one in sweep.datasets] == [(file, None)]
    assert "40 rows, 1 Gram matrix" in done.output
    assert sweep.splits.kind == ("predefined" if form == "apart" else "holdout")


def test_arrays_need_no_columns(here):
    x = np.random.default_rng(0).normal(size=(30, 2))
    np.savez("points.npz", x=x, y=np.arange(30) % 2)
    done = run_init("points.npz")
    assert "points: 30 rows, 2 features" in done.output
    assert "50 runs" in done.output


def test_a_missing_file_is_named():
    with pytest.raises(MkldistError, match=r"hearts\.csv: found no such file"):
        run_init("hearts.csv")


def test_columns_of_few_values_are_listed_as_labels():
    rows = "\n".join(f"{i / 7},{i * i / 3},{i % 2}" for i in range(40))
    Path("t.csv").write_text(f"a,b,sick\n{rows}\n")
    said = "Give --label, one of 'sick'; all others hold more values. .*datasets.views"
    with pytest.raises(MkldistError, match=said):
        run_init("t.csv")


def test_a_column_that_repeats_is_told():
    rows = "\n".join(f"{100 + i // 2},{i * 7 % 11},{'ab'[i % 2]}" for i in range(40))
    Path("t.csv").write_text(f"patient_id,x,label\n{rows}\n")
    done = run_init("t.csv")
    assert "# 20 values in 40 rows: rows of one stay in one part\n" in done.output
    assert "left out:  'patient_id' (divides the rows)" in done.output
    assert "groups:    20, whose rows stay in one part" in done.output


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_a_rare_class_and_a_part_of_the_rows_are_told(ending):
    x, y = np.random.default_rng(0).normal(size=(5100, 2)), np.arange(5100) % 10 == 0
    if ending == "npz":
        np.savez("t.npz", x=x, y=y.astype(int))
    else:
        pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": y.astype(int)}).to_csv("t.csv")
    done = run_init(f"t.{ending}")
    assert "the 510 rows of '1', of 5100, count like the others" in done.output
    assert "# of 5100 rows, drawn at random, classes in proportion" in done.output
    assert "0 (1800 rows) is -1, 1 (200 rows) is +1" in done.output


def test_a_name_that_no_sweep_file_can_hold_is_refused(here):
    name = os.fsdecode(b"bad_\xe9.csv")
    Path(name).write_bytes((here.parent / "data" / "my heart.csv").read_bytes())
    with pytest.raises(MkldistError, match=r"found a name that is not UTF-8.*Rename") as error:
        run_init(name, "--label", "state")
    str(error.value).encode()
    assert [path.name for path in here.iterdir()] == [name]


def test_existence_goes_before_the_ending_and_the_nearest_name_may_end_otherwise():
    Path("notes.csv").write_text("a,b\n1,2\n")
    with pytest.raises(MkldistError, match=r"notes\.q: found no such file.*'notes\.csv'"):
        run_init("notes.q")


def cohort(rng: np.random.Generator, n: int = 60) -> None:
    """Write two tables of the same patients, of which some lack the second."""
    patients, ill = [f"P{i:03}" for i in range(n)], np.arange(n) % 3 == 0
    first = {"patient": patients, "centre": [f"c{i % 8}" for i in range(n)]}
    first |= {"sex": ["m", "f"] * (n // 2), "dose": [f"{d:.1f} mg" for d in rng.normal(8, 1, n)]}
    first |= {"response": np.where(ill, "yes", "no")}
    pd.DataFrame(first).to_csv("clinical.csv", index=False)
    genes = pd.DataFrame(rng.normal(size=(n, 5)) + ill[:, None]).add_prefix("g")
    genes["dna"] = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(n)]
    genes.insert(0, "sample", patients)
    genes.iloc[::-1].iloc[: n - 10].to_csv("genes.csv", index=False, sep=";")


def test_several_tables_make_one_sweep_with_kernels_of_each():
    cohort(np.random.default_rng(0))
    words = ("clinical.csv", "--view", "expression=genes.csv", "--id", "patient")
    done = run_init(*words, "--groups", "centre", "--label", "response")
    assert "no (40 rows) is -1, yes (20 rows) is +1" in done.output
    assert "10 of 60 points lack it: its kernels are zero there" in done.output
    spec = load_sweep(Path("clinical.toml"))
    [dataset], [bank] = spec.datasets, spec.banks
    own, view = dataset.views
    assert (dataset.id, dataset.units, dataset.classes) == (
        "patient",
        {"dose": "mg"},
        ("no", "yes"),
    )
    assert (own.name, view.name, view.id, view.missing) == (
        "clinical",
        "expression",
        "sample",
        "zero",
    )
    assert view.texts == ("dna",)
    assert spec.splits.groups == "centre"
    assert spec.inner_folds is not None
    assert [one.features for one in bank.kernels] == [
        ["clinical", "expression"],
        ["expression.dna"],
    ]
    assert "ids" not in run_init("clinical.csv", "--label", "response", "--to", "own.toml").output
    assert '# groups = "centre" ' in Path("own.toml").read_text()
    with pytest.raises(MkldistError, match=r"--view expression \(genes\.csv\): found no column"):
        run_init(*words[:3], "--id", "centre", "--label", "response", "--overwrite")
    with pytest.raises(MkldistError, match=r"a file that this command reads"):
        run_init(*words, "--to", "genes.csv", "--overwrite")


def test_a_table_without_a_header_is_said_and_read():
    rows = "\n".join(f"{1000 + i * 37},{'MB'[i % 2]},{i * 7 % 11},{i / 7:.2f}" for i in range(40))
    Path("wdbc.data").write_text(rows + "\n")
    with pytest.raises(MkldistError, match="found no header, so that columns are called f0"):
        run_init("wdbc.data")
    done = run_init("wdbc.data", "--label", "f1")
    assert "header = false" in done.output
    assert "wdbc: 40 rows, 2 features" in done.output
    assert "B (20 rows) is -1, M (20 rows) is +1" in done.output
    assert "left out:  'f0' (names the rows)" in done.output
    with pytest.raises(MkldistError, match="no column 'f1'"):
        run_init("wdbc.data", "--label", "f1", "--header", "--overwrite")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("672,675,7157,status", ("--label", "status")),
        ("sample,672,675,group 2", ("--label", "group 2", "--id", "sample")),
        ("country,1990,1991,1992,result", ("--label", "1992", "--groups", "country")),
    ],
)
def test_a_name_that_is_given_tells_a_header_of_numbers_from_a_row(header, words):
    n = header.count(",")
    draw = np.random.default_rng(0).integers(0, 99, (40, n)).astype(str)
    if "--id" in words or "--groups" in words:
        draw[:, 0] = [f"S{i}" if "--id" in words else "abcdefgh"[i % 8] for i in range(40)]
    rows = [",".join([*row, "uv"[i % 3 > 0]]) for i, row in enumerate(draw)]
    Path("t.csv").write_text("\n".join([header, *rows]))
    done = run_init("t.csv", *words)
    assert "t: 40 rows" in done.output
    (dataset,) = load_sweep(Path("t.toml")).datasets
    assert dataset.format.header is None


def test_values_and_rows_that_are_not_known_are_said():
    frame = pd.DataFrame({"a": np.arange(40) * 7 % 11 + 0.5, "b": np.arange(40) * 5 % 13 + 0.25})
    frame.loc[::9, "a"] = -999
    frame["part"] = np.where(np.arange(40) % 2, "train", "test")
    frame["class"] = np.where(np.arange(40) % 3 == 0, "case", "ctl")
    frame.loc[:3, "class"] = ""
    frame.to_csv("t.csv", index=False, sep=";", decimal=",")
    done = run_init("t.csv")
    assert "missing_values = [-999]" in done.output
    assert 'decimal = ","' in done.output
    assert "t: 36 of 40 rows, 2 features" in done.output
    assert "4 rows without a label, 'part' (ignored)" in done.output
    assert '# column = "part"' in Path("t.toml").read_text()
    assert load_sweep(Path("t.toml")).datasets[0].unlabelled == "drop"


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "svm"])
def test_real_valued_labels_are_regression_in_every_format(ending):
    x, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) / 3
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=y)
    if ending == "npz":
        np.savez("t.npz", x=x, y=y)
    elif ending == "svm":
        dump_svmlight_file(x, y, "t.svm")
    else:
        frame.to_csv("t.csv") if ending == "csv" else frame.to_parquet("t.parquet")
    assert "t: 40 rows, 3 features, regression" in run_init(f"t.{ending}").output


def shown(*words: str) -> str:
    done = CliRunner().invoke(show_command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_everything_known_has_a_line_and_a_name_of_its_own_in_its_kind():
    everything = [(one.kind, one.name) for one in known()]
    assert len(set(everything)) == len(everything)
    assert all(one.line for one in known())
    assert {name for kind, name in everything if kind == "method"} == set(METHODS)
    assert {name for kind, name in everything if kind == "sweep"} == set(shipped_sweeps())


def test_kernel_functions_and_families_are_those_of_sweep_files():
    assert {one.name for one in known_of("kernel")} == set(FUNCTIONS)
    assert {one.name for one in known_of("family")} == {*NAMED_FAMILIES, "precomputed"}


@pytest.mark.parametrize("name", NAMED_FAMILIES)
def test_a_family_written_out_has_the_same_kernels(name):
    banks = tomllib.loads(shown(name).partition("\n")[2])["banks"]
    family, written = (BankSpec.model_validate(bank) for bank in banks)
    one, other = (
        kernel_list(spec, 3, ("a", "b", "c"), {}, seed=0).fingerprint for spec in (family, written)
    )
    assert one == other


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_kernel_function_is_a_bank(name):
    example = shown(name).split("\n\n")[1]
    (bank,) = tomllib.loads(example)["banks"]
    spec = BankSpec.model_validate(bank)
    assert spec.kernels[0].function == name
    assert len(kernel_list(spec, 3, ("a", "b", "c"), {}, seed=0)) >= 4


def test_a_method_is_shown_in_full():
    text = shown("level")
    assert text.startswith("level  Extended Level method\n")
    assert "Xu, Jin, King & Lyu 2008" in text
    assert "time_limit = inf" in text


@pytest.mark.slow
def test_a_data_set_is_shown_with_its_classes_and_features(tmp_path):
    (tmp_path / "mine.csv").write_text("a,b,class\n1,2,yes\n3,4,no\n5,7,yes\n2,9,no\n")
    text = shown("mine", "--data-dir", str(tmp_path))
    assert "rows      4\n" in text
    assert "2 classes: 2 no, 2 yes; yes is +1\n" in text
    assert "features  2: a, b\n" in text
    assert "real values from 25 to 346" in shown("diabetes")
    assert "and 18 more" in shown("wdbc")


def test_a_sweep_is_printed_so_that_it_can_be_copied():
    text = shown("quickstart")
    assert tomllib.loads(text) == tomllib.loads(shipped_sweeps()["quickstart"].read_text())


def test_a_name_of_two_things_shows_both_unless_one_is_chosen():
    both = shown("star")
    assert both.startswith("# dataset\n")
    assert "\n# sweep\n" in both
    assert tomllib.loads(shown("star", "--kind", "sweep"))["name"] == "star"


def test_words_and_numbers_for_missing_labels_are_said():
    for name, odd in (("na.csv", "NA"), ("nines.csv", "-999")):
        labels = [(("0", "1", odd)[i % 3], i * 7 % 11) for i in range(30)]
        pd.DataFrame(labels, columns=["class", "a"]).to_csv(name, index=False)
    assert "10 rows without a label, 'NA' being read as missing" in run_init("na.csv").output
    assert load_sweep(Path("na.toml")).datasets[0].unlabelled == "drop"
    run_init("nines.csv")
    text = Path("nines.toml").read_text().replace("missing_values", "# ").replace("classes", "# ")
    Path("nines.toml").write_text(text)
    shown = CliRunner().invoke(plan_command, ["nines.toml"]).output
    assert "the label -999 stands apart" in shown


def test_copies_of_the_label_are_left_out_of_table_and_views_and_said():
    states, rows = np.array(["well", "ill"] * 20), [f"P{i}" for i in range(40)]
    frame = pd.DataFrame({"patient": rows, "state": states, "sick": states == "ill"})
    frame["age"] = np.arange(40) * 7 % 31
    frame["sex"] = np.where(np.arange(40) % 4 > 1, "f", "m")
    view = frame.sample(frac=1.0, random_state=0).rename(columns={"sex": "gender", "age": "bmi"})
    frame.to_csv("t.csv", index=False)
    view.assign(donor=np.arange(40) % 8).to_csv("v.csv", index=False)
    done = run_init("t.csv", "--label", "state", "--view", "v=v.csv", "--id", "patient")
    assert done.output.count("# says the label") == 2
    view[["patient", "state"]].to_csv("labels.csv", index=False)
    with pytest.raises(MkldistError, match=r"no feature in labels\.csv: 'state' would say"):
        run_init("t.csv", "--label", "state", "--view", "v=labels.csv", "--to", "no.toml")
    (dataset,) = load_sweep(Path("t.toml")).datasets
    assert (dataset.ignore, dataset.categorical) == (("sick",), ("sex",))
    view_keys = dataset.views[1].ignore, dataset.views[1].categorical
    assert view_keys == (("state", "sick", "donor"), ("gender",))
    text = Path("t.toml").read_text().replace('["sick"]', '["age"]')
    Path("other.toml").write_text(text)
    shown = CliRunner().invoke(plan_command, ["other.toml"]).output
    assert "'sick' alone would tell the label" in shown


@pytest.mark.parametrize("blank", ["clinical", "genes"])
def test_a_row_without_any_value_of_a_table_has_no_kernel_there(blank):
    draw = np.random.default_rng(0).normal(size=(60, 4)).round(2)
    ids = pd.Index([f"P{i:02}" for i in range(60)], name="patient")
    clinical = pd.DataFrame(draw[:, :2], ids, ["age", "dose"])
    genes = pd.DataFrame(draw[:, 2:], ids, ["g1", "g2"])
    {"clinical": clinical, "genes": genes}[blank].iloc[::9] = np.nan
    clinical.assign(label=np.where(draw[:, 0] > 0, "case", "ctl")).to_csv("clinical.csv")
    genes.iloc[:58].to_csv("genes.csv")
    run_init("clinical.csv", "--view", "genes=genes.csv", "--id", "patient")
    (dataset,) = load_sweep(Path("clinical.toml")).datasets
    own = "zero" if blank == "clinical" else None
    assert [view.missing for view in dataset.views] == [own, "zero"]


@pytest.mark.parametrize("words", [("--id", "patient"), ()])
def test_a_table_of_features_in_rows_is_turned(words):
    draw = np.random.default_rng(0).normal(size=(60, 5)).round(2)
    ids = pd.Index([f"P{i:02}" for i in range(60)], name="patient")
    labels = np.where(draw[:, 0] > 0, "case", "ctl")
    pd.DataFrame({"age": draw[:, 0], "label": labels}, ids).to_csv("clinical.csv")
    genes = pd.DataFrame(draw[:, 1:], ids, [f"g{i}" for i in range(4)])
    genes.T.to_csv("genes.csv", index_label="gene")
    genes.assign(**{"class": labels}).T.to_csv("whole.csv", index_label="gene")
    run_init("clinical.csv", "--view", "genes=genes.csv", *words)
    own, view = load_sweep(Path("clinical.toml")).datasets[0].views
    assert (own.format.transpose, view.format.transpose, view.id) == (False, True, "samples")
    for label in ((), ("--label", "class")):
        assert "60 rows, 4 features" in run_init("whole.csv", *label, "--overwrite").output
        (dataset,) = load_sweep(Path("whole.toml")).datasets
        assert (dataset.format.transpose, dataset.label) == (True, "class")


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([f"p{i}" for i in range(60)], "such as P0, P1, .* such as p0, p1, .* has 0 of 60;"),
        (range(60), "such as 0, 1, .* has 0 of 60;"),
        (["P1", *(f"P{i}" for i in range(1, 60))], "has 59 of 60, but 'P1' occurs 2 times"),
    ],
)
def test_names_of_rows_that_do_not_fit_are_shown_as_both_tables_write_them(ids, said):
    draw = np.random.default_rng(0).normal(size=60)
    names, labels = [f"P{i}" for i in range(60)], ["case", "ctl"] * 30
    pd.DataFrame({"patient": names, "age": draw, "label": labels}).to_csv("c.csv", index=False)
    pd.DataFrame({"patient": ids, "g": draw, "sex": ["m", "f"] * 30}).to_csv("g.csv", index=False)
    with pytest.raises(MkldistError, match=said):
        run_init("c.csv", "--view", "g=g.csv", "--id", "patient")
