"""Regression by multiple kernel learning, with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from mkldist.arrays import Floats
from mkldist.estimators.base import KernelEstimator
from mkldist.estimators.method_settings import method_settings, positive, regularised
from mkldist.in_memory.solve import known_method
from mkldist.models.outcome import Outcome
from mkldist.target import Target


class MKLRegressor(RegressorMixin, KernelEstimator):  # type: ignore[misc]
    """Regression on a weighted sum of kernels, whose weights it learns.

    With the default method, ``primalmkl``, it minimises

        1/2 sum_i (y_i - f(x_i) - b)^2 + alpha/2 (sum_m ||f_m||)^2,   f = sum_m f_m,

    over functions f_m of the kernels, and reports how far its solution is from the optimum.  The
    values y are scaled to mean 0 and standard deviation 1 before, so that `alpha` does not depend
    on their units; predictions are in the units of the data, the objective is not.

    Parameters
    ----------
    method : str
        Method for real values: primalmkl, spicymkl or elastmkl.
    alpha : float
        Strength of the regulariser: ``lam`` of primalmkl, ``C`` of spicymkl and elastmkl.
    kernels, normalisation, impute, scale, tol, groups, views, missing_views, texts
        As for :class:`mkldist.MKLClassifier`.
    backend, random_state, verbose
        As for :class:`mkldist.MKLClassifier`.
    method_params : dict, optional
        Parameters of the method by name, such as ``{"loss": "epsilon-squared"}``.
        Without a ``loss`` it is the squared one.

    Attributes
    ----------
    kernel_weights_ : DataFrame
        Function, width, degree, offset, features, name and weight of every kernel.
    objective_, gap_, n_iter_, stop_reason_, solutions_, preparation_
        As for :class:`mkldist.MKLClassifier`, the solution in scaled values.
    intercept_ : float
        Constant term of the predictions.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(150, random_state=0)
    >>> bool(MKLRegressor().fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.85)
    True
    """

    def __init__(
        self,
        method: str = "primalmkl",
        *,
        alpha: float = 1.0,
        kernels: Any = "default",
        normalisation: Any = "variance",
        impute: Any = "median",
        scale: Any = "zscore",
        tol: float = 0.01,
        method_params: Mapping[str, Any] | None = None,
        groups: Mapping[str, Sequence[int | str]] | None = None,
        views: Mapping[str, Any] | None = None,
        missing_views: str = "zero",
        texts: Sequence[str] | None = None,
        backend: str = "auto",
        random_state: int = 0,
        verbose: bool | int = False,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.kernels = kernels
        self.normalisation = normalisation
        self.impute = impute
        self.scale = scale
        self.tol = tol
        self.method_params = method_params
        self.groups = groups
        self.views = views
        self.missing_views = missing_views
        self.texts = texts
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Learn kernel weights and a function.

        Parameters
        ----------
        X : (n, d) array-like, sparse array or DataFrame
            Training rows.
        y : (n,) array-like
            Values.

        Raises
        ------
        ValueError
            For rows, values or parameters that cannot be used.  Errors of ``mkldist.errors`` are
            among them.

        Warns
        -----
        mkldist.errors.ConvergenceWarning
            If the solver stops before it reaches the tolerance.
        """
        settings = method_settings(self.method, Target.VALUES, self.tol, self.method_params)
        settings = regularised(known_method(self.method), positive("alpha", self.alpha), settings)
        rows, y = self._labelled_rows(X, y, y_numeric=True)
        values = np.asarray(y, dtype=np.float64)
        constant = bool((values == values[0]).all())
        centre = float(values[0] if constant else values.mean())
        spread = 1.0 if constant else float(values.std())
        self._fit_problems(rows, [(values - centre) / spread], settings)
        self._kept = self._kept.in_units(centre, spread)
        return self

    def _outcome(self) -> Outcome:
        return Outcome(None)

    def predict(self, X: Any) -> Floats:
        """Return the values of rows.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        """
        return self._values(X)[:, 0]
