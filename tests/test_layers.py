"""Imports point one way: every part of the package knows only those below it, without circles."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import mkldist

ROOT = Path(mkldist.__file__).parent
LAYERS = (
    "arrays blas_threads compiled counters errors identity memory processors target",
    "durable",
    "spec",
    "data kernels optim scores",
    "gram",
    "machines",
    "solvers",
    "methods.baselines methods.block_norm methods.primal methods.smooth_dual methods.wrapper",
    "methods.manifold",
    "methods.registry",
    "in_memory plan",
    "resolve results",
    "analysis worker",
    "figures",
    "run",
    "cli",
)
HEIGHT = {part: height for height, parts in enumerate(LAYERS) for part in parts.split()}
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path
    for path in sorted(ROOT.rglob("*.py"))
    if not path.stem.startswith("__")
}


def imported(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, also within functions or for types."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & MODULES.keys()


def part(module: str) -> str:
    """Return the part of the package that a module belongs to, of ``methods`` the family."""
    names = module.split(".")
    return ".".join(names[1:3]) if names[1] == "methods" else names[1]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_nothing_from_above_or_beside_its_part(module):
    others = {other for other in imported(MODULES[module]) if part(other) != part(module)}
    assert not {other for other in others if HEIGHT[part(other)] >= HEIGHT[part(module)]}


def test_no_imports_run_in_circles():
    list(TopologicalSorter({name: imported(path) for name, path in MODULES.items()}).static_order())


def test_every_part_has_its_place():
    assert {part(module) for module in MODULES} == HEIGHT.keys()


@pytest.mark.parametrize("module", MODULES)
def test_no_module_imports_parts_of_the_package_by_a_name_made_at_run_time(module):
    """Only what the user names may be imported by name: the class of a Dask cluster."""
    calls = [
        node
        for node in ast.walk(ast.parse(MODULES[module].read_text()))
        if isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func)
    ]
    assert not calls or module == "mkldist.run.cluster"
