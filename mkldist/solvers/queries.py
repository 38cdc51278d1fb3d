"""What several methods ask of a bank: single Gram matrices, and bounds with the kernels themselves.

A dual point of a solution on factors is feasible whatever the kernels are.  With the quadratic
forms of the kernels themselves its dual value therefore bounds the optimum with the kernels from
below.  One pass over the kernels gives the forms.

Every such bound, :attr:`mkldist.solvers.base.Method.exact_bound`, takes the problem, the parameters
of the method, and the solution on factors with its state for a path.  It asks the kernels for
`Quadratic` and `Diagonal`, and returns a lower bound of the optimum with the kernels that answer,
and the dual point that certifies it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from mkldist.bank.requests import Combine, Diagonal, Quadratic, Request
from mkldist.core.arrays import Floats, Ints
from mkldist.errors import SpecError
from mkldist.optim.accuracy import EPS, form_rounding
from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.progress import DualBound
from mkldist.solvers.solver_params import SolverParams

AT_A_TIME = 4  # Gram matrices in one request


def gram_matrices(kernels: Ints) -> Generator[Combine, Floats, Floats]:
    """Ask for the Gram matrices (k, n, n) of a few kernels (k,)."""
    return (yield Combine(np.eye(len(kernels)), kernels))


def gram_operators(kernels: Ints) -> Generator[Combine, Any, Floats | list[FactoredMatrix]]:
    """Ask for the Gram matrices (k, n, n) of a few kernels, or their operators on thin factors."""
    found: Floats | list[FactoredMatrix] = yield Combine(np.eye(len(kernels)), kernels, thin=True)
    return found


def check_kernel_number(kernel: int, n_kernels: int) -> None:
    """Refuse the number of a kernel that is not there, by a SpecError that names those that are."""
    if kernel >= n_kernels:
        expected = f"a number from 0 to {n_kernels - 1}: there are {n_kernels}"
        raise SpecError("kernel_number", f"{kernel}", expected)


def largest_forms(vectors: Floats) -> Generator[Request, Any, Floats]:
    """Ask for upper bounds (M, R) of ``v'K_m v`` of vectors (n, R) that rounding cannot break."""
    forms: Floats = yield Quadratic(vectors)
    energies: Floats = yield Diagonal(vectors**2)
    return forms + form_rounding(forms, energies, len(vectors))


def best_multiple(alpha: Floats, height: float, form: float) -> DualBound:
    """Return the best multiple t of a machine's dual point alpha, 0 <= t <= 1.

    Its dual value is ``max_t { t height - t^2/2 form }``, with `height` ``1'alpha`` or less, which
    rounding may make negative, and `form` its quadratic form or more.
    """
    height = max(height, 0.0)
    t = height / form if form > height else 1.0
    return DualBound(t * height - 0.5 * t**2 * form, t * alpha)


def fixed_weights_bound(
    problem: Problem, params: SolverParams, solution: Solution
) -> Generator[Request, Any, DualBound]:
    """Ask for the dual value of a machine's dual point at the solution's weights, fixed before.

    A machine of each class has a dual point of its own; their values add up.
    """
    alpha = solution.dual_variables.reshape(problem.n_points, -1)
    signed = alpha * problem.y.reshape(alpha.shape)
    forms = yield from largest_forms(signed)
    unbalanced = float(np.abs(signed.sum(axis=0) * solution.bias).sum())
    height = (1.0 - EPS) * float(alpha.sum()) - unbalanced
    form = float((solution.kernel_weights @ forms).sum())
    return best_multiple(solution.dual_variables, height, form)
