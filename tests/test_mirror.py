"""Tests mirror the package: every module has a test file of its name or is named by another's.

A test file stands in the folder that mirrors the module's.  Where it tests several modules of that
folder, the first line of its docstring names the others in backticks.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mkldist

PACKAGE = Path(mkldist.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(
    path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__")
)


def first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return docstring.split("\n")[0]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_its_tests(module):
    folder = TESTS / module.parent
    own = folder / f"test_{module.name}"
    family = [path for path in folder.glob("test_*.py") if f"`{module.stem}`" in first_line(path)]
    assert own.exists() or family, (
        f"name `{module.stem}` in the first line of the tests that test it"
    )
