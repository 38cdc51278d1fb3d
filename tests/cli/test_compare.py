"""``mkldist compare`` and ``mkldist explain``, on small real sweeps."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import mkldist
from mkldist.cli.models import print_explanation
from mkldist.cli.results import compare_command as command
from mkldist.cli.results import legend
from mkldist.core.terminal import as_text
from mkldist.errors import InputError
from mkldist.report.tables import explanation_table
from tests.analysis.made_up import made
from tests.analysis.made_up import pair as made_up_pair
from tests.cli.commands import run, run_here
from tests.report.made_up import explanation

SWEEP = """
name = "{name}"
[[datasets]]
name = "two_moons"
options = {{ n = 60 }}
[splits]
repeats = {repeats}
[[banks]]
name = "small"
[[banks.kernels]]
function = "gaussian"
widths = [0.25, 1.0]
features = ["all", "each"]
[outputs]
predictions = true
[[methods]]
name = "level"
C = [1, 10]
[[methods]]
name = "uniform"
C = [1, 10]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    for name, repeats in (("long", 4), ("short", 2)):
        (folder / f"{name}.toml").write_text(SWEEP.format(name=name, repeats=repeats))
        run(folder, "sweep", name, "--workers", "1")
    run(folder, "sweep", "short", "--workers", "1", "--set", "seed=1", "--output", "results/other")
    return folder


@pytest.mark.slow
def test_two_methods_are_compared_in_tables_and_words(folder):
    done = run_here(folder, "compare", "long", "level", "uniform")
    assert done.stdout.startswith("A: level, in results/long\nB: uniform, in results/long\n")
    words = " ".join(done.stdout.split())
    assert "This holds for these data sets, kernels and settings" in words


MATRIX = {
    ("heart", "uniform"): [0.30, 0.31, 0.29, 0.33],
    ("heart", "level"): [0.10, 0.11, 0.12, 0.10],
    ("heart", "simplemkl"): [0.11, 0.10, 0.13, 0.12],
}


def test_methods_of_a_sweep_are_a_matrix_ordered_by_their_means(tmp_path):
    made(tmp_path / "r", MATRIX, split_names="abcd")
    given = [str(tmp_path / "r")]
    document = json.loads(CliRunner().invoke(command, [*given, "--json"]).stdout)
    p = {frozenset((one["first"], one["second"])): one["p_holm"] for one in document["pairs"]}
    rows = [line.split() for line in CliRunner().invoke(command, given).stdout.splitlines()]
    table = [row for row in rows if row and row[0] in ("level", "simplemkl", "uniform")]
    means = [["level", "10.75"], ["simplemkl", "11.50"], ["uniform", "30.75"]]
    assert [row[:2] for row in table] == means
    assert table[0][2] == "-0.75"
    assert table[0][3:] == ["-20.00", "*"]
    assert float(table[1][2]) == pytest.approx(p[frozenset(("level", "simplemkl"))], abs=5e-4)


@pytest.mark.slow
def test_the_document_has_the_numbers_of_the_results(folder):
    found = json.loads(run_here(folder, "compare", "long", "level", "uniform", "--json").stdout)
    (pair,) = found["pairs"]
    tree = mkldist.open_results(folder / "results" / "long")
    least = {}
    for name in ("level", "uniform"):
        errors = tree[f"two_moons/{name}"].test_error
        least[name] = errors.isel(C=int(np.argmin(errors.mean("split").data))).to_numpy()
    assert pair["losses"]["first"] == pytest.approx(least["level"].mean())
    assert pair["losses"]["difference"] == pytest.approx(np.mean(least["level"] - least["uniform"]))
    assert pair["validated"] == [False, False]


@pytest.mark.slow
def test_two_sweeps_are_compared_on_the_splits_that_both_have(folder):
    found = json.loads(run_here(folder, "compare", "long", "results/short", "--json").stdout)
    assert [(pair["first"], pair["n_splits"], pair["left_out"]) for pair in found["pairs"]] == [
        ("level", 2, [2, 0]),
        ("uniform", 2, [2, 0]),
    ]
    one = run_here(folder, "compare", "long", "short", "--method", "level").stdout
    assert "two_moons/level: 2 splits are paired; 2 of A and 0 of B have no partner." in one
    assert "uniform" not in one


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("long --method level", "long: found no two methods on one data set and bank"),
        ("long levl uniform", "levl: found nothing of this name in the results; expected one of"),
        ("long short --dataset moon", "--dataset moon: found nothing of this name"),
        ("long other", "long other: found nothing to pair: two_moons, level: their data differ"),
        ("long level uniform --method level", "--method: found two methods already"),
    ],
)
def test_a_mistake_is_met_by_one_message(folder, words, said):
    done = run_here(folder, "compare", *words.split(), code=2)
    assert said in done.stderr
    assert done.stdout == ""


ERRORS = {("heart", "level"): [0.1, 0.2, 0.3], ("heart", "uniform"): [0.2, 0.2, 0.2]}


@pytest.fixture(scope="module")
def banks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results in paths with a slash: two of the banks a and b, one of other banks, one of one."""
    folder = tmp_path_factory.mktemp("banks") / "results"
    for name, names in (("two", "ab"), ("two_b", "ab"), ("others", "cd"), ("one", "a")):
        made(folder / name, ERRORS, split_names=("s0", "s1", "s2"), banks=tuple(names))
    other = {("heart", "skm"): ERRORS["heart", "level"]}
    made(folder / "skm", other, split_names=("s1", "s0"), banks=("a",))
    return folder


def compared(folder: Path, *words: str) -> list[tuple[str, str]]:
    """Return the methods of each pair; words that begin with a slash are names in the folder."""
    given = [f"{folder}{word}" if word.startswith("/") else word for word in words]
    done = CliRunner().invoke(command, [*given, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return [(pair["first"], pair["second"]) for pair in json.loads(done.stdout)["pairs"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "pairs"),
    [
        (["/two", "/two_b", "--method", "level"], [("a/level", "a/level"), ("b/level", "b/level")]),
        (["/two"], [("a/level", "a/uniform"), ("b/level", "b/uniform")]),
        (["/one"], [("level", "uniform")]),
        (["/two", "level", "uniform"], [("a/level", "a/uniform"), ("b/level", "b/uniform")]),
        (["/two", "a/level", "b/uniform"], [("a/level", "b/uniform")]),
        (["/two", "level", "a/level"], [("b/level", "a/level")]),
        (["/one", "/two", "--method", "level"], [("a/level", "a/level")]),
        (["/one", "/skm"], [("level", "skm"), ("uniform", "skm")]),
    ],
)
def test_banks_are_crossed_only_where_methods_name_them(banks, words, pairs):
    assert compared(banks, *words) == pairs


@pytest.mark.slow
def test_rows_are_told_apart_and_numbers_have_their_intervals(banks):
    done = CliRunner().invoke(command, [str(banks / "two"), "level", "uniform"])
    text = " ".join(done.stdout.split())
    for bank in "ab":
        assert f"heart: {bank}/level, {bank}/uniform" in text
    assert "A B A - B 95 % interval p" in text
    same = CliRunner().invoke(command, [str(banks / "one"), str(banks / "two")]).stdout
    assert "objective" in same
    assert "+0 to +0" not in same  # no interval is known where nothing varies


@pytest.mark.parametrize(("columns", "times"), [(50, 1), (80, 2)])
def test_no_name_is_cut_in_a_narrow_terminal(tmp_path, columns, times):
    errors = {("heart", key): [0.01, 0.9, 0.8] for key in ("simplemkl", "level")}
    made(tmp_path / "r", errors | {("heart", "uniform"): [0.8, 0.9, 0.01]}, split_names="abc")
    environment = {"COLUMNS": str(columns)}
    said = CliRunner().invoke(command, [str(tmp_path / "r")], env=environment).stdout
    table = said.partition("Above")[0]
    assert max(map(len, table.splitlines()[1:])) <= columns  # below the folder
    names = re.findall(
        r"simplemkl|level|uniform", table
    )  # of rows; of columns too, if there is room
    assert sorted(names) == sorted(["simplemkl", "level", "uniform"] * times)


def test_columns_of_tests_are_explained():
    assert len([*legend([made_up_pair()])]) == 2
    one_split = [made_up_pair(p_value=math.nan, p_holm=math.nan, loss="rmse")]
    assert [*legend(one_split)] == []


def test_names_are_not_read_as_markup(tmp_path):
    made(tmp_path / "[red]ours", ERRORS, split_names=("s0", "s1", "s2"))
    done = CliRunner().invoke(command, [str(tmp_path / "[red]ours"), "level", "uniform"])
    assert f"A: level, in {tmp_path}/[red]ours" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/one", "level", "a/level"], "found one method twice; expected two methods"),
        (["/two", "level", "level"], "found one method twice; expected two methods"),
        (
            ["/two", "/others"],
            "no two methods on one data set and bank .*; heart: c/",
        ),
    ],
)
def test_banks_that_leave_nothing_to_compare_are_named(banks, words, said):
    given = [f"{banks}{word}" if word.startswith("/") else word for word in words]
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(command, given, catch_exceptions=False)


@pytest.mark.parametrize("rope", ["nan", "inf", "0", "-1"])
def test_a_region_of_equivalence_is_a_positive_number(rope):
    done = CliRunner().invoke(command, ["one", "two", "--rope", rope])
    assert done.exit_code == 2
    assert "Invalid value for '--rope'" in done.output


@pytest.fixture(scope="module")
def explained_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    explained_folder = tmp_path_factory.mktemp("explain")
    more = '[[datasets]]\nname = "two_moons"\n'
    second = '[[datasets]]\nname = "two_circles"\noptions = { n = 60 }\n' + more
    (explained_folder / "one.toml").write_text(
        SWEEP.format(name="one", repeats=3).replace(more, second)
    )
    run(explained_folder, "sweep", "one", "--workers", "1")
    return explained_folder


@pytest.mark.slow
def test_every_data_set_is_explained_in_tables_and_words(explained_folder):
    text = run_here(explained_folder, "explain", "one", "--method", "level").stdout
    words = " ".join(text.split())
    for name in ("two_moons", "two_circles"):
        assert f"{name}: level" in text
        assert f"On {name}, level (C = " in words
    assert "Nogueira's measure" in words


@pytest.mark.slow
def test_the_document_has_shares_that_sum_to_one_and_a_figure(explained_folder):
    words = ("explain", "one", "--dataset", "two_moons", "--method", "level")
    words += ("--permutations", "1", "--figure", "why.png", "--json")
    found = json.loads(run_here(explained_folder, *words).stdout)
    (one,) = found["explanations"]
    assert found["figure"] == "why.png"
    assert (explained_folder / "why.png").read_bytes().startswith(b"\x89PNG")
    assert found["words"].keys() == {"two_moons"}
    refused = run_here(explained_folder, *words, code=2)
    assert "why.png: found a file of that name; expected a new file" in refused.stderr
    run_here(explained_folder, *words, "--overwrite")
    features = [share for share in one["shares"] if share["level"] == "kernel"]
    for kind in ("weight", "decision"):
        assert sum(share[kind]["mean"] for share in features) == pytest.approx(1.0)
    assert {share["p_value"] for share in features} <= {0.5, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "one --figure why.pdf",
            "--figure why.pdf: found 2 data sets: two_circles, two_moons; expected one",
        ),
        ("one --method levl", "--method levl: found nothing of this name"),
    ],
)
def test_a_mistake_of_explain_is_one_message_and_writes_nothing(explained_folder, words, said):
    done = run_here(explained_folder, "explain", *words.split(), code=2)
    assert said in done.stderr
    assert not list(explained_folder.glob("why.[pg]*f"))


def test_one_table_has_views_then_features_with_intervals(capsys):
    made = explanation(n_permutations=20)
    assert max(map(len, as_text(explanation_table([made]).for_terminal(), 80).splitlines())) <= 80
    print_explanation(made)
    text = capsys.readouterr().out
    words = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())
    assert words.index("views 1. clinic") < words.index("2. rna") < words.index("features 1.")
    assert "clinic 60 [58, 62] 20 [18, 22] 5.0 [3.0, 7.0] 3/6 0.040" in words
