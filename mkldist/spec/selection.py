"""Model of ``[selection]``: how hyperparameters are selected."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from mkldist.spec.kinds import Model


class SelectionSpec(Model):
    """``[selection]``: inner cross-validation on the labelled training rows of every split.

    Selection never uses test labels or labels of unlabelled rows.
    """

    folds: int = Field(
        5,
        ge=2,
        description="Inner folds of the labelled training rows, each class in proportion. Omit "
        "it to use up to 5 folds, and fewer where a class has fewer rows.",
    )
    repeats: int = Field(1, ge=1, le=1000, description="Repetitions, each with other folds.")

    def identity(self, seed: int) -> dict[str, Any]:
        """Return the values that distinguish these folds from others of the same rows."""
        return {**self.model_dump(), "seed": seed}
