"""Comparisons from output folders."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist import analysis
from mkldist.analysis.comparison import compare_sweeps
from mkldist.errors import InputError
from tests.analysis.two_sweeps import made

LEVEL, UNIFORM = [0.1, 0.2, 0.3], [0.2, 0.25, 0.2]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps")
    errors = {("heart", "level"): LEVEL, ("heart", "uniform"): UNIFORM}
    for name in ("one", "two"):
        made(folder / name, errors, split_names=("s0", "s1", "s2"), banks=("a", "b"))
    return folder


def test_methods_of_two_sweeps_are_compared_bank_by_bank(folders):
    found = analysis.compare_sweeps(str(folders / "one"), folders / "two")
    assert [(pair.first, pair.second) for pair in found.pairs] == [
        (name, name) for name in ("a/level", "a/uniform", "b/level", "b/uniform")
    ]
    assert all(pair.losses.difference == 0.0 for pair in found.pairs)


def test_two_methods_of_a_sweep_have_the_difference_of_their_errors(folders):
    found = compare_sweeps(folders / "one", methods=("level", "b/uniform"), rope=0.5)
    assert [(pair.first, pair.second) for pair in found.pairs] == [
        ("a/level", "b/uniform"),
        ("b/level", "b/uniform"),
    ]
    for pair in found.pairs:
        assert pair.losses.difference == pytest.approx(np.mean(LEVEL) - np.mean(UNIFORM))
        assert pair.rope == 0.5


def test_one_sweep_needs_methods(folders):
    with pytest.raises(InputError, match="found one sweep without methods; expected two sweeps"):
        compare_sweeps(folders / "one")
