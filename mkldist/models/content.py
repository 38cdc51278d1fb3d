"""The content of a model: what its file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mkldist.arrays import Floats
from mkldist.data.dataset import View
from mkldist.data.preprocessing import FittedPreprocessing
from mkldist.data.source_columns import SourceColumns
from mkldist.in_memory.expansion import Expansion
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.models.given_rows import GivenRows
from mkldist.models.kernel_descriptions import has_code
from mkldist.models.outcome import Outcome
from mkldist.models.text_columns import ModelTexts


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
    views : mapping of str to View
        Blocks of the features that rows may lack as a whole.
    view_columns : mapping of str to SourceColumns
        Columns of the views with a table of their own, whose features follow the others.
    given : GivenRows, or None
        Views that are Gram matrices; None without any.
    texts : ModelTexts, or None
        Columns of texts that kernels use; None without any.
    """

    columns: SourceColumns
    feature_names: tuple[str, ...]
    preprocessing: FittedPreprocessing
    functions: tuple[Expansion, ...]
    weights: tuple[Floats, ...]
    outcome: Outcome
    facts: Mapping[str, Any] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    view_columns: Mapping[str, SourceColumns] = field(default_factory=dict)
    given: GivenRows | None = None
    texts: ModelTexts | None = None

    @property
    def is_sparse(self) -> bool:
        """True if features are kept in compressed sparse rows."""
        return is_sparse(self.functions[0].points)

    @property
    def runs_code(self) -> bool:
        """True if active kernels are functions of the user."""
        lists = [function.kernels for function in self.functions]
        lists += [one.texts.kernels for one in self.functions if one.texts is not None]
        return any(map(has_code, lists))

    @property
    def source_views(self) -> tuple[str, ...]:
        """Views that new rows bring beside their table: tables, then kernel values."""
        return (*self.view_columns, *(self.given.views if self.given else ()))

    @property
    def needed_views(self) -> tuple[str, ...]:
        """Those of :attr:`source_views` that kernels of weight above zero use."""
        used = {kernel.view for function in self.functions for kernel in function.given}
        first = len(self.feature_names) - sum(
            columns.n_kept for columns in self.view_columns.values()
        )
        for name, columns in self.view_columns.items():
            here = range(first, first + columns.n_kept)
            if columns.texts or any(
                column in here
                for function in self.functions
                for column in function.kernels.subset_indices.tolist()
            ):
                used.add(name)
            first += columns.n_kept
        return tuple(name for name in self.source_views if name in used)

    def needs_view(self, name: str) -> bool:
        """Return True if no row may lack a view with a table of its own."""
        if name in self.views:
            return self.views[name].missing is None
        if self.texts is None:
            return False
        own = [f"{name}.{column}" for column in self.view_columns[name].texts]
        optional = dict(zip(self.texts.names, self.texts.optional, strict=True))
        return not all(optional[column] for column in own)
