"""How often solvers on factors solve again, each time on longer factors, before anything is done.

How many columns a solution needs depends on its kernels and on the data, and no plan knows it.  It
knows where factors begin, where they end at most, and by how much they grow from round to round.
Every round ends with a pass over the kernels themselves at most.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from mkldist.gram.factored_kernels import limits_of
from mkldist.planning.model import BankPlan
from mkldist.solvers.base import Method
from mkldist.solvers.factor_needs import LEAST_GROWTH, MOST_GROWTH
from mkldist.solvers.on_factors import MANY, MOST_CHANGES

USUAL_GROWTH = math.sqrt(LEAST_GROWTH * MOST_GROWTH)
FEW_ROUNDS = 2  # of a method that need not make factors longer


class FactorRounds(NamedTuple):
    """Rounds of a solver on factors.

    Parameters
    ----------
    first, longest : int
        Columns of each factor at first, and of the longest at most.
    usual, most : int
        Rounds if the longest factors reach their limit by the usual growth, and at most.
    """

    first: int
    longest: int
    usual: int
    most: int


def factor_rounds(bank: BankPlan, method: Method | None = None) -> FactorRounds:
    """Return the rounds that a solver on a bank of factors takes.

    On many points, methods on machines of the hinge loss take diagonals of kernels before columns,
    or go on by products with the kernels from their first solution.

    Parameters
    ----------
    bank : BankPlan
        The bank.
    method : Method, optional
        A method that solves on factors; by default one that only makes factors longer.
    """
    limits, many = limits_of(bank.spec), bank.n_points >= MANY
    first, longest = limits.first(bank.n_points), limits.most(bank.n_points)
    ratio = math.log(longest / first)
    most = 1 + math.ceil(ratio / math.log(LEAST_GROWTH))
    usual = 1 + math.ceil(ratio / math.log(USUAL_GROWTH))
    if many and method is not None and method.hinge_machines:
        usual, most = min(usual, FEW_ROUNDS), most + MOST_CHANGES
    return FactorRounds(first, longest, usual, most)
