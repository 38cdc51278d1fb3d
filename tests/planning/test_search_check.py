"""Searches that cannot be done, and the rungs of those that can."""

from __future__ import annotations

import sys

import pytest

from mkldist.errors import SpecError
from mkldist.planning.spec_checks import check_search, resolve_methods, smaller_shares
from mkldist.spec.model import SearchSpec
from tests.planning.words import sweep

LEVEL = '[[methods]]\nname = "level"\nC = { low = 0.01, high = 1000, scale = "log" }\n'
GRID = '[[methods]]\nname = "level"\nC = [1, 10]\n'
RANDOM = '[search]\nkind = "random"\ntrials = 5\n'
HALVING = '[search]\nkind = "halving"\ntrials = 9\n'


@pytest.mark.parametrize(
    ("words", "where", "said", "advice"),
    [
        (LEVEL, "methods.level.C", "a distribution without [search]", "Add [search]"),
        (RANDOM + GRID, "search", "no parameter with a distribution", "Remove [search]"),
        (RANDOM + LEVEL, "search", "[search] without inner folds", "test labels never do"),
    ],
)
def test_what_a_search_lacks_is_named(words, where, said, advice):
    with pytest.raises(SpecError) as caught:
        check_search(sweep(words))
    assert caught.value.where == where
    assert caught.value.found == said
    assert advice in str(caught.value)


def test_adaptive_search_without_optuna_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.setattr("mkldist.planning.spec_checks.find_spec", lambda name: None)
    words = '[search]\nkind = "adaptive"\ntrials = 5\n[selection]\n' + LEVEL
    with pytest.raises(SpecError, match=r"optuna.*pip install 'mkldist\[search\]'"):
        check_search(sweep(words))


def test_grids_and_searches_stand_side_by_side():
    words = sweep(RANDOM + "[selection]\n" + LEVEL + '[[methods]]\nname = "uniform"\nC = [1, 10]\n')
    check_search(words)
    grids = resolve_methods(words)["a"]
    assert grids["uniform"].dims == {"C": [1.0, 10.0]}
    assert grids["uniform"].space is None
    assert grids["level"].dims == {"trial": [0, 1, 2, 3, 4]}


def test_tolerances_fall_to_that_of_the_method():
    words = HALVING + "[selection]\n" + LEVEL + "tol = 0.003\n"
    assert resolve_methods(sweep(words))["a"]["level"].dims["tol"] == [0.3, 0.03, 0.003]
    words = HALVING + "first = 0.1\nrungs = 2\n[selection]\n" + LEVEL
    assert resolve_methods(sweep(words))["a"]["level"].dims["tol"] == [0.1, 0.01]


@pytest.mark.parametrize(
    ("keys", "tol", "said"),
    [
        ("first = 0.01\n", "", "search.first: found 0.01; expected a tolerance above 0.01"),
        ("", "tol = 0.5\n", "search.first: found 0.3 by default; expected a tolerance above 0.5"),
        ("", "tol = [0.1, 0.01]\n", "methods.level.tol: found several tolerances"),
    ],
)
def test_tolerances_that_are_no_rungs_are_refused(keys, tol, said):
    with pytest.raises(SpecError, match=said):
        resolve_methods(sweep(HALVING + keys + "[selection]\n" + LEVEL + tol))


def test_shares_rise_to_all_rows():
    sizes = {"kind": "halving", "trials": 8, "resource": "training-size"}
    assert smaller_shares(SearchSpec(**sizes, factor=2)) == [0.25, 0.5]
    assert smaller_shares(SearchSpec(**sizes, first=0.04, rungs=3)) == [0.04, 0.2]
    assert smaller_shares(SearchSpec(kind="halving", trials=8)) == []
    assert smaller_shares(None) == []
