"""The registry: it holds every method of the package, by the name of its file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import mkldist
from mkldist.methods.registry import METHODS, MODULES

ROOT = Path(mkldist.__file__).parent / "methods"


def defines_a_method(path: Path) -> bool:
    targets = [
        target
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return any(isinstance(target, ast.Name) and target.id == "METHOD" for target in targets)


def test_every_file_with_a_method_is_registered_under_its_name():
    files = [path.stem for path in ROOT.rglob("*.py") if defines_a_method(path)]
    assert sorted(METHODS) == sorted(files)


def test_no_two_methods_share_a_name_or_a_title():
    assert len(MODULES) == len(METHODS)
    assert len({method.title for method in METHODS.values()}) == len(METHODS)


def test_the_import_of_a_method_loads_no_other_family():
    code = """
import sys
from mkldist.methods.registry import METHODS
assert "level" in METHODS and METHODS["level"].name == "level"
print(*(name for name in sys.modules if name.startswith("mkldist.methods.")))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = run.stdout.split()
    assert "mkldist.methods.wrapper.level" in loaded
    assert not [name for name in loaded if "block_norm" in name or "manifold" in name]
