"""SpicyMKL (Suzuki & Tomioka 2011, Tables 1 and 2): proximal steps, each solved in its dual.

Minimises over functions f_m and a bias b, Eqs. (4) and (42),

    sum_i l(y_i, sum_m f_m(x_i) + b) + sum_m psi(||f_m||)

by the proximal point method,

    alpha^{t+1} = argmin { objective(alpha) + 1/(2 gamma_t) sum_m ||alpha_m - alpha_m^t||_{K_m}^2 },

with gamma_t growing.  The step's dual is smooth in one vector rho
(:mod:`.dual_newton`), only kernels with ``||rho + alpha_m / gamma|| > psi'(0+)``
take part in it, and afterwards

    alpha_m <- prox(alpha_m + gamma rho),    block1: v (1 - gamma C / ||v||_{K_m})_+.

Losses and regularisers are the small objects of :mod:`.losses` and
:mod:`.regularizers`.  With the hinge loss and block1 it is the problem of Level and
SimpleMKL: the solution at C is theirs at ``C_svm = sum_m ||f_m|| / C`` with weights
``d_m = ||f_m|| / sum_m ||f_m||``, Eq. (6).

Where this differs from the paper: the bias has an infinite proximal parameter, that is 1'rho = 0
holds at every iterate; the inner problem is solved on a working set of kernels, and a pass looks
for others that belong into it and gives the lower bound; and the corners of polyhedral losses are
rounded off by an entropy that vanishes with the gap, which saves up to half of the Newton steps.
"""

from __future__ import annotations

from pydantic import Field

from mkldist.methods.block_norm.params import BlockNormParams
from mkldist.methods.block_norm.working_set_iteration import BlockNorm
from mkldist.solvers.base import Method, Path, Problem, Steps, StopReason


class SpicyMKLParams(BlockNormParams):
    """Parameters of SpicyMKL."""

    gamma: float = Field(
        10.0, gt=0, allow_inf_nan=False, description="first proximal parameter, kernels of trace 1"
    )
    growth: float = Field(
        2.0,
        gt=1,
        allow_inf_nan=False,
        description="its factor from one outer iteration to the next",
    )


def solve(problem: Problem, params: SpicyMKLParams) -> Steps:
    """Run SpicyMKL.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : SpicyMKLParams
        Loss, regulariser and stopping rule.

    Yields
    ------
    Quadratic, Matvec, Combine

    Returns
    -------
    Solution
        ``kernel_weights`` are ``||f_m|| / ||rho||_{K_m}``, normalised to sum one;
        ``dual_variables`` is rho.
    """
    state, gamma = BlockNorm(problem, params), params.gamma
    kernel_scale = yield from state.start()
    for _ in range(params.max_iter):
        stop = yield from state.step(gamma, damping=kernel_scale / gamma)
        if stop is not None:
            break
        gamma = state.grown(gamma, params.growth)
    return state.solution((yield from state.confirmed(stop or StopReason.MAX_ITER)))


METHOD = Method(
    name="spicymkl",
    solve=solve,
    params=SpicyMKLParams,
    title="SpicyMKL, dual augmented Lagrangian",
    problem="block-norm MKL",
    loss="logistic, hinge, squared or epsilon-insensitive",
    regularizer="C sum_m ||f_m||, elastic-net, block q-norm, uniform, or one's own",
    path=Path("C", rising=False),
    reference="Suzuki & Tomioka 2011, Tables 1 and 2, Eqs. (25)-(27), (38)-(41), (47)",
)
