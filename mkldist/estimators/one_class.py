"""One-class learning on several kernels, with the interface of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin

from mkldist.arrays import Floats
from mkldist.counted import counted
from mkldist.estimators.base import KernelEstimator
from mkldist.estimators.method_settings import method_settings, positive, regularised
from mkldist.in_memory.solve import known_method
from mkldist.models.outcome import Outcome
from mkldist.target import Target

ROUNDING = 1e-9  # of the largest coefficient


class OneClassMKL(OutlierMixin, KernelEstimator):  # type: ignore[misc]
    """Outlier detection on a weighted sum of kernels, whose weights it learns.

    With the default method, ``primalmkl``, it minimises

        1/2 { alpha (sum_m ||f_m||)^2 + 1/n sum_i max(0, rho - f(x_i))^2 } - rho,

    ``f = sum_m f_m``, and rows with ``f(x) < rho`` are outliers.  With a larger `alpha` more of the
    training rows are: about one in ten at the default.

    Parameters
    ----------
    method : str
        Method for one class.
    alpha : float
        Strength of the regulariser, ``lam / n`` of primalmkl.
    kernels, normalisation, impute, scale, tol, groups, views, missing_views, texts
        As for :class:`mkldist.MKLClassifier`.  The default kernels are its Gaussians on all
        features alone: a linear kernel tells no inner point from an outer one.
    backend, random_state, verbose
        As for :class:`mkldist.MKLClassifier`.
    method_params : dict, optional
        Other parameters of the method by name, such as ``{"max_iter": 100}``.

    Attributes
    ----------
    kernel_weights_, objective_, gap_, n_iter_, stop_reason_, solutions_, preparation_
        As for :class:`mkldist.MKLClassifier`.
    intercept_ : float
        ``-rho``.
    offset_ : float
        ``rho``, by which :meth:`score_samples` exceeds the decision function.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> OneClassMKL().fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        method: str = "primalmkl",
        *,
        alpha: float = 0.01,
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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Describe the rows.

        Parameters
        ----------
        X : (n, d) array-like, sparse array or DataFrame
            Training rows, most of which are no outliers.
        y : object
            Ignored.

        Raises
        ------
        ValueError
            For rows or parameters that cannot be used.  Errors of ``mkldist.errors`` are among
            them.

        Warns
        -----
        mkldist.errors.ConvergenceWarning
            If the solver stops before it reaches the tolerance.
        UserWarning
            If all training rows are outliers, since kernels are zero there or alpha is large.
        """
        settings = method_settings(self.method, Target.ONE_CLASS, self.tol, self.method_params)
        rows = self._rows(X)
        n = len(rows)
        settings = regularised(
            known_method(self.method), n * positive("alpha", self.alpha), settings
        )
        self._fit_problems(rows, [np.ones(n)], settings)
        self._kept = self._kept.in_units(0.0, n)
        self.objective_ *= n
        self.offset_ = -float(self._kept.bias[0])
        self._warn_if_all_outside(self.solutions_[0].coefficients)
        return self

    def _warn_if_all_outside(self, coefficients: Floats) -> None:
        """Warn of a description that leaves all training rows outside.

        Parameters
        ----------
        coefficients : (n,) float64
            ``max(0, rho - f(x_i)) / alpha`` up to a factor, above zero for outliers; all zero where
            that of ones is, since the kernels are.
        """
        if not coefficients.any():
            reason = (
                "the kernels are zero on them, or add up to zero as centred ones do. Leave out "
                "constant columns, and use kernels such as Gaussians that are not centred"
            )
        elif (coefficients > ROUNDING * coefficients.max()).all():
            reason = f"alpha={self.alpha:g} is too large. Lower alpha"
        else:
            return
        rows = counted(len(coefficients), "training row")
        warnings.warn(f"OneClassMKL: {rows}, all outliers: {reason}", stacklevel=3)

    def _outcome(self) -> Outcome:
        return Outcome(np.array([-1, 1]))

    _linear_by_default = False

    def decision_function(self, X: Any) -> Floats:
        """Return decision values (t,), negative for outliers.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        """
        return self._values(X)[:, 0]

    def score_samples(self, X: Any) -> Floats:
        """Return f(x) of rows, the decision function plus ``offset_``.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> npt.NDArray[np.intp]:
        """Return 1 for rows that are described, -1 for outliers.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)
