"""The README names every key of a sweep file, and its Python runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

import mkldist
from mkldist.spec import graph, model, selection, splits

README = Path(__file__).parents[2] / "README.md"
MODELS = {
    found.__name__: found
    for module in (model, graph, selection, splits)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, BaseModel) and found.model_fields
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_key_is_in_the_readme(name):
    prose = re.sub(r"^```.*?^```", "", README.read_text(), flags=re.DOTALL | re.MULTILINE)
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose))))
    assert set(MODELS[name].model_fields) <= words


def test_solving_in_python_is_as_it_says():
    _, section = README.read_text().split("## In Python\n")
    section = section.split("\n## ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    x = np.random.default_rng(0).normal(size=(40, 2))
    x[:20] += 3
    y = np.repeat([-1.0, 1.0], 20)
    names = {
        "x": x,
        "y": y,
        "few": np.where(np.arange(40) % 10 == 0, y, 0.0),
        "grams": np.array([np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / w) for w in (1.0, 9.0)]),
    }
    names["grams_test"] = names["grams"]
    exec(blocks[0], names)
    assert isinstance(names["solution"], mkldist.solvers.base.Solution)
    assert len(names["path"]) == 3
    exec(blocks[1], names)
    values = names["solution"].decision_function(names["grams"])
    assert np.mean(values * y > 0) > 0.9
