"""The README names every key of a sweep file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

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
