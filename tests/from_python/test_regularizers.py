"""Regularisers and losses of the user in sweeps and plans, and what both refuse alike."""

import importlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mkldist
from mkldist.cli import command
from mkldist.errors import SpecError
from mkldist.kernels import Gaussian
from mkldist.methods.block_norm_losses import LossFunction
from mkldist.methods.regularizers import BlockQ, Concave, ElasticNet
from mkldist.results.journal import Journal

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.where(X[:, 0] + X[:, 1] > 0.0, 1, -1)
NUMBERS = itertools.count()  # of parameters that are refused
MODULE = """
import numpy as np

def slope(u):
    return 0.5 / np.sqrt(u)

def bend(u):
    return -0.25 * u**-1.5

def half_square(u):
    return 0.5 * u**2

def same(u):
    return 1.0 * u
"""


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    """Return a module of the user in the folder of the test, importable."""
    monkeypatch.chdir(tmp_path)
    Path("root_of_tests.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("root_of_tests")
    del sys.modules["root_of_tests"]


def spec(**params: Any) -> dict[str, Any]:
    return {
        "name": "m",
        "banks": [{"kernels": [Gaussian([0.5, 2.0])]}],
        "methods": [{"name": "spicymkl", "tol": 1e-6, **params}],
    }


def sweep(words: dict[str, Any], **more: Any) -> Any:
    return mkldist.sweep(words, {"d": (X, Y)}, progress=False, workers=0, **more)


def plan(words: dict[str, Any], **more: Any) -> Any:
    return mkldist.plan(words, {"d": (X, Y)}, **more)


def refused(call: Callable[..., Any], words: dict[str, Any], **more: Any) -> SpecError:
    with pytest.raises(SpecError) as caught:
        call(words, **more)
    return caught.value


@pytest.mark.slow
def test_regularisers_of_the_user_solve_the_problem_of_those_by_name(mine):
    # g(u) = sqrt(u) is the block 1-norm
    root = Concave(0.05, np.sqrt, mine.slope, mine.bend, 1.0, 1.0)
    tree = sweep(spec(regularizer=[root, ElasticNet(0.05, 0.25), BlockQ(0.05, 1.5)]))
    own = tree["d/spicymkl"]
    assert own.sizes["regularizer"] == 3
    assert (own.state == "complete").all()
    named = [{"regularizer": "block1"}, {"regularizer": "elastic-net", "mix": 0.25},
             {"regularizer": "block-q", "q": 1.5}]  # fmt: skip
    for found, params in zip(own.objective.to_numpy().ravel(), named, strict=True):
        other = sweep(spec(C=20.0, **params), output=f"results/{params['regularizer']}")
        expected = other["d/spicymkl"].objective.item()
        assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_losses_of_the_user_solve_the_problem_of_those_by_name(mine):
    square = LossFunction(mine.half_square, mine.same, np.ones_like, of="residuals")
    found = sweep(spec(loss=["squared", square]))["d/spicymkl"].objective.to_numpy().ravel()
    assert found[1] == pytest.approx(found[0], rel=1e-5)
    own = "LossFunction(value=root_of_tests.half_square, derivative=root_of_tests.same, "
    own += "second_derivative=numpy.ones_like, of='residuals')"
    with pytest.raises(SpecError, match=r"loss: found .* code that would run"):
        plan(spec(loss=own))
    assert plan(spec(loss=["squared", square])).n_recorded == 2
    assert plan(spec(loss=own), allow_code=True).n_runs == 1


@pytest.mark.slow
def test_ids_are_by_content_and_the_folder_is_read_again(mine):
    def words(C: float) -> dict[str, Any]:
        return spec(regularizer=Concave(C, np.sqrt, mine.slope, mine.bend, 1.0, 1.0))

    sweep(words(0.05))
    assert plan(words(0.05)).n_recorded == 1
    assert plan(spec(), changes={"methods.spicymkl.regularizer": words(0.05)["methods"][0][
        "regularizer"]}).n_recorded == 1  # fmt: skip
    assert plan(words(0.06)).n_recorded == 0
    assert mkldist.plan("results/m", allow_code=True).n_recorded == 1
    with pytest.raises(SpecError, match=r"methods\.spicymkl\.regularizer.*allow"):
        mkldist.plan("results/m")
    Path("root_of_tests.py").write_text(MODULE.replace("0.5 /", "0.50 /"))
    assert plan(words(0.05)).n_recorded == 0
    with pytest.raises(SpecError, match="other code"):
        mkldist.plan("results/m", allow_code=True)
    assert len(Journal(Path("results/m/records.journal")).states()) == 1


@pytest.mark.parametrize("call", [plan, sweep])
def test_what_cannot_be_written_down_is_one_mistake_of_the_sweep(call, mine):
    closure = Concave(0.05, np.sqrt, lambda u: 0.5 / np.sqrt(u), mine.bend, 1.0, 1.0)
    for value in (closure, [ElasticNet(0.05, 0.5), closure]):
        error = refused(call, spec(regularizer=value))
        assert error.where == "methods.spicymkl.regularizer"
        assert error.hint
    changes = {"methods.spicymkl.regularizer": closure}
    assert refused(call, spec(), changes=changes).where.startswith("changes[")
    assert not Path("results").exists()
    mkldist.solve("spicymkl", mkldist.KernelBank(X, [Gaussian(1.0)]), Y, regularizer=closure)


@pytest.mark.parametrize(
    "params",
    [
        {"regularizer": "none"}, {"regularizer": object()}, {"regularizer": np.sqrt},
        {"regularizer": BlockQ}, {"regularizer": []}, {"regularizer": {"C": 1.0}},
        {"regularizer": "ElasticNet(lam=1.0)"}, {"regularizer": ElasticNet(0.1, 0.5), "C": 1.0},
        {"regularizer": [ElasticNet(0.1, 0.5), ElasticNet(0.1, 0.5)]},
        {"C": -1.0}, {"C": "1"}, {"C": object()}, {"C": np.sqrt}, {"C": float("inf")},
        {"loss": object()}, {"loss": lambda y, f: y - f}, {"tol": [None]},
        {"max_iter": 1.5}, {"trace": "yes"}, {"unknown": 1}, {"on": {"d": {"C": object()}}},
        {"on": {"other": {"C": 1.0}}}, {"C": {"start": 1}}, {"C": 1j}, {"C": b"1"}, {"C": {1}},
    ],
    ids=lambda params: f"{next(NUMBERS)}-{next(iter(params))}",
)  # fmt: skip
def test_sweeps_and_plans_refuse_the_same_parameters(params):
    in_plan, in_sweep = (refused(call, spec(**params)) for call in (plan, sweep))
    assert in_plan.where == in_sweep.where
    assert in_plan.where.startswith("methods.spicymkl")
    assert in_plan.found
    assert in_plan.expected
    assert not Path("results").exists()


def test_estimators_take_them_and_keep_their_text(mine):
    root = Concave(0.05, np.sqrt, mine.slope, mine.bend, 1.0, 1.0)
    closure = Concave(0.05, np.sqrt, lambda u: 0.5 / np.sqrt(u), mine.bend, 1.0, 1.0)
    fitted = [
        mkldist.MKLClassifier("spicymkl", tol=1e-6, **{
            "method_params": {"regularizer": one}, "kernels": [Gaussian([0.5, 2.0])],
        }).fit(X, Y)
        for one in (root, closure)
    ]  # fmt: skip
    named = mkldist.MKLClassifier("spicymkl", C=20.0, tol=1e-6, kernels=[Gaussian([0.5, 2.0])])
    objective = named.fit(X, Y).objective_
    for one in fitted:
        assert one.objective_ == pytest.approx(objective, rel=1e-5)
        one.to_model().save("own.model")
        assert mkldist.load_model("own.model").predict(X).tolist() == one.predict(X).tolist()
    with pytest.raises(SpecError, match=r"spicymkl\.C"):
        mkldist.MKLClassifier("spicymkl", C=2.0, method_params={"regularizer": root}).fit(X, Y)


def test_text_in_a_sweep_file_runs_code_only_if_allowed(mine):
    own = "Concave(lam=0.05, g=numpy.sqrt, derivative_of_g=root_of_tests.slope, "
    own += "second_derivative_of_g=root_of_tests.bend, threshold_of_g=1.0, largest_of_g=1.0)"
    with pytest.raises(SpecError, match=r"regularizer: found .* code that would run"):
        plan(spec(regularizer=own))
    assert plan(spec(regularizer=own), allow_code=True).n_runs == 1
    assert plan(spec(regularizer="BlockQ(lam=1.0, q=1.5)")).n_runs == 1  # code of mkldist
    sweep(spec(regularizer="block1"))
    fit = ["fit", "results/m", "-o", "own.model", "--set", f"regularizer={own}"]
    assert isinstance(CliRunner().invoke(command, fit).exception, SpecError)
    assert CliRunner().invoke(command, [*fit, "--allow-code"]).exit_code == 0
    assert Path("own.model").exists()
