"""Models of ``[graph]``: the graph that joins neighbouring points of a data set."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from mkldist.spec.kinds import Model, Positive

GraphDistance = Literal["euclidean", "cosine", "tangent", "affine"]


class GraphSpec(Model):
    """The edges of a graph, their weights, and the Laplacian that is made of them."""

    distance: GraphDistance = Field(
        "euclidean",
        description="Distance between points: Euclidean; 1 - cosine, as for text; tangent or "
        "affine-transformation distance, for square images.",
    )
    kind: Literal["knn", "epsilon"] = Field(
        "knn",
        description='`"knn"` joins each point to its nearest neighbours, `"epsilon"` to all '
        "points within a distance.",
    )
    neighbours: int = Field(
        10,
        ge=1,
        description='Nearest neighbours of each point, for `"knn"`. An edge joins two points if '
        "either is among the nearest of the other.",
    )
    epsilon: Positive | None = Field(
        None, description='Largest distance between neighbours, for `"epsilon"`, which needs it.'
    )
    weights: Literal["binary", "heat"] = Field(
        "binary", description="Weight w of an edge: 1, or exp(-distance²/(2 width²))."
    )
    width: Positive | None = Field(
        None,
        description='Width of `"heat"` weights. By default the mean distance to the neighbours.',
    )
    laplacian: Literal["combinatorial", "normalised"] = Field(
        "combinatorial",
        description="Laplacian L of the weights W with degrees D: D - W, or "
        "D^(-1/2) (D - W) D^(-1/2).",
    )
    power: int = Field(
        1, ge=1, le=10, description="Power p of the iterated Laplacian L^p that methods use."
    )

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
    """``[graph]``: the graph whose Laplacian the semi-supervised methods of a sweep are given."""

    features: Literal["preprocessed", "raw"] | None = Field(
        None,
        description="Features between which distances are taken. By default preprocessed ones for "
        '`"euclidean"`, and raw ones for the other distances, to which scaling single features '
        "does harm.",
    )

    @property
    def of_raw_features(self) -> bool:
        """True if distances are between points as they are in the data."""
        if self.features is None:
            return self.distance != "euclidean"
        return self.features == "raw"

    @property
    def graph(self) -> GraphSpec:
        """The graph itself, without the choice of features."""
        return GraphSpec(**self.model_dump(exclude={"features"}, exclude_unset=True))

    @property
    def identity(self) -> dict[str, Any]:
        """Fields that distinguish graphs of the same data set and preprocessing."""
        return self.graph.model_dump() | {"raw": self.of_raw_features}
