"""What a graph over the points of a data set is, as pydantic models."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from mkldist.spec.kinds import Model, Positive

GraphDistance = Literal["euclidean", "cosine", "tangent", "affine"]


class GraphSpec(Model):
    """Which points are neighbours, how strongly, and what Laplacian is made of it."""

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
        if self.kind == "epsilon" and "neighbours" in self.model_fields_set:
            raise ValueError(
                f"found neighbours = {self.neighbours} with kind = 'epsilon'; expected kind = 'knn'"
            )
        if self.weights == "binary" and self.width is not None:
            raise ValueError(
                f"found width = {self.width:g} with weights = 'binary'; expected weights = 'heat'"
            )
        return self


class GraphTable(GraphSpec):
    """``[graph]``: the graph of a sweep, whose Laplacian semi-supervised methods are given."""

    features: Literal["preprocessed", "raw"] | None = Field(
        None,
        description="of which features; default preprocessed for 'euclidean', and raw for the "
        "other distances, to which scaling single features does harm",
    )

    @property
    def of_raw_features(self) -> bool:
        """Whether points are taken as they are in the data."""
        if self.features is None:
            return self.distance != "euclidean"
        return self.features == "raw"

    @property
    def graph(self) -> GraphSpec:
        """The graph itself, of whatever points."""
        return GraphSpec(**self.model_dump(exclude={"features"}, exclude_unset=True))

    @property
    def identity(self) -> dict[str, Any]:
        """What tells it from other graphs of the same data set and preprocessing."""
        return self.graph.model_dump() | {"raw": self.of_raw_features}
