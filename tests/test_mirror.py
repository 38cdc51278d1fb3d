"""Tests mirror the package: every module has a test file of its name or is named by another's.

A test file stands in the folder that mirrors the module's.  Where it tests several modules of that
folder, the first line of its docstring names the others in backticks.  Each of these modules is
among those that the file imports, itself or by what it imports.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import mkldist
from tests import test_layers
from tests.test_layers import imported

PACKAGE = Path(mkldist.__file__).parent
TESTS = Path(__file__).parent
IMPORTABLE = test_layers.MODULES | {
    ".".join(path.relative_to(TESTS.parent).with_suffix("").parts): path
    for path in TESTS.rglob("*.py")
}
MODULES = sorted(
    path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__")
)


@cache
def first_line(path: Path) -> str:
    """Return the first line of a file's docstring, with which the file begins."""
    line = path.read_text().split("\n")[0]
    return line if line.startswith('"""') else ""


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the modules of the package and of its tests that a file imports itself."""
    return imported(path, IMPORTABLE.keys())


@cache
def reached(path: Path) -> frozenset[str]:
    """Return the modules that a test file imports, itself or by what it imports.

    The text of a program that a test runs in another process counts as if it stood in the file.
    """
    found: set[str] = set()
    left = [path]
    while left:
        file = left.pop()
        new = imports(file) - found
        if file == path:
            programs = re.findall(r"mkldist(?:\.\w+)+", file.read_text())
            new |= IMPORTABLE.keys() & programs
        found |= new
        left += [IMPORTABLE[name] for name in new]
    return frozenset(found)


def test_every_module_has_its_tests():
    assert not {str(module): wrong for module in MODULES if (wrong := lacking(module))}


def lacking(module: Path) -> str:
    """Return what is wrong with the tests of a module, or nothing."""
    folder = TESTS / module.parent
    own = folder / f"test_{module.name}"
    family = [path for path in folder.glob("test_*.py") if f"`{module.stem}`" in first_line(path)]
    files = [own] if own.exists() else family
    if not files:
        return (
            f"write {own.relative_to(TESTS.parent)}, or name `{module.stem}` in the first line of "
            "the tests of its family"
        )
    name = ".".join((PACKAGE.name, *module.with_suffix("").parts))
    return ", ".join(
        f"{path} does not import {name}" for path in files if name not in reached(path)
    )


def test_a_test_file_reaches_what_its_imports_import_and_nothing_else():
    assert "mkldist.optim.simplex" in reached(TESTS / "optim" / "test_lp_ball.py")
    assert "mkldist.run.sweep" not in reached(TESTS / "optim" / "test_lp_ball.py")
