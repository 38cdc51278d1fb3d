"""Classification by multiple kernel learning, with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from mkldist.arrays import Floats, Ints
from mkldist.errors import SpecError
from mkldist.estimators.class_labels import kept_rows, one_against_rest, row_weights
from mkldist.estimators.classification import KernelClassifier
from mkldist.estimators.method_settings import check_shares_weights, method_settings, with_penalty
from mkldist.in_memory.solve import known_method
from mkldist.target import Target


class _IfCalibrated:
    """A method that only estimators with `calibration` have.

    :func:`sklearn.utils.metaestimators.available_if` does the same, but hides the reason in the
    cause of its error.

    Parameters
    ----------
    method : callable
        The method as a function, as which the class shows it.
    """

    def __init__(self, method: Callable[[Any, Any], Floats]) -> None:
        self._method, self.__doc__ = method, method.__doc__

    def __get__(self, estimator: MKLClassifier | None, owner: type) -> Any:
        if estimator is None:
            return self._method
        if estimator.calibration is None:
            raise AttributeError(
                "predict_proba: found calibration=None, so that decision values have no "
                "probabilities; expected 'sigmoid' or 'isotonic'. Make the estimator with "
                "calibration='sigmoid' and fit it again, or call decision_function."
            )
        return MethodType(self._method, estimator)


class MKLClassifier(KernelClassifier):
    """Classifier on a weighted sum of kernels, whose weights it learns.

    With the default method, ``level``, it minimises

        C sum_i w_i max(0, 1 - y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||)^2,   f = sum_m f_m,

    over functions f_m of the kernels, and reports how far its solution is from the optimum.  The
    row weights w_i are 1, or ``sample_weight`` times ``class_weight``.

    `C` is that of :class:`sklearn.svm.SVC`.  By default every kernel is scaled to variance 1 in
    feature space, so that its values do not depend on the number of rows, and neither does what a
    value of `C` means.  With ``normalisation="trace"``, as in most papers, kernels have values near
    1/n, and `C` has to grow with n.

    Of k > 2 classes, each is learnt against the rest.

    Parameters
    ----------
    method : str
        Method for two classes, see ``mkldist list methods``.
    C : float
        The method's `C`: of most methods the weight of the losses, of spicymkl and elastmkl the
        strength of the regulariser.
    kernels : str or list
        ``"default"``: Gaussians of four widths and a linear kernel on all features, and, up to a
        hundred features, a Gaussian on each.  Or the name of a paper's family, such as
        ``"xu2008"``; or a list of kernels, such as ``mkldist.kernels.Gaussian(width=[0.5, 1, 2],
        features="each")``, and of dictionaries with the keys of ``[[banks.kernels]]``.  Gram
        matrices of your own are read by a function of row numbers, see the second example.
    normalisation : str or list of str
        As in a sweep file: ``"variance"``, ``"trace"``, ``"cosine"``, ``"centre"``, ``"none"``,
        or several in order; fitted on the training rows.
    impute : {"median", "mean", "most_frequent"}, transformer or None
        What replaces missing values, fitted on the training rows; None refuses them.  A column
        without any value is refused, unless a transformer of yours fills it.
    scale : {"zscore", "minmax"}, transformer or None
        Scaling of features, fitted on the training rows.  Sparse `X` needs None, and kernels that
        are Gaussian, polynomial or linear; it stays sparse.
    tol : float
        Relative duality gap at which to stop.
    class_weight : dict, "balanced" or None
        Weights of classes.  They multiply `C`, and so does ``sample_weight``; rows of weight zero
        are left out.  Imputation, scaling and normalisation count every other row once.
    shared_weights : bool
        True if more than two classes are to share kernel weights, for methods that can.
    calibration : {"sigmoid", "isotonic"} or None
        Calibration of ``predict_proba`` by :class:`sklearn.calibration.CalibratedClassifierCV` in
        five folds, which fits six more times.
    method_params : dict, optional
        Other parameters of the method by name, such as ``{"max_iter": 100}``.
    groups : dict of str to list, optional
        Names for groups of features, which `kernels` may use.
    views : dict of str to list, optional
        Views: blocks of columns of `X` by name, their columns by number, by name for a DataFrame,
        or as a slice.  ``features`` of a kernel may name a view, and ``"views"`` is each of them.
        The default kernels are then those of each view, not of all features together.
    missing_views : {"zero", "impute", "error"}
        What holds for rows without any value of a view: every kernel that uses it is zero between
        them and all rows, as in a sweep; its features are imputed like single missing values; or
        such rows are refused.
    texts : list of str, optional
        Columns of a DataFrame `X` that are texts.  Kernels such as ``mkldist.kernels.Spectrum``
        name them by `features`; ``"default"`` has substrings of one to three letters of each.
        Views may name them too: a row without a text is refused unless `missing_views` is
        ``"zero"`` for a view of its column.
    backend : str
        As for :class:`mkldist.KernelBank`.
    random_state : int
        Seed of random feature subsets and random widths.
    verbose : bool or int
        True prints the size of the bank, the bounds of the solver about once a second, and how it
        ended; 2 prints the bounds of every iteration.

    Attributes
    ----------
    classes_ : (k,) array
        The classes; of two, the second has positive decision values.
    kernel_weights_ : DataFrame
        Function, width, degree, offset, features, name and weight of every kernel; with the column
        ``class`` where classes have weights of their own.
    objective_ : float
        Value of the objective, the sum over classes.
    gap_ : float
        Relative duality gap, the largest of the classes.
    n_iter_ : int
        Outer iterations, the most of the classes.
    stop_reason_ : str
        ``"converged"``, or why a solver stopped before.
    intercept_ : float or (k,) array
        Constant term of the decision function.
    solutions_ : tuple of Solution
        The solutions with their bounds, one for each problem that was solved.
    preparation_ : Pipeline
        Fitted imputer and scaler.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    M kernels on n rows take ``4 M n^2`` bytes, and time grows with both at least as fast: each
    iteration reads many of them, or trains a machine on n rows.  The default kernels of 50 features
    are 55, which take 2 GB on 3,000 rows.  There, four Gaussians on all features took a tenth of
    the time, and ``tol=0.05`` a fifth.  So fewer `kernels` and a larger `tol` make a fit cheaper.
    ``backend="factors"`` is for kernels that memory does not hold: its own grows with n alone.
    Each of k > 2 classes is a fit of its own, unless `shared_weights` is set, and `calibration`
    adds six.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(cross_val_score(MKLClassifier(), X, y).mean() > 0.93)
    True

    Gram matrices (M, n, n) over all rows, those to predict among them: `X` is the numbers of rows.

    >>> import numpy as np
    >>> from mkldist.kernels import Custom
    >>> grams = np.array([X @ X.T, (1.0 + X @ X.T) ** 2])
    >>> def given(left, right, gram):
    ...     return grams[gram][np.ix_(left[:, 0].astype(int), right[:, 0].astype(int))]
    >>> model = MKLClassifier(kernels=[Custom(given, {"gram": [0, 1]})], impute=None, scale=None)
    >>> bool(cross_val_score(model, np.arange(len(y))[:, None], y).mean() > 0.93)
    True
    """

    def __init__(
        self,
        method: str = "level",
        *,
        C: float = 1.0,
        kernels: Any = "default",
        normalisation: Any = "variance",
        impute: Any = "median",
        scale: Any = "zscore",
        tol: float = 0.01,
        class_weight: Any = None,
        shared_weights: bool = False,
        calibration: str | None = None,
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
        self.C = C
        self.kernels = kernels
        self.normalisation = normalisation
        self.impute = impute
        self.scale = scale
        self.tol = tol
        self.class_weight = class_weight
        self.shared_weights = shared_weights
        self.calibration = calibration
        self.method_params = method_params
        self.groups = groups
        self.views = views
        self.missing_views = missing_views
        self.texts = texts
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and a decision function.

        Parameters
        ----------
        X : (n, d) array-like, sparse array or DataFrame
            Training rows.
        y : (n,) array-like
            Labels of any type, of two classes or more.
        sample_weight : (n,) array-like, optional
            Weights of the rows, which multiply `C`.

        Raises
        ------
        ValueError
            For rows, labels, weights or parameters that cannot be used.  Errors of
            ``mkldist.errors`` are among them.

        Warns
        -----
        mkldist.errors.ConvergenceWarning
            If a solver stops before it reaches the tolerance.
        """
        if self.calibration not in (None, "sigmoid", "isotonic"):
            found = f"{self.calibration!r:.60}"
            raise SpecError("calibration", found, "'sigmoid', 'isotonic' or None")
        settings = method_settings(self.method, Target.CLASSES, self.tol, self.method_params)
        settings = with_penalty(known_method(self.method), self.C, settings)
        rows, y = self._labelled_rows(X, y)
        weights = row_weights(rows.numbers, y, sample_weight, self.class_weight)
        kept = kept_rows(weights, len(rows))
        numbers = self._learn_classes(y[kept])
        if self.shared_weights and len(self.classes_) > 2:
            check_shares_weights(self.method)
        problems = one_against_rest(numbers, len(self.classes_), shared=self.shared_weights)
        of_rows = None if weights is None else weights[kept]
        self._fit_problems(rows.where(kept), problems, settings, weights=of_rows)
        if self.calibration is not None:
            own = None if sample_weight is None else np.asarray(sample_weight)[kept]
            self._calibrate(_safe_indexing(X, np.flatnonzero(kept)), numbers, own)
        return self

    def _calibrate(self, X: Any, numbers: Ints, sample_weight: Any) -> None:
        """Learn the probabilities from values of decision functions of other folds.

        The classes go by their numbers, for scikit-learn fits some of the folds so and some by
        their names, which the keys of `class_weight` have to fit.
        """
        weights = self.class_weight
        if isinstance(weights, Mapping):
            names = self.classes_.tolist()
            weights = {k: weights[name] for k, name in enumerate(names) if name in weights}
        uncalibrated = clone(self).set_params(calibration=None, class_weight=weights or None)
        self._calibrated = CalibratedClassifierCV(
            uncalibrated, method=self.calibration, ensemble=False
        ).fit(X, numbers, sample_weight=sample_weight)

    @_IfCalibrated
    def predict_proba(self, X: Any) -> Floats:
        """Return calibrated probabilities of the classes, (t, k); needs `calibration`.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        """
        check_is_fitted(self)
        probabilities: Floats = self._calibrated.predict_proba(X)
        return probabilities
