"""The content of a model: what its file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mkldist.arrays import Floats
from mkldist.data.preprocessing import FittedPreprocessing
from mkldist.data.source_columns import SourceColumns
from mkldist.in_memory.expansion import Expansion
from mkldist.models.outcome import Outcome


@dataclass(frozen=True, eq=False)
class ModelContent:
    """Preprocessing, active kernels, support vectors and classes of a model.

    Parameters
    ----------
    columns : SourceColumns
        Columns that new rows bring, and the features made of them.
    feature_names : tuple of str
        d names of the features.
    preprocessing : FittedPreprocessing
        Imputation and scaling of the features.
    functions : tuple of Expansion
        The decision functions, one or several in each.
    weights : tuple of (S,) float64
        Kernel weights as the method found them, of the kernels in each of `functions`.
    outcome : Outcome
        The step from decision values to predictions.
    facts : mapping
        Origin of the model, JSON-serialisable: data set, method, parameters, certificate,
        fingerprint of the data, versions.
    """

    columns: SourceColumns
    feature_names: tuple[str, ...]
    preprocessing: FittedPreprocessing
    functions: tuple[Expansion, ...]
    weights: tuple[Floats, ...]
    outcome: Outcome
    facts: Mapping[str, Any] = field(default_factory=dict)
