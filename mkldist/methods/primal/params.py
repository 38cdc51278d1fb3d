"""Parameters of PrimalMKL, and the loss and the machine that they name."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.core.target import Target
from mkldist.solvers.base import Problem
from mkldist.solvers.primal_newton import Inner, PrimalMachine
from mkldist.solvers.solver_params import Effects, SolverParams
from mkldist.solvers.squared_losses import (
    SquaredLoss,
    epsilon_squared,
    one_class,
    squared,
    squared_hinge,
)

LOWER_CHI_2 = "Lower chi_2, or raise tol; where a lower one is no help, scale the kernels"
INNER_SHARE = 1e-2  # of tol: the error of q_m is of the order of the root of the machine's gap


class PrimalMKLParams(SolverParams):
    """Parameters of PrimalMKL."""

    steers: ClassVar[tuple[str, ...]] = ("inner", "coupled", "acceleration", "machine", "chi_2")
    effective_with: ClassVar[Effects] = {
        "epsilon": ("loss", ("epsilon-squared",)),
        "acceleration": ("norm", (1.0,)),
        "machine": ("coupled", (False,)),
        "chi_2": ("machine", ("one-step",)),
    }

    C: float = Field(
        1.0,
        ge=1e-30,
        le=1e30,
        description="weight of the losses: that of the regulariser, the paper's lambda, is 1 / C",
    )
    loss: Literal["squared-hinge", "squared", "epsilon-squared", "one-class"] = Field(
        "squared-hinge", description="loss; squared and epsilon-squared are for real targets"
    )
    epsilon: float = Field(0.1, ge=0, description="half-width of the tube of epsilon-squared")
    norm: float = Field(1.0, ge=1, le=100, description="1: simplex; p > 1: ||d||_p <= 1")
    inner: Inner = Field("truncated-newton", description="how the machine is solved")
    coupled: bool = Field(
        True,
        description="let the coefficients follow in the weight step; false: the paper's step, "
        "whose iterations grow as C",
    )
    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
    )
    machine: Literal["minimum", "one-step"] = Field(
        "minimum",
        description="how far the machine is minimised between two weight steps; one-step: "
        "Algorithm 1 as printed, which visits all kernels",
    )
    chi_2: float = Field(
        0.0,
        ge=0,
        description="norm of the machine's gradient at which to stop, 0.1 in the paper; such a run "
        "has converged only if its gap is at most tol",
    )

    @property
    def lam(self) -> float:
        """Strength of the regulariser."""
        return 1.0 / self.C

    @property
    def after_a_stall(self) -> str:
        """What to do about a run that stalled above its tolerance."""
        return LOWER_CHI_2 if self.chi_2 > 0.0 else super().after_a_stall

    @property
    def target(self) -> Target:
        """Kind of labels that the loss takes."""
        if self.loss == "squared-hinge":
            return Target.CLASSES
        return Target.ONE_CLASS if self.loss == "one-class" else Target.VALUES


def squared_loss(params: PrimalMKLParams, y: Floats, weights: Floats | None = None) -> SquaredLoss:
    """Return the loss that the parameters name, for targets `y` and weights of the points, (n,)."""
    if params.loss == "epsilon-squared":
        return epsilon_squared(y, params.epsilon, weights)
    of_name = {"squared": squared, "squared-hinge": squared_hinge, "one-class": one_class}
    return of_name[params.loss](y, weights)


def machine_of(params: PrimalMKLParams, problem: Problem, counters: Counters) -> PrimalMachine:
    """Return the machine of a problem, whose gap is a small share of the tolerance.

    The machine stops by this gap, in place of the paper's ``||grad_z|| < chi_2`` (line 6).
    """
    share = (INNER_SHARE * params.tol) ** 2
    loss = squared_loss(params, problem.y, problem.weights)
    return PrimalMachine(loss, params.lam, params.inner, share, counters)


def signed_by_class(params: PrimalMKLParams, r: Floats, y: Floats) -> Floats:
    """Return the dual variables (n,) of a residual: ``y * r`` for the squared hinge, else r."""
    return r * y if params.loss == "squared-hinge" else r
