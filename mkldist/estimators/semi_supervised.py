"""Classification from few labels, with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mkldist.counted import counted
from mkldist.errors import DataError, SpecError
from mkldist.estimators.class_labels import one_against_rest
from mkldist.estimators.classification import KernelClassifier
from mkldist.estimators.method_settings import method_settings, positive, regularised
from mkldist.in_memory.solve import known_method
from mkldist.target import Target

NEIGHBOURS = 10  # of each row in the graph, as in a sweep


class SemiSupervisedMKLClassifier(KernelClassifier):
    """Classifier on a weighted sum of kernels that learns from rows without labels too.

    With the default method, ``lapmkl``, its functions are smooth on a graph that joins neighbouring
    rows, labelled or not; ``mkldist list methods lapmkl`` states the objective.

    As for other semi-supervised estimators of scikit-learn, the label -1 marks a row without a
    label.  Of k > 2 classes, each is learnt against the rest.

    Parameters
    ----------
    method : str
        Semi-supervised method: lapmkl, mklsvm, lapsvm, lsvm, glks, laprls or rls.
    gamma_a : float
        Strength of the norm of the functions.
    gamma_i : float
        Strength of the smoothness on the graph; without effect for rls, which uses no graph.
    graph : dict, optional
        The keys of ``[graph]`` in a sweep file, such as ``{"neighbours": 6}``.  The graph is made
        of the features after imputation and scaling.
    kernels, normalisation, impute, scale, tol, groups, views, missing_views, texts
        As for :class:`mkldist.MKLClassifier`; fitted on labelled and unlabelled rows.
    backend, random_state, verbose
        As for :class:`mkldist.MKLClassifier`.
    method_params : dict, optional
        Other parameters of the method by name, such as ``{"max_iter": 100}``.

    Attributes
    ----------
    classes_ : (k,) array
        The classes; of two, the second has positive decision values.
    kernel_weights_, objective_, gap_, n_iter_, stop_reason_, solutions_, preparation_
        As for :class:`mkldist.MKLClassifier`.
    transduction_ : (n,) array
        Classes of the training rows: the labels given, and those predicted for the others.
    intercept_ : float or (k,) array
        Constant term of the decision function.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(160, noise=0.08, random_state=0)
    >>> few = np.where(np.arange(160) < 10, y, -1)
    >>> bool(SemiSupervisedMKLClassifier().fit(X, few).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        method: str = "lapmkl",
        *,
        gamma_a: float = 0.01,
        gamma_i: float = 0.01,
        graph: Mapping[str, Any] | None = None,
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
        self.gamma_a = gamma_a
        self.gamma_i = gamma_i
        self.graph = graph
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

    _may_lack_labels = True

    def fit(self, X: Any, y: Any) -> Self:
        """Learn kernel weights and a decision function.

        Parameters
        ----------
        X : (n, d) array-like, sparse array or DataFrame
            Training rows, labelled or not.
        y : (n,) array-like
            Labels of two classes or more, and -1 where there is none.

        Raises
        ------
        ValueError
            For rows, labels or parameters that cannot be used.  Errors of ``mkldist.errors`` are
            among them.

        Warns
        -----
        mkldist.errors.ConvergenceWarning
            If a solver stops before it reaches the tolerance.
        """
        settings = method_settings(self.method, Target.PARTIAL, self.tol, self.method_params)
        method = known_method(self.method)
        settings = regularised(method, positive("gamma_a", self.gamma_a), settings)
        if "gamma_i" in method.params.model_fields:
            settings = {"gamma_i": positive("gamma_i", self.gamma_i, or_zero=True), **settings}
        rows, y = self._labelled_rows(X, y)
        _check_unlabelled(y)
        labelled = np.array([label != -1 for label in y.tolist()])
        _check_labelled(y[labelled], n_rows=len(y))
        numbers = self._learn_classes(y[labelled])
        problems = []
        for signs in one_against_rest(numbers, len(self.classes_), shared=False):
            problem = np.zeros(len(y))
            problem[labelled] = signs
            problems.append(problem)
        graph = self._graph(len(rows)) if method.needs_laplacian else None
        self._fit_problems(rows, problems, settings, graph=graph)
        self.transduction_ = self._classes_of(self._kept.values(self._prepared(rows)))
        self.transduction_[labelled] = y[labelled]
        return self

    def _graph(self, n: int) -> Mapping[str, Any]:
        """Return the keys of the graph; by default ten neighbours, or all of fewer rows."""
        given = self.graph or {}
        if not isinstance(given, Mapping):
            raise SpecError("graph", f"{given!r:.60}", 'a dict, such as {"neighbours": 6}')
        free = given.get("kind", "knn") == "knn" and "neighbours" not in given
        return {**given, "neighbours": max(1, min(NEIGHBOURS, n - 1))} if free else given


def _check_unlabelled(labels: npt.NDArray[Any]) -> None:
    """Refuse the text "-1", which numpy makes of -1 among texts, as scikit-learn does.

    Raises
    ------
    mkldist.errors.DataError
        Saying how texts and -1 go together.
    """
    texts = [number for number, label in enumerate(labels.tolist()) if label == "-1"]
    if texts:
        raise DataError(
            f"y[{texts[0]}]",
            f"the text '-1' as the label of {counted(len(texts), 'row')}",
            "the number -1 for unlabelled rows",
            "Make y by np.array([...], dtype=object), in which -1 stays a number among texts",
        )


def _check_labelled(labels: npt.NDArray[Any], n_rows: int) -> None:
    """Refuse labels of fewer than two classes: -1, for no label, is often meant as a class.

    Raises
    ------
    mkldist.errors.DataError
        Saying what -1 means.
    """
    classes = list(dict.fromkeys(labels.tolist()))
    if len(classes) < 2:
        n_without = n_rows - len(labels)
        found = f"one class, {classes[0]!r}" if classes else "no labels"
        raise DataError(
            "y",
            f"{found}, and {counted(n_without, 'unlabelled row')}",
            "two classes or more, and -1 for unlabelled rows alone",
            "Write the classes as other labels, such as 0 and 1" if classes and n_without else "",
        )
