"""Mistakes in ``[graph]`` of a sweep file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mkldist.errors import SpecError
from mkldist.spec.load import load_sweep

SWEEP = """\
name = "digits"
splits = { kind = "semi-supervised", labelled_per_class = 5 }
datasets = [{ name = "digits" }]
banks = [{ family = "xu2008" }]
methods = [{ name = "laprls" }]
graph = { GRAPH }
"""


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ('distance = "tangant"', ("graph.distance", "Did you mean 'tangent'?")),
        ("neighbors = 3", ("graph.neighbors", "Did you mean 'neighbours'?")),
        ("neighbours = 0", ("graph.neighbours", "at least 1")),
        ("neighbours = 2.5", ("graph.neighbours", "whole number")),
        ("power = 0", ("graph.power", "at least 1")),
        ('kind = "epsilon"', ("graph", "no epsilon")),
        ("epsilon = 0.1", ("graph", "kind = 'epsilon'")),
        ('kind = "epsilon", epsilon = 0.1, neighbours = 5', ("found neighbours = 5", "'knn'")),
        ('kind = "epsilon", epsilon = inf', ("graph.epsilon", "finite")),
        ("width = 1.0", ("graph", "weights = 'heat'")),
        ('weights = "heat", width = 0.0', ("graph.width", "above 0")),
    ],
)
def test_mistakes(tmp_path: Path, graph: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP.replace("GRAPH", graph))
    with pytest.raises(SpecError) as caught:
        load_sweep(path)
    assert caught.value.expected
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_the_sweep_without_a_mistake_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP.replace("GRAPH", "neighbours = 3"))
    graph = load_sweep(path).graph
    assert graph is not None
    assert graph.neighbours == 3
