"""Grids of methods on each data set: those of the entry, and those of its tables `on`."""

from __future__ import annotations

import pytest

from mkldist.errors import SpecError
from mkldist.planning.spec_checks import resolve_methods
from tests.planning.words import sweep

LEVEL = '[[methods]]\nname = "level"\nC = [1, 10]\nnear = 0.9\n'
SEARCH = '[search]\nkind = "random"\ntrials = 5\n[selection]\n'


def test_a_table_replaces_single_parameters_on_one_data_set():
    words = LEVEL + "[methods.on.b]\nC = { start = 1, stop = 100, num = 3, scale = 'log' }\n"
    grids = resolve_methods(sweep(words))
    assert grids["a"]["level"].dims == {"C": [1.0, 10.0]}
    assert grids["b"]["level"].dims["C"] == pytest.approx([1, 10, 100])
    assert {point.near for on in grids.values() for point in on["level"].points} == {0.9}


def test_data_sets_without_tables_share_a_grid():
    grids = resolve_methods(sweep(LEVEL))
    assert grids["a"]["level"] is grids["b"]["level"]


def test_a_parameter_may_vary_on_one_data_set_alone():
    grids = resolve_methods(sweep(LEVEL + "on = { a = { near = [0.8, 0.9] } }\n"))
    assert grids["a"]["level"].dims == {"C": [1.0, 10.0], "near": [0.8, 0.9]}
    assert list(grids["b"]["level"].dims) == ["C"]


def test_a_search_may_be_of_one_data_set_alone():
    words = SEARCH + LEVEL + "on = { b = { C = { low = 1, high = 10 } } }\n"
    grids = resolve_methods(sweep(words))
    assert grids["a"]["level"].space is None
    assert grids["b"]["level"].dims == {"trial": [0, 1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("[methods.on.c]\nC = 1\n",
         "methods.level.on.c: found the unknown data set 'c'; "
         "expected names of [[datasets]]: a, b"),
        ("[methods.on.b]\nC = 0\n", "methods.level.on.b.C: found 0; expected a number above 0"),
        ("[methods.on.b]\nD = 1\n", "methods.level.on.b.D: found an unknown parameter"),
        ("[methods.on.b]\nbanks = ['xu2008']\n",
         "methods.level.on.b.banks: found a key of the whole entry; expected parameters of level"),
    ],
)  # fmt: skip
def test_tables_that_mean_nothing_are_refused(words, said):
    with pytest.raises(SpecError) as caught:
        resolve_methods(sweep(LEVEL + words))
    assert str(caught.value).startswith(said)
