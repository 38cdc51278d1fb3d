"""Files of feature groups in every format, and what they name that the data lack."""

from pathlib import Path

import pytest

from mkldist.data.views import known_groups, read_groups
from tests.data.mistakes import mistake

GROUPS = {"CELL CYCLE": ("TP53", "CDK1"), "apoptosis": ("TP53", "BAX", "BCL2")}
FILES = {
    "g.gmt": "CELL CYCLE\thttps://x.org\tTP53\tCDK1\tTP53\t\napoptosis\t\tTP53\tBAX\tBCL2\n\n",
    "g.csv": "set,gene\nCELL CYCLE,TP53\napoptosis,TP53\nCELL CYCLE, CDK1\n"
    "apoptosis,BAX\napoptosis,BCL2\n",
    "g.json": '{"CELL CYCLE": ["TP53", "CDK1"], "apoptosis": ["TP53", "BAX", "BCL2"]}',
    "g.toml": '"CELL CYCLE" = ["TP53", "CDK1"]\napoptosis = ["TP53", "BAX", "BCL2"]\n',
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_groups(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    found = read_groups(tmp_path / name, "t")
    assert found == GROUPS
    assert list(found) == list(GROUPS)


def test_blank_lines_and_long_names_are_no_mistakes(tmp_path: Path) -> None:
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
        ("g.json", '{"A": "B"}', "t: A: found 'B'; expected a list of names of features. Write "),
        ("g.json", '{"A": ', "t: found text that cannot be parsed (Expecting value"),
        ("g.toml", "A = 1", "t: A: found 1; expected a list"),
        (
            "g.json",
            '{"A": ' + 100_000 * "[",
            "t: found text that cannot be parsed (maximum recursion",
        ),
        (
            "g.toml",
            "A = " + 4000 * "[",
            "t: found text that cannot be parsed (lists or tables in each",
        ),
        (
            "g.toml",
            50_000 * "A." + "A = 1",
            "t: found text that cannot be parsed (a key of over 100",
        ),
        ("g.json", "{}", "t: found no groups"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with mistake(message):
        read_groups(tmp_path / name, "t")


def test_an_absent_file_names_the_one_that_is_meant(tmp_path: Path) -> None:
    (tmp_path / "paths.gmt").write_text(FILES["g.gmt"])
    with mistake("t: found no such file; expected an existing file. Did you mean 'paths.gmt'?"):
        read_groups(tmp_path / "path.gmt", "t")


def test_features_that_the_data_lack_are_counted_and_left_out() -> None:
    columns, words = known_groups({**GROUPS, "other": ("X",)}, ["BAX", "TP53"], "t")
    assert columns == {"CELL CYCLE": (1,), "apoptosis": (1, 0)}
    assert words == (
        "2 groups; 3 of their 5 features are not in the data and left out (CDK1, BCL2, X); "
        "without any, and left out: other"
    )
    assert known_groups(GROUPS, ["BAX", "TP53", "CDK1", "BCL2"], "t")[1] == "2 groups"


def test_groups_of_no_known_feature_are_refused() -> None:
    with mistake(
        "t: found 2 groups of features such as TP53, CDK1, BAX, BCL2; expected features of the "
        "data, such as g1. Check that both are of one nomenclature."
    ):
        known_groups(GROUPS, ["g1"], "t")
