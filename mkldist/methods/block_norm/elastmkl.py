"""ElastMKL (Suzuki & Tomioka 2011, Section 4.3): smooth duals are minimised in one step.

For elastic-net, block q-norm and uniform regularisation psi* is finite and once differentiable,
so that the dual of :mod:`.working_set_iteration` needs no proximal term: Newton's method
minimises, Eq. (48),

    h(rho) + sum_m psi*(||rho||_{K_m})   s.t.  1'rho = 0,

e.g. with ``psi*(r) = (r - C (1 - mix))_+^2 / (2 C mix)`` for the elastic net.  The components
follow from rho; for the elastic net ``||f_m|| = (||rho||_{K_m} - C (1 - mix))_+ / (C mix)``.

The kernels take one minimisation.  Further outer iterations follow where the pass that certifies it
finds kernels that belong into the working set or asks for more accuracy, and, for all losses but
the squared one, until the multipliers of the loss have settled.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from mkldist.methods.block_norm.params import BlockNormParams
from mkldist.methods.block_norm.regularizers import Regularizer
from mkldist.methods.block_norm.working_set_iteration import BlockNorm
from mkldist.solvers.base import Method, Path, Problem, Steps, StopReason

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
    Quadratic, Matvec, Combine

    Returns
    -------
    Solution
        As :func:`mkldist.methods.block_norm.spicymkl.solve` returns it.
    """
    state, gamma = BlockNorm(problem, params), FIRST_GAMMA
    yield from state.start()
    for _ in range(params.max_iter):
        stop = yield from state.step(gamma)
        if stop is not None:
            break
        gamma = state.grown(gamma, GAMMA_GROWTH)
    return state.solution((yield from state.confirmed(stop or StopReason.MAX_ITER)))


METHOD = Method(
    name="elastmkl",
    solve=solve,
    params=ElastMKLParams,
    title="ElastMKL, one-step dual Newton",
    problem="block-norm MKL with a smooth dual",
    loss="logistic, hinge, squared or epsilon-insensitive",
    regularizer="C sum_m [(1 - mix) ||f_m|| + mix/2 ||f_m||^2], block q-norm, uniform, one's own",
    path=Path("C", rising=False),
    reference="Suzuki & Tomioka 2011, Section 4.3, Eqs. (43), (48)-(50)",
)
