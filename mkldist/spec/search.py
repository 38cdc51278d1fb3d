"""Models of ``[search]``: which settings are tried, and distributions of hyperparameters."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from mkldist.spec.kinds import Finite, Model, Positive

# Keys that have an effect with some kinds of search alone.
_EFFECTIVE_WITH = {"batch": "adaptive"} | dict.fromkeys(
    ("resource", "factor", "rungs", "first"), "halving"
)


class Distribution(Model):
    """Distribution of a hyperparameter: ``{low, high, scale}``."""

    low: Finite = Field(description="Least value.")
    high: Finite = Field(description="Greatest value.")
    scale: Literal["linear", "log"] = Field(
        "linear", description="Uniform in the value or in its logarithm."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Distribution:
        if self.low >= self.high:
            raise ValueError(f"found low = {self.low:g}, high = {self.high:g}; expected low < high")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"found a log scale from {self.low:g}; expected low above 0")
        return self


def is_distribution(value: Any) -> bool:
    """Return True if a value of a parameter is meant as a distribution."""
    return isinstance(value, dict) and not {"low", "high"}.isdisjoint(value)


MOST_TRIALS = 100_000


class SearchSpec(Model):
    """``[search]``: settings drawn from distributions in place of a grid.

    Trials are compared by their error on the inner folds of ``[selection]``, never by test labels.
    """

    kind: Literal["random", "adaptive", "halving"] = Field(
        description="Independent random settings; settings that Optuna proposes from the results "
        "so far; or random settings of which the best go on from rung to rung."
    )
    trials: int = Field(
        ge=1,
        le=MOST_TRIALS,
        description="Settings to try of each method on each bank, data set and split; fewer where "
        "there are not so many.",
    )
    batch: int = Field(
        8,
        ge=1,
        le=MOST_TRIALS,
        description='`"adaptive"`: trials that are proposed, and share passes, at once.',
    )
    seed: int | None = Field(
        None, ge=0, description="Seed of the trials. By default the sweep's seed."
    )
    resource: Literal["tol", "training-size"] = Field(
        "tol",
        description='`"halving"`: what grows from rung to rung: the precision, from a loose '
        "tolerance to the method's own; or the share of the training rows.",
    )
    factor: int = Field(
        3,
        ge=2,
        le=MOST_TRIALS,
        description='`"halving"`: one trial of so many goes on to the next rung.',
    )
    rungs: int = Field(3, ge=2, le=50, description='`"halving"`: number of rungs.')
    first: Positive | None = Field(
        None,
        description='`"halving"`: tolerance, or share of the training rows, of the first rung; '
        "the others rise in equal ratios to the full resource. By default a tolerance of 0.3, or "
        "a share of factor^(1 - rungs).",
    )

    @property
    def rung_dim(self) -> str | None:
        """Dimension of the results along which the rungs of halving lie; None without rungs."""
        if self.kind != "halving":
            return None
        return "tol" if self.resource == "tol" else "training_fraction"

    @model_validator(mode="after")
    def _of_one_kind(self) -> SearchSpec:
        for name, kind in _EFFECTIVE_WITH.items():
            if name in self.model_fields_set and self.kind != kind:
                raise ValueError(
                    f'found {name} with kind = "{self.kind}"; expected kind = "{kind}", '
                    f"or no {name}"
                )
        if self.kind == "halving" and self.trials < 2:
            raise ValueError(f"found trials = {self.trials}; expected at least 2 to halve")
        if self.resource == "training-size" and self.first is not None and self.first >= 1:
            raise ValueError(f"found first = {self.first:g}; expected a share below 1")
        return self
