"""ElastMKL (Suzuki & Tomioka 2011, Section 4.3): smooth duals are minimised in one step.

For elastic-net, block q-norm and uniform regularisation psi* is finite and once differentiable.
The dual needs no proximal term then, and Newton's method minimises it as it is, Eq. (48):

    h(rho) + sum_m psi*(||rho||_{K_m})   s.t.  1'rho = 0

For the elastic net ``psi*(r) = (r - lam (1 - mix))_+^2 / (2 lam mix)``, lam = 1 / C.  The
components follow from rho; for the elastic net
``||f_m|| = (||rho||_{K_m} - lam (1 - mix))_+ / (lam mix)``.

The lower bound is the negative of (48) at the rho that the solution holds as ``dual_variables``.

One minimisation settles the kernels.  Further outer iterations follow where the pass that
certifies it asks for more accuracy or, on a working set, finds kernels that belong to it; and,
for all losses but the squared one, until the multipliers of the loss have settled.  By default the
iterations run on a working set (:mod:`.working_set_iteration`).  With ``acceleration = "none"``
they visit all kernels: they are SpicyMKL's (:func:`.spicymkl.outer_iterations`) without the
proximal term, with Newton steps on Eqs. (49) and (50) and multipliers by Eq. (40).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from mkldist.methods.block_norm.on_factors import exact_bound, renewed
from mkldist.methods.block_norm.params import BlockNormParams, memory_of_components
from mkldist.methods.block_norm.regularizers import Regularizer
from mkldist.methods.block_norm.spicymkl import outer_iterations
from mkldist.methods.block_norm.working_set_iteration import solve_on_working_set
from mkldist.solvers.base import Method, Problem, Renewal, Steps

FIRST_GAMMA = 10.0  # penalty of the loss's multipliers
GAMMA_GROWTH = 4.0


class ElastMKLParams(BlockNormParams):
    """Parameters of the one-step method."""

    regularizer: Literal["block1", "elastic-net", "block-q", "uniform"] | Regularizer = Field(
        "elastic-net", description="elastic-net, block-q, uniform, or a Regularizer, not block1"
    )

    @model_validator(mode="after")
    def _smooth_dual(self) -> ElastMKLParams:
        if not self.make_regularizer().smooth_dual:
            named = self.regularizer if isinstance(self.regularizer, str) else "regularizer"
            found = "elastic-net with mix = 0" if named == "elastic-net" else named
            raise ValueError(
                f"found {found}, whose dual is not smooth; expected elastic-net with mix above 0, "
                "block-q or uniform (or the method spicymkl)"
            )
        return self


def solve(problem: Problem, params: ElastMKLParams) -> Steps:
    """Minimise the dual.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : ElastMKLParams
        Loss, regulariser and stopping rule.

    Yields
    ------
    Diagonal, Quadratic, Matvec, Combine

    Returns
    -------
    Solution
        As :func:`mkldist.methods.block_norm.spicymkl.solve` returns it.
    """
    run = solve_on_working_set if params.acceleration == "working-set" else outer_iterations
    return (yield from run(problem, params, FIRST_GAMMA, GAMMA_GROWTH, proximal=False))


METHOD = Method(
    name="elastmkl",
    solve=solve,
    params=ElastMKLParams,
    title="ElastMKL, one-step dual Newton",
    problem="block-norm MKL with a smooth dual",
    loss="logistic, hinge, squared or epsilon-insensitive",
    regularizer="1/C sum_m [(1 - mix) ||f_m|| + mix/2 ||f_m||^2], block q-norm, uniform, one's own",
    has_path=True,
    reference="Suzuki & Tomioka 2011, Section 4.3, Eqs. (43), (48)-(50)",
    weighs_points=True,
    memory=memory_of_components,
    exact_bound=exact_bound,
    renewal=Renewal(renewed),
)
