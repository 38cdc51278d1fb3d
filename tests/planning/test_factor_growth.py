"""Rounds and columns that a plan foretells for factors, held to those that solutions take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mkldist.bank import factored_kernels
from mkldist.bank.factored_kernels import FactorLimits, begin_factors
from mkldist.bank.sources import ArraySource
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import factor_rounds
from mkldist.planning.model import BankPlan
from mkldist.solvers.base import Problem
from mkldist.solvers.on_factors import MANY, MOST_CHANGES, solve_on_factors
from tests.planning.plans import dataset, grid, plan_of
from tests.solvers.test_on_factors import GRAMS, N, Y
from tests.variants import quick

LEVEL, UNIFORM, PRIMALMKL = (METHODS[name] for name in ("level", "uniform", "primalmkl"))


def bank_of(n_points: int, **settings) -> BankPlan:
    banks = [{"family": "xu2008", "backend": "factors", **settings}]
    return plan_of({"a": dataset("a", 2 * n_points)}, {"level": grid("level")}, banks=banks).banks[
        0
    ]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("uniform", {"C": 30.0}),
        ("level", {"C": 30.0}),
        ("silp", {"C": 3.0}),
        ("hessianmkl", {"C": 3.0}),
        ("spicymkl", {"loss": "logistic", "C": 10.0}),
        ("primalmkl", {"C": 100.0}),
    ],
)
@pytest.mark.parametrize("tol", quick([1e-2, 1e-3]))
def test_solutions_take_the_rounds_and_columns_that_are_foretold(name, params, tol, monkeypatch):
    monkeypatch.setattr(factored_kernels, "FIRST_RANK", 5)
    method, rounds = METHODS[name], []

    def solve(problem, settings):
        rounds.append(kernels.factors.factors[0].rank)
        return (yield from method.solve(problem, settings))

    kernels = begin_factors(ArraySource(GRAMS), FactorLimits())
    settings = method.params(tol=tol, **params)
    found = solve_on_factors(
        kernels, replace(method, solve=solve), Problem(Y, len(GRAMS)), settings
    )
    foretold = factor_rounds(bank_of(N), method)
    assert found.solution.converged
    assert foretold.first == rounds[0] == 5
    assert found.solution.extra["largest_rank"] <= foretold.longest == N
    assert 1 <= len(rounds) <= foretold.most
    assert foretold.usual / 2 <= len(rounds) <= 2 * foretold.usual


def test_factors_that_begin_with_all_columns_take_one_round():
    for bank in (bank_of(80), bank_of(3000, rank=100), bank_of(3000, rank=60)):
        first = min(bank.n_points, bank.spec.rank or 100)
        assert factor_rounds(bank, UNIFORM) == (first, first, 1, 1)


def test_a_limit_of_the_rank_limits_the_rounds():
    of_all, of_rank = (factor_rounds(bank_of(3000, **own), UNIFORM) for own in ({}, {"rank": 400}))
    assert (of_rank.longest, of_all.longest) == (400, 3000)
    assert 1 < of_rank.usual < of_all.usual
    assert of_rank.most == 1 + 4  # 100, 150, 225, 338 and 400 columns
    assert of_rank.most < of_all.most


def test_on_many_points_a_solver_goes_on_by_products_or_tries_diagonals_first():
    few, many = bank_of(MANY - 1), bank_of(MANY)
    assert factor_rounds(few, LEVEL).usual > factor_rounds(many, LEVEL).usual == 2
    assert factor_rounds(many, UNIFORM).most == factor_rounds(few, UNIFORM).most + MOST_CHANGES
    assert factor_rounds(many, PRIMALMKL) == factor_rounds(many)
