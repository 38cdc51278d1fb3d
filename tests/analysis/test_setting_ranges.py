"""What all settings give, of results with validation errors written by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from mkldist.analysis.published_number import Published
from mkldist.analysis.setting_ranges import SettingRange, setting_range
from tests.analysis.two_sweeps import made

NUMBER = Published("made-up", "heart", "level", "", "test_error", 0.2, math.nan, "Table 1")
ERRORS = [0.1, 0.3, 0.2]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """C = 10 has errors larger by 0.2; it ties on the first split and has none on the third."""
    folder = tmp_path_factory.mktemp("ours")
    own = made(folder, {("heart", "level"): ERRORS}, split_names=("s0", "s1", "s2"))
    tree = own.tree.copy()
    (node,) = (node for node in tree.subtree if node.name == "level")
    given = np.array([[0.5, 0.5], [0.4, 0.5], [0.4, math.nan]])
    node.dataset = node.to_dataset().assign(validation_error=(("split", "C"), given))
    return replace(own, tree=tree)


def test_means_and_ties_are_of_the_splits_with_all_settings(results):
    found = setting_range(results, NUMBER)
    assert found == SettingRange(2, *map(pytest.approx, (0.2, 0.4, (2, 1), 0.2, 0.3)))


def test_nothing_is_said_where_nothing_was_chosen(results, tmp_path):
    nothing = SettingRange()
    assert setting_range(results, replace(NUMBER, setting="C=1")) == nothing
    assert setting_range(results, replace(NUMBER, method="silp")) == nothing
    assert setting_range(results, replace(NUMBER, metric="beauty")) == nothing
    without = made(tmp_path, {("heart", "level"): ERRORS}, split_names=("s0", "s1", "s2"))
    assert setting_range(without, NUMBER) == nothing
