"""Imports point one way: every part of the package knows only those below it, without circles."""

import ast
from collections.abc import Set
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import mkldist

ROOT = Path(mkldist.__file__).parent
LAYERS = (
    "errors",
    "core",
    "kernel_functions",
    "spec",
    "data kernels optim scores",
    "bank calibration",
    "solvers",
    "methods",
    "planning",
    "results",
    "analysis",
    "fit plot",
    "report",
    "run",
    "from_python",
    "cli",
    "mkldist __main__",
)
HEIGHT = {part: height for height, parts in enumerate(LAYERS) for part in parts.split()}
BY_NAME = ("import_module", "__import__", "pkgutil", "runpy")
# These import by names that stand in the same file, where `imported` sees them; the class of a Dask
# cluster, functions, regularisers and losses of the user are named by the user.
IMPORT_BY_NAME = {
    "mkldist",
    "mkldist.analysis",
    "mkldist.cli",
    "mkldist.data.files",
    "mkldist.kernel_functions.custom",
    "mkldist.methods.components",
    "mkldist.methods.registry",
    "mkldist.run.cluster",
}


def _has_code(path: Path) -> bool:
    """Return whether a file holds more than a docstring, as not every ``__init__.py`` does."""
    return path.stem != "__init__" or len(ast.parse(path.read_text()).body) > 1


MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
    if _has_code(path)
}


def imported(path: Path, known: Set[str] = MODULES.keys()) -> frozenset[str]:
    """Return those of the known modules that a file imports, by default those of the package.

    An import within a function or for types counts, and so does a module whose name stands in the
    file as a text: it may be imported by that name.
    """
    return _names(path).imported & known


class _Names(NamedTuple):
    """Names that a file imports, of modules or of what they hold, and those in what it calls."""

    imported: frozenset[str]
    called: frozenset[str]


@cache
def _names(path: Path) -> _Names:
    """Return the names in a file."""
    found: set[str] = set()
    called: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and "." in str(node.value):
            found.add(str(node.value))
        elif isinstance(node, ast.Call):
            function = node.func
            while isinstance(function, ast.Attribute):
                called.add(function.attr)
                function = function.value
            if isinstance(function, ast.Name):
                called.add(function.id)
    return _Names(frozenset(found), frozenset(called))


def part(module: str) -> str:
    """Return the part of the package that a module belongs to."""
    return module.split(".")[1] if "." in module else module


def test_a_module_imports_nothing_from_above_or_beside_its_part():
    assert not [
        f"{module} imports {other}"
        for module, path in MODULES.items()
        for other in imported(path)
        if part(other) != part(module) and HEIGHT[part(other)] >= HEIGHT[part(module)]
    ]


def test_no_imports_run_in_circles():
    others = {
        name: imported(path) - {name} for name, path in MODULES.items()
    }  # a package has parts
    list(TopologicalSorter(others).static_order())


def test_every_part_has_its_place():
    assert {part(module) for module in MODULES} == HEIGHT.keys()


def test_only_some_modules_import_parts_of_the_package_by_a_name_made_at_run_time():
    assert set(IMPORT_BY_NAME) == {
        module
        for module, path in MODULES.items()
        if any(way in name for name in _names(path).called for way in BY_NAME)
    }


@pytest.mark.parametrize(
    "code",
    [
        "from mkldist.cli import main",
        "def f():\n    import mkldist.cli",
        "import_module('mkldist.cli')",
        "from mkldist import cli",
    ],
)
def test_an_import_is_seen_wherever_it_stands(code, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(code)
    assert "mkldist.cli" in imported(path)
