"""What a graph over the points of a data set is, as a pydantic model."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mkldist.spec.kinds import Positive

GraphDistance = Literal["euclidean", "cosine", "tangent", "affine"]


class GraphSpec(BaseModel):
    """Which points are neighbours, how strongly, and what Laplacian is made of it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    distance: GraphDistance = Field(
        "euclidean", description="between points; 'tangent' and 'affine' are for square images"
    )
    kind: Literal["knn", "epsilon"] = Field(
        "knn", description="join each point to its nearest neighbours, or to all within epsilon"
    )
    neighbours: int = Field(10, ge=1, description="nearest neighbours per point, for 'knn'")
    epsilon: Positive | None = Field(None, description="largest distance, for 'epsilon'")
    weights: Literal["binary", "heat"] = Field(
        "binary", description="of edges: 1, or exp(-distance²/(2 width²))"
    )
    width: Positive | None = Field(
        None, description="of 'heat' weights; default the mean distance to the neighbours"
    )
    laplacian: Literal["combinatorial", "normalised"] = Field(
        "combinatorial", description="D - W, or D^-1/2 (D - W) D^-1/2"
    )
    power: int = Field(1, ge=1, le=10, description="p of the iterated Laplacian L^p")

    @model_validator(mode="after")
    def _fits_together(self) -> GraphSpec:
        if self.kind == "epsilon" and self.epsilon is None:
            raise ValueError("found no epsilon; expected epsilon = ... with kind = 'epsilon'")
        if self.kind == "knn" and self.epsilon is not None:
            raise ValueError(
                f"found epsilon = {self.epsilon:g} with kind = 'knn'; expected kind = 'epsilon'"
            )
        if self.weights == "binary" and self.width is not None:
            raise ValueError(
                f"found width = {self.width:g} with weights = 'binary'; expected weights = 'heat'"
            )
        return self
