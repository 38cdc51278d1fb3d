"""Base of the estimators: preparation, the bank, the solvers, and the fitted attributes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from mkldist.arrays import Floats
from mkldist.data.dataset import View, absent_of
from mkldist.data.source_columns import SourceColumns
from mkldist.data.sparse_features import as_sparse, check_sparse
from mkldist.data.texts import TextColumns, TextView
from mkldist.errors import DataError, SpecError, nearest
from mkldist.estimators.bank_cache import BANKS, BankRequest
from mkldist.estimators.column_views import check_lacking, column_views
from mkldist.estimators.exported import exported_preparation
from mkldist.estimators.fit_lines import FitLines
from mkldist.estimators.fitted import FittedKernels
from mkldist.estimators.given_labels import check_given
from mkldist.estimators.kernel_choice import (
    OWN_GRAMS,
    default_kernels,
    refuse_grams,
    unit_of,
)
from mkldist.estimators.preparation import check_fillable, preparation
from mkldist.estimators.rows import Rows, check_numbers, divided_views
from mkldist.in_memory.given_kernels import check_groups
from mkldist.in_memory.given_texts import check_texts, divided, text_names
from mkldist.in_memory.solve import solve
from mkldist.in_memory.verbose import verbosity
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.families import NAMED_FAMILIES
from mkldist.kernels.graph import graph_laplacian, graph_spec
from mkldist.methods.block_norm.written_regularizers import named
from mkldist.models.model import Model
from mkldist.models.outcome import Outcome
from mkldist.models.used_texts import UsedTexts
from mkldist.solvers.proximity import proximity_of
from mkldist.spec.kernel_entries import PRECOMPUTED

UNSCALED = (None, "none")
LACKING_TEXTS = "Fill them, or name a view of this column in views: its kernels are zero there"


class KernelEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; each names its parameters itself, as scikit-learn asks."""

    method: str
    kernels: Any
    normalisation: Any
    impute: Any
    scale: Any
    groups: Mapping[str, Sequence[int | str]] | None
    views: Mapping[str, Any] | None
    missing_views: str
    backend: str
    random_state: int
    texts: Sequence[str] | None
    verbose: bool | int

    n_features_in_: int
    classes_: npt.NDArray[Any]
    _precedence: Any
    feature_names_in_: Any
    _linear_by_default = True
    _may_lack_labels = False
    _views: dict[str, View]  # blocks of the features of numbers
    _text_views: dict[str, TextView]
    _feature_names: tuple[str, ...] | None  # those of numbers

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._may_lack
        tags.input_tags.sparse = self.scale in UNSCALED and not self.texts
        tags.input_tags.string = bool(self.texts)
        return tags

    @property
    def _may_lack(self) -> bool:
        """True if X may hold NaN."""
        zero = self.views is not None and self.missing_views == "zero"
        return zero or self.impute not in (None, "none")

    def _rows(self, X: Any, *, fitted: bool = False) -> Rows:
        """Return rows of float64 and of texts, checked by scikit-learn."""
        return self._checked(X, fitted=fitted)[0]

    def _labelled_rows(self, X: Any, y: Any, **checks: Any) -> tuple[Rows, Any]:
        """Return rows and labels to fit, checked by scikit-learn, and that no label is missing."""
        check_given(y, may_lack=self._may_lack_labels)
        return self._checked(X, fitted=False, y=y, **checks)

    def _checked(self, X: Any, *, fitted: bool, **given: Any) -> tuple[Rows, Any]:
        """Return rows, and labels if they are given."""
        names, texts = text_names(self.texts), None
        unscaled = self.scale in UNSCALED
        if hasattr(X, "tocsr") and not unscaled:
            found = f"{self.scale!r:.60} for sparse X, which it would fill"
            hint = "Or call X.toarray(), or scale before by MaxAbsScaler in a pipeline"
            raise SpecError("scale", found, "None", hint)
        if names:
            validate_data(self, X, reset=not fitted, skip_check_array=True)
            X, texts = divided(X, names, "X")
        check_numbers(X)
        checks = {
            "dtype": np.float64,
            "ensure_all_finite": "allow-nan" if self._may_lack else True,
            "accept_sparse": "csr" if unscaled and not names else False,
            **given,
        }
        if texts is None:
            found = validate_data(self, X, reset=not fitted, **checks)
            columns = getattr(self, "feature_names_in_", None)
        else:
            columns, check = X.columns, check_X_y if "y" in given else check_array
            own = X if len(columns) else X.to_numpy(np.float64)
            found = check(own, ensure_min_features=0, **checks)
        numbers, y = found if "y" in given else (found, None)
        return Rows(numbers, None if columns is None else tuple(columns), texts), y

    def _fit_problems(
        self,
        rows: Rows,
        problems: Sequence[Floats],
        settings: Mapping[str, Any],
        *,
        weights: Floats | None = None,
        graph: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare rows, make their bank, and solve problems on it.

        Parameters
        ----------
        rows : Rows
            Rows, possibly with missing values.
        problems : sequence of (n,) or (n, k) float64
            Labels of each problem, as the method takes them.
        settings : mapping
            Parameters of the method.
        weights : (n,) float64, optional
            Positive weights of the rows.
        graph : mapping, optional
            The keys of ``[graph]``, for methods that use one.
        """
        names = getattr(self, "feature_names_in_", None)
        views = column_views(self.views, self.missing_views, self.n_features_in_, names)
        all_names = () if names is None else tuple(names)
        self._views, self._text_views = divided_views(views, all_names, rows.texts)
        self._feature_names = rows.names
        self._is_sparse = is_sparse(rows.numbers)
        if self._is_sparse or not rows.n_features:
            self.preparation_ = preparation(None, None).fit(rows.numbers)
        else:
            check_lacking(rows.numbers, self._views, fitting=True)
            if isinstance(self.impute, str):
                check_fillable(rows.numbers, rows.names)
            self.preparation_ = preparation(self.impute, self.scale, self._views).fit(rows.numbers)
        points = self._prepared(rows)
        laplacian = None if graph is None else self._laplacian(points.numbers, graph)
        verbose = verbosity(self.verbose)
        lines = FitLines(type(self).__name__, verbose)
        lines.begin(len(points), points.n_features)
        given = {"weights": weights, "laplacian": laplacian, "verbose": verbose, **settings}
        with BANKS.bank(self._bank_request(points), points) as bank:
            lines.bank(bank)
            each = lines.each(problems, self._function_names())
            solutions = [solve(self.method, bank, y, **given) for y in each]
            self._kept = FittedKernels.of(bank, solutions)
        self._settings = dict(settings)
        self.solutions_ = self._kept.solutions
        self.objective_, self.gap_ = self._kept.objective, self._kept.gap
        self.n_iter_, self.stop_reason_ = self._kept.n_iter, self._kept.stop_reason
        self.kernel_weights_ = self._kept.weights(self._function_names())

    def _laplacian(self, points: Floats, graph: Mapping[str, Any]) -> Any:
        """Return the graph Laplacian of prepared rows."""
        if not points.shape[1]:
            raise SpecError("graph", "columns of texts alone", "features of numbers beside them")
        if not is_sparse(points) and np.isnan(points).any():
            hint = 'Set missing_views="impute", or choose a method without a graph'
            raise SpecError("graph", "rows that lack a view", "all features of all rows", hint)
        return graph_laplacian(points, graph_spec(graph))

    def _bank_request(self, points: Rows) -> BankRequest:
        seed = self.random_state
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            hint = "Random feature subsets depend on it"
            raise SpecError("random_state", f"{seed!r:.60}", "a whole number from 0", hint)
        check_groups(self.groups or {}, "groups")
        return BankRequest(
            self._chosen_kernels(points),
            self.normalisation,
            self.groups,
            self.backend,
            int(seed),
            self._columns_of_views(points),
            gaps=any(view.missing == "zero" for view in self._all_views),
        )

    @property
    def _all_views(self) -> list[View | TextView]:
        return [*self._views.values(), *self._text_views.values()]

    def _columns_of_views(self, points: Rows) -> dict[str, list[int | str]]:
        """Return the columns of views, features by number and texts by name."""
        found: dict[str, list[int | str]] = {n: list(v.columns) for n, v in self._views.items()}
        names = () if points.texts is None else points.texts.names
        for view, block in self._text_views.items():
            found[view] = found.get(view, []) + [names[column] for column in block.columns]
        return found

    def _chosen_kernels(self, points: Rows) -> Any:
        """Return the kernels as :class:`mkldist.KernelBank` takes them."""
        if not isinstance(self.kernels, str):
            refuse_grams(self.kernels)
            return self.kernels
        if self.kernels == "default":
            sizes = {name: len(view.columns) for name, view in self._views.items()}
            unit = unit_of(points.numbers) if self._is_sparse else 1.0
            linear, texts = self._linear_by_default, points.texts is not None
            return default_kernels(points.n_features, sizes, unit, linear=linear, texts=texts)
        if self.kernels not in NAMED_FAMILIES:
            known = ["default", *NAMED_FAMILIES]
            expected = f"one of {', '.join(map(repr, known))}, or a list of kernels"
            hint = OWN_GRAMS if self.kernels == PRECOMPUTED else nearest(self.kernels, known)
            raise SpecError("kernels", f"{self.kernels!r}", expected, hint)
        return self.kernels

    def _prepared(self, rows: Rows) -> Rows:
        """Return rows imputed and scaled, as kernels take them."""
        if rows.texts is not None:
            zero = [view for view in self._text_views.values() if view.missing == "zero"]
            allowed = [column for view in zero for column in view.columns]
            check_texts(rows.texts, allowed, "X", LACKING_TEXTS)
        return replace(rows, numbers=self._prepared_numbers(rows.numbers))

    def _prepared_numbers(self, X: Floats) -> Floats:
        if self._is_sparse:
            points: Floats = as_sparse(X)
            check_sparse(points, "X")
            return points
        if is_sparse(X):
            hint = "Call X.toarray()"
            raise DataError("X", "sparse features", "dense ones, as those it was fitted on", hint)
        check_lacking(X, self._views, fitting=False)
        absent, points = absent_of(X, self._views), self.preparation_.transform(X)
        if absent is not None and points.shape != X.shape:
            found = f"{points.shape[1]} columns of {X.shape[1]}"
            raise SpecError("scale", found, "as many, for views are blocks of them")
        if (np.isfinite(points) if absent is None else np.isfinite(points) | absent).all():
            return np.ascontiguousarray(points, dtype=np.float64)
        raise DataError(
            "X", "values that are too large to be scaled, or NaN", "finite features", "Rescale them"
        )

    def _new_rows(self, X: Any) -> Rows:
        """Return new rows as kernels take them."""
        check_is_fitted(self)
        return self._prepared(self._rows(X, fitted=True))

    def _values(self, X: Any) -> Floats:
        """Return the decision functions at new rows, (t, k)."""
        rows = self._new_rows(X)
        return self._kept.values(rows)

    def _function_names(self) -> Sequence[Hashable] | None:
        """Return the names of the decision functions; None for a single one."""
        return None

    def predict_by_kernel(self, X: Any, by: str = "kernel") -> pd.DataFrame:
        """Split the decision function into the shares of kernels or of feature sets.

        The sum of a row, and ``intercept_``, is the decision function.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        by : {"kernel", "features"}
            One column a kernel of weight above zero, or one for all kernels on the same features.

        Returns
        -------
        DataFrame
            Its columns have the levels ``class`` and ``kernel`` where there are several functions.

        Raises
        ------
        mkldist.errors.SpecError
            For another `by`.
        """
        if by not in ("kernel", "features"):
            raise SpecError("by", f"{by!r:.60}", "'kernel' or 'features'")
        shares = self._kept_by_kernel(X)
        if by == "kernel":
            return shares
        place = dict(
            zip(self.kernel_weights_["name"], self.kernel_weights_["features"], strict=True)
        )
        names, texts = self._features, text_names(self.texts)
        d = len(names)
        blocks = [(view.columns, names, name) for name, view in self._views.items()]
        blocks += [(view.columns, texts, name) for name, view in self._text_views.items()]
        of_views = {tuple(known[c] for c in columns): name for columns, known, name in blocks}
        labels = {
            name: of_views.get(columns, "all" if len(columns) == d else "+".join(columns))
            for name, columns in place.items()
        }
        level = shares.columns.nlevels - 1
        renamed = shares.rename(columns=labels, level=level)
        return renamed.T.groupby(level=list(range(level + 1)), sort=False).sum().T

    def _kept_by_kernel(self, X: Any) -> pd.DataFrame:
        rows = self._new_rows(X)
        shares = self._kept.by_kernel(rows, self._function_names())
        return shares.set_index(X.index) if isinstance(X, pd.DataFrame) else shares

    def to_model(self) -> Model:
        """Return the fitted model apart from scikit-learn, to be saved to one file.

        It predicts and decides as the estimator does; probabilities stay with the estimator.

        Raises
        ------
        mkldist.errors.SpecError
            For an imputer or a scaler of the user's, and for classes that are neither numbers nor
            text.
        """
        check_is_fitted(self)
        features, columns = self._features, text_names(self.texts)
        weights = tuple(
            solution.kernel_weights[function.index]
            for solution, function in zip(self._kept.solutions, self._kept.expansions, strict=True)
        )
        texts = None
        if columns:
            empty = np.empty((0, len(columns)), dtype=object)
            texts = TextColumns(columns, empty, self._text_views)
        source = SourceColumns.of_features(features)
        used = UsedTexts.of(texts, self._kept.expansions, source, {})
        return Model(
            used.columns,
            features,
            exported_preparation(self.preparation_, len(features)),
            used.functions,
            weights,
            self._outcome(),
            {
                "dataset": "an estimator's data",
                "method": self.method,
                "params": {name: named(value) for name, value in self._settings.items()},
                "objective": float(self.objective_),
                **proximity_of(self._kept.solutions),
                "stop_reason": self.stop_reason_,
            },
            self._views,
            texts=used.texts,
        )

    @property
    def _features(self) -> tuple[str, ...]:
        """Names of the features of numbers."""
        names = self._feature_names
        return tuple(f"x{j}" for j in range(self.n_features_in_)) if names is None else names

    def _outcome(self) -> Outcome:
        """Return the step from decision values to predictions; that of classes by default."""
        classes = self.classes_
        if not all(isinstance(one, str | int | float) for one in classes.tolist()):
            found = f"{classes.tolist()[0]!r:.60}"
            raise SpecError("classes", found, "numbers, text or truth values, for a file")
        order = tuple(self._precedence.tolist()) if len(classes) > 2 else ()
        return Outcome(classes, order, positive_at_zero=False)

    @property
    def intercept_(self) -> float | Floats:
        """Constant term of the decision function; (k,) for k functions."""
        check_is_fitted(self)
        bias = self._kept.bias
        return bias if self._function_names() is not None else float(bias[0])
