"""Entries of ``[[datasets.views]]`` in `datasets`: keys that go together."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from mkldist.spec.datasets import DatasetSpec, ViewSpec


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"file": "a.csv", "grams": "b.npy"}, "found file and grams; expected one source"),
        ({"columns": ["a"], "file": "a.csv"}, "found columns and file"),
        ({"ignore": ["a"]}, "found ignore without file"),
        ({"id": "a"}, "found id without a file"),
        ({"grams": "b.npy", "group_file": "g.gmt"}, "found group_file and grams"),
        ({"grams": "b.npy", "missing": "impute"}, 'found missing = "impute" and grams'),
        ({"grams": "b.npy", "graphs": [{}]}, "found grams and graphs; expected one source"),
        ({"graphs": [{}], "group_file": "g.gmt"}, "found group_file and graphs"),
        ({"graphs": [{}], "missing": "zero"}, "found missing and graphs"),
        ({"graphs": []}, "at least 1 item"),
        ({"graphs": [{"neighbours": [3, 0]}]}, "greater than or equal to 1"),
        ({"graphs": [{"neighbours": []}]}, "at least 1 item"),
        ({"name": "views"}, "a word for features; expected another"),
        ({"missing": "drop"}, "Input should be 'zero' or 'impute'"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ViewSpec.model_validate({"name": "v", **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"views": [{"name": "v"}, {"name": "v"}]}, "found 'v' twice in views and groups"),
        ({"views": [{"name": "v"}], "groups": {"v": ["a"]}}, "found 'v' twice"),
        ({"views": [{"name": "v"}], "grams": "k.npy"}, "found grams and views"),
    ],
)
def test_views_have_names_of_their_own_beside_features(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        DatasetSpec.model_validate({"name": "d", **given})


def test_a_list_of_numbers_of_neighbours_stands_for_a_graph_each() -> None:
    view = ViewSpec.model_validate(
        {"name": "v", "graphs": [{"neighbours": [1, 5], "weights": "heat"}, {"power": 2}]}
    )
    assert view.graphs is not None
    said = [(graph.neighbours, graph.weights, graph.power) for graph in view.graphs]
    assert said == [(1, "heat", 1), (5, "heat", 1), (10, "binary", 2)]
    assert ViewSpec.model_validate(view.model_dump()) == view
