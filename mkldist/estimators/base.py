"""What the estimators share: preparation, the bank, the solvers, and the fitted attributes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from mkldist.arrays import Floats
from mkldist.data.source_columns import SourceColumns
from mkldist.errors import DataError, SpecError, nearest
from mkldist.estimators.bank_cache import BANKS, BankRequest
from mkldist.estimators.exported import exported_preparation
from mkldist.estimators.fitted import FittedKernels
from mkldist.estimators.kernel_choice import default_kernels
from mkldist.estimators.preparation import preparation
from mkldist.in_memory.solve import solve
from mkldist.kernels.families import NAMED_FAMILIES
from mkldist.kernels.graph import graph_laplacian, graph_spec
from mkldist.kernels.precomputed import Precomputed
from mkldist.kernels.words import Kernel
from mkldist.models.model import Model
from mkldist.models.outcome import Outcome


class KernelEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; each names its parameters itself, as scikit-learn asks."""

    method: str
    kernels: Any
    normalisation: Any
    impute: Any
    scale: Any
    groups: Mapping[str, Sequence[int | str]] | None
    backend: str
    random_state: int

    n_features_in_: int
    classes_: npt.NDArray[Any]
    _precedence: Any
    feature_names_in_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.impute not in (None, "none")
        return tags

    def _rows(self, X: Any, *, fitted: bool, **given: Any) -> Any:
        """Return features as float64, and labels where they are given, checked by scikit-learn."""
        finite: bool | str = "allow-nan" if self.impute not in (None, "none") else True
        return validate_data(
            self, X, reset=not fitted, dtype=np.float64, ensure_all_finite=finite, **given
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
        self.preparation_ = preparation(self.impute, self.scale).fit(X)
        points = self._prepared(X)
        names = getattr(self, "feature_names_in_", None)
        laplacian = None if graph is None else graph_laplacian(points, graph_spec(graph))
        with BANKS.bank(self._bank_request(), points, names) as bank:
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

    def _bank_request(self) -> BankRequest:
        seed = self.random_state
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            hint = "Random feature subsets depend on it"
            raise SpecError("random_state", f"{seed!r:.60}", "a whole number from 0", hint)
        return BankRequest(
            self._chosen_kernels(), self.normalisation, self.groups, self.backend, int(seed)
        )

    def _chosen_kernels(self) -> Any:
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
            return self._default_kernels()
        if self.kernels not in NAMED_FAMILIES:
            known = ["default", *NAMED_FAMILIES]
            expected = f"one of {', '.join(map(repr, known))}, or a list of kernels"
            hint = nearest(self.kernels, known)
            raise SpecError("kernels", f"{self.kernels!r}", expected, hint)
        return self.kernels

    def _default_kernels(self) -> list[Kernel]:
        """Return the kernels that ``"default"`` stands for."""
        return default_kernels(self.n_features_in_)

    def _prepared(self, X: Floats) -> Floats:
        """Return rows imputed and scaled, as kernels take them."""
        points = self.preparation_.transform(X)
        if np.isfinite(points).all():
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
        X : (t, d) array-like or DataFrame
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
        labels = {
            name: "all" if len(columns) == d else "+".join(columns)
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
                "gap": float(self.gap_),
                "stop_reason": self.stop_reason_,
            },
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
