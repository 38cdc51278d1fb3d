"""Parameters of block-norm MKL: its loss and its regulariser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer

from mkldist.core.arrays import Floats
from mkldist.core.memory import VECTORS_PER_SOLVER, ProblemSize, SolverMemory
from mkldist.core.target import Target
from mkldist.methods.block_norm import regularizers
from mkldist.methods.block_norm.bounds import NORM_SUM
from mkldist.methods.block_norm.losses import EpsilonInsensitive, Hinge, Logistic, Loss, Squared
from mkldist.methods.block_norm.regularizers import Regularizer
from mkldist.methods.block_norm.written_regularizers import read, written
from mkldist.solvers.solver_params import Effects, SolverParams

PRODUCTS = 4.5  # (S, n): those of rho, of the components and of a direction, and of the last
FEW_KERNELS = 80  # on a working set that has grown once
SMOOTH = 8  # kernels a point: smooth duals, such as the elastic net's, keep many small components

_LOSSES: dict[str, type[Loss]] = {
    "logistic": Logistic,
    "hinge": Hinge,
    "squared": Squared,
    "epsilon": EpsilonInsensitive,
}


def _plain(regularizer: str | Regularizer) -> str:
    """Return what records name a regulariser by."""
    return regularizer if isinstance(regularizer, str) else str(written(regularizer, "regularizer"))


class BlockNormParams(SolverParams):
    """Parameters of block-norm MKL."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    steers: ClassVar[tuple[str, ...]] = ("acceleration",)
    effective_with: ClassVar[Effects] = {
        "epsilon": ("loss", ("epsilon",)),
        "mix": ("regularizer", ("elastic-net",)),
        "q": ("regularizer", ("block-q",)),
        "C": ("regularizer", ("block1", "elastic-net", "block-q", "uniform")),
    }

    C: float = Field(
        1.0,
        gt=0,
        description="weight of the losses: that of the regulariser, the paper's C, is 1 / C",
    )
    loss: Literal["logistic", "hinge", "squared", "epsilon"] = Field(
        "logistic", description="logistic and hinge for classes, squared and epsilon for values"
    )
    epsilon: float = Field(0.1, ge=0, description="half width of the tube of loss epsilon")
    regularizer: Annotated[
        Literal["block1", "elastic-net", "block-q", "uniform"] | Regularizer,
        BeforeValidator(read),
        PlainSerializer(_plain),
    ] = Field("block1", description="block1, elastic-net, block-q, uniform, or a Regularizer")
    mix: float = Field(
        0.5, ge=0, le=1, description="share of the squared norm in elastic-net (lambda)"
    )
    q: float = Field(1.5, gt=1, le=2, description="exponent of block-q")
    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
    )

    @property
    def lam(self) -> float:
        """Strength of the regulariser, the paper's C."""
        return 1.0 / self.C

    @property
    def target(self) -> Target:
        """Kind of labels that the loss learns."""
        return _LOSSES[self.loss].target

    @property
    def gives_C(self) -> bool:
        """True for the hinge loss with the block-1 norm."""
        return self.loss == "hinge" and self.regularizer == "block1"

    def given_C(self, extra: Mapping[str, float]) -> float:
        """Return ``C sum_m ||f_m||``, by Eq. (6)."""
        return extra[NORM_SUM] * self.C

    @property
    def gives_log_odds(self) -> bool:
        """True for the logistic loss."""
        return self.loss == "logistic"

    def make_loss(self, y: Floats, weights: Floats | None = None) -> Loss:
        """Return the loss on labels `y` of points of some weights, (n,)."""
        if self.loss == "epsilon":
            return EpsilonInsensitive(y, self.epsilon, weights)
        return _LOSSES[self.loss](y, weights)

    def make_regularizer(self) -> Regularizer:
        """Return the regulariser of strength lam, or the user's own as it is."""
        match self.regularizer:
            case "block1":
                return regularizers.block1(self.lam)
            case "elastic-net":
                return regularizers.ElasticNet(self.lam, self.mix)
            case "block-q":
                return regularizers.BlockQ(self.lam, self.q)
            case "uniform":
                return regularizers.uniform(self.lam)
            case _:
                return self.regularizer


def memory_of_components(size: ProblemSize, params: BlockNormParams) -> SolverMemory:
    """Return the memory of a solver: products and images of the kernels at hand.

    These are all kernels without acceleration, or if every kernel is active in the end.  Otherwise
    as many are expected as there are points, and several times as many if the dual is smooth.
    """
    n, M, psi = size.n_points, size.n_kernels, params.make_regularizer()
    expected = (SMOOTH if psi.smooth_dual else 1) * max(n, FEW_KERNELS)
    every = params.acceleration == "none" or psi.threshold == 0.0
    at_hand = M if every else min(M, expected)
    return size.memory(vectors=VECTORS_PER_SOLVER + PRODUCTS * n * at_hand / M)
