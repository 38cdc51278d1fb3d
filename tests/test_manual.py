"""The manual of the sweep file: its tables, its examples, and the numbers that results report."""

from __future__ import annotations

import re
import sys
import tomllib
from typing import Any, get_args

import numpy as np
import pytest
from pydantic import BaseModel

import mkldist
from mkldist.methods.registry import METHODS
from mkldist.planning.spec_checks import resolve_methods
from mkldist.solvers.base import Solution
from mkldist.solvers.solver_params import SolverParams
from mkldist.spec.model import Distribution, SweepSpec
from tests.manual import KEYS, MANUAL, TABLE, VARIABLES, generated, type_of

TEXT = MANUAL.read_text(encoding="utf-8")
COMPLETE: dict[str, Any] = {
    "name": "example",
    "datasets": [{"name": "wdbc"}],
    "banks": [{"family": "do2009"}],
    "methods": [{"name": "majority"}],
}


def models_in(annotation: Any) -> set[type[BaseModel]]:
    """Return all models that an annotation holds, those of their fields among them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.values()
        return {annotation}.union(*(models_in(field.annotation) for field in fields))
    return set().union(*map(models_in, get_args(annotation)))


def test_the_tables_are_those_of_the_code():
    assert generated(TEXT) == TEXT, "run python -m tests.manual"


def test_every_table_of_the_sweep_file_has_its_table_here():
    assert set(KEYS.values()) == models_in(SweepSpec) | {SolverParams, Distribution}
    others = {"files", "kernel functions"}
    assert {found["name"] for found in TABLE.finditer(TEXT)} == {*others, *KEYS, *VARIABLES}


@pytest.mark.parametrize("name", KEYS)
def test_every_key_has_a_type_and_a_meaning(name):
    for key, field in KEYS[name].model_fields.items():
        assert type_of(field), key
        assert field.description, key


@pytest.mark.parametrize("part", re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL))
def test_an_example_is_right(part):
    spec = SweepSpec.model_validate(COMPLETE | tomllib.loads(part))
    assert resolve_methods(spec)


def part_with(words: str, language: str = "toml") -> str:
    """Return the one example in a language that contains these words."""
    [part] = [p for p in re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL) if words in p]
    return part


def test_the_example_of_graphs_can_be_planned():
    assert mkldist.plan(COMPLETE | tomllib.loads(part_with("graphs = ["))).n_runs == 3


def test_the_example_of_ones_own_matrices_predicts_as_they_do():
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(x[:, 0] > 0, 1, -1)
    grams = np.array([x @ x.T, (1.0 + x @ x.T) ** 2])
    names: dict[str, Any] = {"np": np, "mkldist": mkldist, "grams": grams, "y": y}
    exec(part_with("def given", "python"), names)
    assert names["scores"].mean() > 0.9
    bank = mkldist.KernelBank.from_grams(grams[:, ::2, ::2], normalisation="variance")
    solution = mkldist.solve("level", bank, y[::2], C=1.0)
    values = solution.decision_function(bank.on(grams[:, 1::2, ::2]))
    np.testing.assert_array_equal(names["predicted"], np.where(values > 0, 1, -1))


def test_the_example_of_a_function_of_ones_own_can_be_planned(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    code = part_with("def hellinger", "python")
    (tmp_path / "ones_own.py").write_text(code)
    spec = 'name = "own"\ndatasets = [{ name = "wdbc" }]\nmethods = [{ name = "majority" }]\n'
    words = part_with('"mine:hellinger"').replace("mine:", "ones_own:")
    (tmp_path / "own.toml").write_text(spec + words)
    assert mkldist.plan(tmp_path / "own.toml", allow_code=True).n_runs == 1


def test_methods_report_what_the_manual_explains():
    section = re.search(r"<!-- reported -->\n(.*?)<!-- end -->", TEXT, re.DOTALL)
    rows = [line.split("|") for line in section[1].splitlines()[2:]]
    explained = {
        (name, method)
        for row in rows
        for name in re.findall(r"`(\w+)`", row[1])
        for method in re.findall(r"`(\w+)`", row[2])
    }
    reported = {(name, method) for method in METHODS for name in solved(method).extra}
    assert reported == explained, "explain it in sweeps/README.md, after <!-- reported -->"


def solved(method: str) -> Solution:
    """Return the solution on two groups of points, half of them unlabelled if there is a graph.

    Methods with a form that is not convex solve that.
    """
    x = np.random.default_rng(0).normal(size=(24, 2))
    x[::2] += 3.0
    y = np.tile([1.0, -1.0], 12)
    grams = np.array([np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / w) for w in (1.0, 9.0)])
    settings: dict[str, Any] = {}
    if METHODS[method].needs_laplacian:
        y[12:] = 0.0
        settings["laplacian"] = 24.0 * np.eye(24) - 1.0
    if "form" in METHODS[method].params.model_fields:
        settings["form"] = "shared"
    if method == "l0_mkl":
        settings["k"] = 1
    if method == "rmkl":
        settings["random_weights"] = 1
    return mkldist.solve(method, grams, y, **settings)
