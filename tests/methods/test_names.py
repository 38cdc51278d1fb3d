"""The names of methods that lists print without loading a method are those of the methods."""

from __future__ import annotations

from mkldist.methods.names import TITLES
from mkldist.methods.registry import METHODS
from tests.manual import NAMES, names_module


def test_names_are_those_of_the_methods():
    assert NAMES.read_text(encoding="utf-8") == names_module(), "run python -m tests.manual"
    assert list(TITLES.items()) == [(name, method.title) for name, method in METHODS.items()]
