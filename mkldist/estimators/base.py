"""Base of the estimators: preparation, the bank, the solvers, and the fitted attributes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from mkldist.arrays import Floats
from mkldist.data.dataset import View, absent_of
from mkldist.data.source_columns import SourceColumns
from mkldist.data.sparse_features import as_sparse, check_sparse
from mkldist.errors import DataError, SpecError, nearest
from mkldist.estimators.bank_cache import BANKS, BankRequest
from mkldist.estimators.column_views import check_lacking, column_views
from mkldist.estimators.exported import exported_preparation
from mkldist.estimators.fitted import FittedKernels
from mkldist.estimators.kernel_choice import default_kernels, unit_of
from mkldist.estimators.preparation import preparation
from mkldist.in_memory.given_kernels import check_groups
from mkldist.in_memory.solve import solve
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.families import NAMED_FAMILIES
from mkldist.kernels.graph import graph_laplacian, graph_spec
from mkldist.kernels.precomputed import Precomputed
from mkldist.models.model import Model
from mkldist.models.outcome import Outcome
from mkldist.solvers.proximity import proximity_of

UNSCALED = (None, "none")


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

    n_features_in_: int
    classes_: npt.NDArray[Any]
    _precedence: Any
    feature_names_in_: Any
    _linear_by_default = True
    _views: dict[str, View]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._may_lack
        tags.input_tags.sparse = self.scale in UNSCALED
        return tags

    @property
    def _may_lack(self) -> bool:
        """True if X may hold NaN."""
        zero = self.views is not None and self.missing_views == "zero"
        return zero or self.impute not in (None, "none")

    def _rows(self, X: Any, *, fitted: bool, **given: Any) -> Any:
        """Return features as float64, and labels where they are given, checked by scikit-learn."""
        finite: bool | str = "allow-nan" if self._may_lack else True
        unscaled = self.scale in UNSCALED
        if hasattr(X, "tocsr") and not unscaled:
            found = f"{self.scale!r:.60} for sparse X, which it would fill"
            hint = "Or call X.toarray(), or scale before by MaxAbsScaler in a pipeline"
            raise SpecError("scale", found, "None", hint)
        _check_numbers(X)
        return validate_data(
            self,
            X,
            reset=not fitted,
            dtype=np.float64,
            ensure_all_finite=finite,
            accept_sparse="csr" if unscaled else False,
            **given,
        )

    def _fit_problems(
        self,
        X: Floats,
        problems: Sequence[Floats],
        settings: Mapping[str, Any],
        *,
        weights: Floats | None = None,
        graph: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare rows, make their bank, and solve problems on it.

        Parameters
        ----------
        X : (n, d) float64
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
        self._views = column_views(self.views, self.missing_views, self.n_features_in_, names)
        if is_sparse(X):
            self.preparation_ = preparation(None, None).fit(X)
        else:
            check_lacking(X, self._views, fitting=True)
            self.preparation_ = preparation(self.impute, self.scale, self._views).fit(X)
        self._is_sparse = is_sparse(X)
        points = self._prepared(X)
        laplacian = None if graph is None else self._laplacian(points, graph)
        with BANKS.bank(self._bank_request(points), points, names) as bank:
            solutions = [
                solve(self.method, bank, y, weights=weights, laplacian=laplacian, **settings)
                for y in problems
            ]
            self._kept = FittedKernels.of(bank, solutions)
        self._settings = dict(settings)
        self.solutions_ = self._kept.solutions
        self.objective_, self.gap_ = self._kept.objective, self._kept.gap
        self.n_iter_, self.stop_reason_ = self._kept.n_iter, self._kept.stop_reason
        self.kernel_weights_ = self._kept.weights(self._function_names())

    def _laplacian(self, points: Floats, graph: Mapping[str, Any]) -> Any:
        """Return the graph Laplacian of prepared rows."""
        if not is_sparse(points) and np.isnan(points).any():
            hint = 'Set missing_views="impute", or choose a method without a graph'
            raise SpecError("graph", "rows that lack a view", "all features of all rows", hint)
        return graph_laplacian(points, graph_spec(graph))

    def _bank_request(self, points: Floats) -> BankRequest:
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
            {name: view.columns for name, view in self._views.items()},
            gaps=any(view.missing == "zero" for view in self._views.values()),
        )

    def _chosen_kernels(self, points: Floats) -> Any:
        """Return the kernels as :class:`mkldist.KernelBank` takes them."""
        if not isinstance(self.kernels, str):
            if any(isinstance(kernel, Precomputed) for kernel in self.kernels or ()):
                raise SpecError(
                    "kernels",
                    "Precomputed in an estimator, whose rows scikit-learn divides",
                    "kernels of features",
                    "Call mkldist.KernelBank and mkldist.solve for given Gram matrices",
                )
            return self.kernels
        if self.kernels == "default":
            sizes = {name: len(view.columns) for name, view in self._views.items()}
            unit = unit_of(points) if is_sparse(points) else 1.0
            linear = self._linear_by_default
            return default_kernels(self.n_features_in_, sizes, unit, linear=linear)
        if self.kernels not in NAMED_FAMILIES:
            known = ["default", *NAMED_FAMILIES]
            expected = f"one of {', '.join(map(repr, known))}, or a list of kernels"
            hint = nearest(self.kernels, known)
            raise SpecError("kernels", f"{self.kernels!r}", expected, hint)
        return self.kernels

    def _prepared(self, X: Floats) -> Floats:
        """Return rows imputed and scaled, as kernels take them."""
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

    def _new_rows(self, X: Any) -> Floats:
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
        d = self.n_features_in_
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(d)])
        of_views = {
            tuple(str(names[column]) for column in view.columns): name
            for name, view in self._views.items()
        }
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
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        features = tuple(str(name) for name in names)
        weights = tuple(
            solution.kernel_weights[function.index]
            for solution, function in zip(self._kept.solutions, self._kept.expansions, strict=True)
        )
        return Model(
            SourceColumns.of_features(features),
            features,
            exported_preparation(self.preparation_, self.n_features_in_),
            self._kept.expansions,
            weights,
            self._outcome(),
            {
                "dataset": "an estimator's data",
                "method": self.method,
                "params": self._settings,
                "objective": float(self.objective_),
                **proximity_of(self._kept.solutions),
                "stop_reason": self.stop_reason_,
            },
            self._views,
        )

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


def _check_numbers(X: Any) -> None:
    """Refuse a DataFrame with a column of values that are no numbers."""
    if not isinstance(X, pd.DataFrame):
        return
    for place, name in enumerate(X.columns):
        column = X.iloc[:, place]
        if pd.api.types.is_numeric_dtype(column.dtype) or column.empty:
            continue
        try:
            column.astype(np.float64)
        except (TypeError, ValueError):
            bad = next(value for value in column if not _is_number(value))
            raise DataError(
                f"X, column {name!r}",
                f"{bad!r:.60}",
                "numbers",
                "Encode it before, as by sklearn.preprocessing.OneHotEncoder in a pipeline, or "
                "drop the column",
            ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
