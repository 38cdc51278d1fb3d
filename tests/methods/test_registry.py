"""The registry, and counts of work of every method."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mkldist
from mkldist.methods.registry import METHODS, MODULES
from mkldist.methods.rls import closed_form
from mkldist.solvers.base import Method
from mkldist.solvers.l2_svm import solve_l2_svm
from mkldist.solvers.primal_newton import PrimalMachine
from mkldist.solvers.svm import solve_svm
from tests.methods import instances
from tests.methods.manifolds import manifold

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


@pytest.mark.slow
def test_the_import_of_a_method_loads_no_other():
    code = """
import sys
from mkldist.methods.registry import METHODS
assert "level" in METHODS and METHODS["level"].name == "level"
print(*(name.rpartition(".")[2] for name in sys.modules if name.startswith("mkldist.methods.")))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(run.stdout.split()) == {"registry", "level", "cut_bundle"}


MACHINES = (solve_svm, solve_l2_svm, closed_form)
WITHOUT_MACHINES = {"majority", "smo_mkl", "spicymkl", "elastmkl"}


@pytest.fixture
def machines(monkeypatch):
    """Count machines that any method trains, by the functions that train them."""
    calls: list[object] = []
    assert all(METHODS.values())  # loads them: a module loaded later would keep what is set below

    def watched(function):
        def call(*args, **kwargs):
            calls.append(function)
            return function(*args, **kwargs)

        return call

    for module in [m for name, m in sys.modules.items() if name.startswith("mkldist.")]:
        for function in MACHINES:
            if getattr(module, function.__name__, None) is function:
                monkeypatch.setattr(module, function.__name__, watched(function))
    monkeypatch.setattr(PrimalMachine, "__call__", watched(PrimalMachine.__call__))
    return calls


def solve(name: str, **params) -> mkldist.Solution:
    """Solve a method with a trace, on points with few labels where it takes a graph."""
    if METHODS[name].needs_laplacian:
        shape = manifold("moons", n=40, per_class=6)
        return mkldist.solve(
            name, shape.grams, shape.y, laplacian=shape.laplacian, trace=True, **params
        )
    instance = instances.balanced()
    return mkldist.solve(name, instance.grams, instance.y, trace=True, **params)


@pytest.mark.parametrize("name", METHODS)
def test_machines_and_rounds_are_those_that_were_run(name, machines):
    solution = solve(name)
    counters = solution.counters
    assert counters.outer_iterations == len(solution.trace["objective"])
    assert counters.svm_solves == len(machines)
    assert (counters.svm_solves == 0) == (name in WITHOUT_MACHINES) or name == "skm"


def test_machines_of_the_plain_glks_are_least_squares(machines):
    counters = solve("glks", acceleration="none").counters
    assert machines.count(closed_form) == len(machines) == counters.svm_solves
    assert counters.newton_steps == counters.svm_solves


def test_conjugate_gradients_are_counted_where_they_are_run():
    exact, truncated, pcg = (
        solve("primalmkl", inner=inner, C=10.0).counters
        for inner in ("newton", "truncated-newton", "pcg")
    )
    assert exact.cg_steps == 0 < exact.newton_steps
    # Within a truncated step there is at least one step of conjugate gradients.
    assert truncated.cg_steps >= truncated.newton_steps > 0
    # In their place, a step is a line search; Newton steps only finish what they leave.
    assert pcg.cg_steps + pcg.newton_steps >= pcg.svm_iterations >= pcg.cg_steps > 0
    assert solve("lapsvm", inner="newton").counters.cg_steps == 0
    lapsvm = solve("lapsvm", inner="pcg").counters
    assert lapsvm.cg_steps == lapsvm.svm_iterations == lapsvm.outer_iterations - 1
