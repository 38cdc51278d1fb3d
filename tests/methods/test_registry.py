"""The registry: it holds every method of the package, and loads the one that is asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import mkldist
from mkldist.methods.registry import METHODS, MODULES
from mkldist.solvers.base import Method

FILES = [path.stem for path in (Path(mkldist.__file__).parent / "methods").glob("*.py")]


def test_every_method_is_registered_under_its_name():
    found = {
        one.name: module.__name__
        for module in (import_module(f"mkldist.methods.{stem}") for stem in FILES)
        for one in vars(module).values()
        if isinstance(one, Method)
    }
    assert found == MODULES
    assert all(METHODS[name].name == name for name in MODULES)


def test_no_two_methods_share_a_title():
    assert len({method.title for method in METHODS.values()}) == len(METHODS)


def test_the_import_of_a_method_loads_no_other():
    code = """
import sys
from mkldist.methods.registry import METHODS
assert "level" in METHODS and METHODS["level"].name == "level"
print(*(name.rpartition(".")[2] for name in sys.modules if name.startswith("mkldist.methods.")))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(run.stdout.split()) == {"registry", "level", "cut_bundle", "machine_bounds"}
