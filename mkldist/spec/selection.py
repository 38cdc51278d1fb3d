"""Model of ``[selection]``: by which metric and how hyperparameters are selected."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from mkldist.core.metrics import MetricName
from mkldist.spec.kinds import Model


class SelectionSpec(Model):
    """``[selection]``: a metric, and inner cross-validation on the training rows of every split.

    Selection never uses test labels or labels of unlabelled rows.
    """

    metric: MetricName | None = Field(
        None,
        description="Score by which settings and methods are selected, marked and compared. By "
        "default `error` for classes and `rmse` for real values.",
    )
    folds: int = Field(
        5,
        ge=0,
        description="Inner folds of the labelled training rows, each class in proportion. Omit "
        "it to use up to 5 folds, and fewer where a class has fewer rows. 0 stands for no inner "
        "folds: the test parts then rank the settings by the metric.",
    )
    repeats: int = Field(1, ge=1, le=1000, description="Repetitions, each with other folds.")

    @field_validator("folds")
    @classmethod
    def _several(cls, folds: int) -> int:
        if folds == 1:
            raise ValueError("found 1; expected 2 or more, or 0 for no inner folds")
        return folds

    @model_validator(mode="after")
    def _repeats_folds(self) -> SelectionSpec:
        if not self.folds and self.repeats > 1:
            raise ValueError(f"found repeats = {self.repeats} of folds = 0; expected folds")
        return self

    def identity(self, seed: int) -> dict[str, Any]:
        """Return the values that distinguish these folds from others of the same rows."""
        return {"folds": self.folds, "repeats": self.repeats, "seed": seed}
