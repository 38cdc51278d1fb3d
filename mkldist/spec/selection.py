"""How hyperparameters are selected, as a pydantic model."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from mkldist.spec.kinds import Model


class SelectionSpec(Model):
    """``[selection]``: inner cross-validation on the labelled training rows of every split.

    Neither test labels nor those of unlabelled rows take part.
    """

    folds: int = Field(
        5, ge=2, description="of each class in proportion; by default fewer in a small class"
    )
    repeats: int = Field(1, ge=1, description="repetitions with other folds")

    def identity(self, seed: int) -> dict[str, Any]:
        """Return what tells the folds from others of the same rows."""
        return {**self.model_dump(), "seed": seed}
