"""Methods and kernels as tables: every name that a sweep file takes; `known`."""

from __future__ import annotations

import mkldist
from mkldist.from_python.listings import list_kernels, list_methods
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.families import NAMED_FAMILIES
from mkldist.methods.registry import METHODS


def test_methods_are_those_of_the_registry():
    table = list_methods()
    assert table.index.tolist() == list(METHODS)
    assert table.query("needs_graph").index.tolist() == [
        name for name, method in METHODS.items() if method.needs_laplacian
    ]
    assert table.loc["spicymkl", "labels"] == ("classes", "values")
    assert table.loc["level", "hyperparameters"] == ("C",)
    assert mkldist.list_methods is list_methods


def test_kernels_are_functions_and_families():
    table = list_kernels()
    of = {kind: names.index.tolist() for kind, names in table.groupby("kind", sort=False)}
    assert of == {"function": list(FUNCTIONS), "family": [*NAMED_FAMILIES, "precomputed"]}
    assert mkldist.list_kernels is list_kernels
