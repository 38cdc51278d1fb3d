"""Results of several sweeps in one tree."""

from __future__ import annotations

import numpy as np
import pytest

import mkldist
from mkldist.errors import InputError
from mkldist.results.export import export
from mkldist.results.rows import method_nodes, place_of
from tests.analysis.two_sweeps import made

ERRORS = {("heart", "level"): [0.1, 0.2, 0.3], ("heart", "uniform"): [0.2, 0.2, 0.2]}
LEVEL = {("heart", "level"): [0.3, 0.2, 0.1]}
NAMES = ("s0", "s1", "s2")


def names(tree) -> list[tuple[str, str]]:
    return sorted((place_of(node)["bank"], str(node.name)) for node in method_nodes(tree))


def test_methods_of_several_sweeps_stand_in_one_tree(tmp_path):
    made(tmp_path / "a", {("heart", "level"): ERRORS["heart", "level"]}, split_names=NAMES)
    made(tmp_path / "b", {("heart", "uniform"): ERRORS["heart", "uniform"]}, split_names=NAMES)
    tree = mkldist.open_results(tmp_path / "a", tmp_path / "b")
    assert set(tree["heart"].children) == {"level", "uniform"}
    np.testing.assert_array_equal(
        tree["heart/uniform"].test_error.sel(C=1.0), ERRORS["heart", "uniform"]
    )
    [row] = mkldist.analysis.compare_methods(tree).to_dict("records")
    assert (row["first"], row["second"]) == ("level", "uniform")
    assert row["difference"] == pytest.approx(0.0)


def test_runs_that_sweeps_share_are_there_once(tmp_path):
    made(tmp_path / "a", ERRORS, split_names=NAMES)
    made(tmp_path / "b", ERRORS, split_names=NAMES)
    tree = mkldist.open_results(tmp_path / "a", tmp_path / "b")
    assert set(tree["heart"].children) == {"level", "uniform"}


def test_banks_that_differ_under_one_name_are_told_apart_by_the_names_of_the_folders(tmp_path):
    made(tmp_path / "a", ERRORS, split_names=NAMES, bank="x")
    made(tmp_path / "b", LEVEL, split_names=NAMES, bank="y")
    tree = mkldist.open_results(tmp_path / "a", tmp_path / "b")
    assert names(tree) == [
        ("xu2008 (a)", "level"),
        ("xu2008 (a)", "uniform"),
        ("xu2008 (b)", "level"),
    ]
    np.testing.assert_array_equal(
        tree["heart/xu2008 (b)/level"].test_error.sel(C=1.0), LEVEL["heart", "level"]
    )
    file, _ = export([tmp_path / "a", tmp_path / "b"], "csv", tmp_path / "both.csv")
    assert file.read_text().count("\n") == 1 + 3 * 2 * 3  # methods, values of C, splits


@pytest.mark.parametrize(
    "other",
    [{"data": "others"}, {"split_names": ("s0", "s2", "s1")}, {"split_names": ("s0", "s1")}, None],
    ids=["data", "rows of splits", "number of splits", "the same folder"],
)
def test_other_data_and_splits_and_one_folder_twice_are_refused(tmp_path, other):
    made(tmp_path / "a", ERRORS, split_names=NAMES)
    changes = {"split_names": NAMES} | (other or {})
    made(tmp_path / "b", ERRORS, **changes)
    with pytest.raises(InputError):
        mkldist.open_results(tmp_path / "a", tmp_path / ("a" if other is None else "b"))
