"""Estimators with the interface of scikit-learn, on banks of kernels."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from types import MethodType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.utils import _safe_indexing, check_array, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from mkldist.arrays import Floats, Ints
from mkldist.counted import counted
from mkldist.data.dataset import View, absent_of
from mkldist.data.source_columns import SourceColumns
from mkldist.data.sparse_features import as_sparse, check_sparse
from mkldist.data.texts import TextColumns, TextView
from mkldist.errors import DataError, SpecError, nearest
from mkldist.fit.api import known_method, say, solve, verbosity
from mkldist.fit.bank import BANKS, BankRequest, KernelBank, check_groups
from mkldist.fit.decision import Expansion
from mkldist.fit.inputs import (
    Rows,
    check_given,
    check_lacking,
    check_numbers,
    check_texts,
    column_views,
    divided,
    divided_views,
    text_names,
)
from mkldist.fit.model import LabelCoding, Model
from mkldist.fit.preprocess import (
    check_fillable,
    encoded,
    exported_preparation,
    kept_rows,
    one_against_rest,
    preparation,
    row_weights,
)
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.families import NAMED_FAMILIES
from mkldist.kernels.graph import graph_laplacian, graph_spec
from mkldist.kernels.precomputed import Precomputed
from mkldist.kernels.words import Gaussian, Kernel, Linear, Spectrum
from mkldist.methods.registry import METHODS, methods_for
from mkldist.scores import predicted_classes
from mkldist.solvers.base import Method, Solution
from mkldist.solvers.outcome import StopReason
from mkldist.solvers.proximity import proximity_of
from mkldist.solvers.refusals import LEARNS_CLASSES_APART, ProblemFacts, one_of
from mkldist.solvers.targets import losses_by_target
from mkldist.solvers.validation import validate
from mkldist.spec.kernel_entries import PRECOMPUTED
from mkldist.target import LEARNT, Target

RELATIVE_WIDTHS = (0.25, 0.5, 1.0, 2.0)  # times the root of the number of features
LENGTHS = (1, 2, 3)  # of substrings of texts
MOST_SINGLE_FEATURES = 100  # with more, no kernels on single features

OWN_GRAMS = (
    "Give the numbers of rows as X, and a kernel of your own that reads Gram matrices at them, as "
    "the class shows; or call mkldist.KernelBank.from_grams and mkldist.solve"
)


def refuse_grams(kernels: Any) -> None:
    """Refuse Gram matrices among kernels: scikit-learn divides rows, and knows no matrices.

    Raises
    ------
    mkldist.errors.SpecError
        Saying how an estimator uses them all the same; for what is no list, too.
    """
    shape = getattr(kernels, "shape", None)
    if shape is None and kernels is not None and not isinstance(kernels, Iterable):
        expected = "a list of kernels, or the name of a family"
        raise SpecError("kernels", f"{kernels!r:.60}", expected)
    for kernel in [kernels] if shape is not None else list(kernels or ()):
        if isinstance(kernel, Precomputed) or hasattr(kernel, "shape"):
            found = "Precomputed" if isinstance(kernel, Precomputed) else "an array"
            found += " in an estimator, whose rows scikit-learn divides"
            raise SpecError("kernels", found, "kernels of features", OWN_GRAMS)


def gaussians(n_features: int, features: str = "all", unit: float = 1.0) -> Gaussian:
    """Return Gaussians of four widths on some features together, by default on all.

    Between points of d features of standard deviation 1, squared distances are 2d on average.  The
    widths are therefore multiples of the root of d.

    Parameters
    ----------
    n_features : int
        Number d of these features.
    features : str
        Their word or the name of their group.
    unit : float
        Their standard deviation, the root of the mean of their variances.

    Examples
    --------
    >>> gaussians(4)
    Gaussian(width=(0.5, 1.0, 2.0, 4.0), features='all')
    """
    root = unit * math.sqrt(n_features)
    return Gaussian(width=tuple(share * root for share in RELATIVE_WIDTHS), features=features)


def default_kernels(
    n_features: int,
    views: Mapping[str, int] | None = None,
    unit: float = 1.0,
    *,
    linear: bool = True,
    texts: bool = False,
) -> list[Kernel]:
    """Return Gaussians and a linear kernel on all features, or on each view, and single Gaussians.

    Columns of texts have spectrum kernels of short substrings.

    Parameters
    ----------
    n_features : int
        Number d of features; above a hundred there is none on single features.
    views : mapping of str to int, optional
        Numbers of the features of views.
    unit : float
        As for :func:`gaussians`.
    linear : bool
        False for the Gaussians on several features alone.
    texts : bool
        True if there are columns of texts.
    """
    found: list[Kernel] = [Spectrum(length=LENGTHS, features="each")] if texts else []
    for name, count in (views or ({"all": n_features} if n_features else {})).items():
        found.append(gaussians(count, name, unit))
        if linear:
            found.append(Linear(features=name))
    if not linear or not 0 < n_features <= MOST_SINGLE_FEATURES:
        return found
    return [*found, Gaussian(width=unit, features="each")]


def unit_of(points: Any) -> float:
    """Return the root of the mean of the variances of sparse features (n, d); 1 if all are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> unit_of(csr_array(np.array([[2.0, 0.0], [0.0, 2.0]])))
    1.0
    """
    means = points.mean(axis=0)
    variance = float((points.multiply(points).mean(axis=0) - means * means).mean())
    return math.sqrt(variance) if variance > 0.0 else 1.0


def method_settings(
    name: str, target: Target, tol: float, params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the parameters with which :func:`mkldist.solve` is called.

    Where the method has several losses and none is named, it gets the first that learns `target`,
    its default one if that does.

    Parameters
    ----------
    name : str
        The method.
    target : Target
        What the estimator learns.
    tol : float
        Relative duality gap.
    params : mapping, optional
        The user's parameters, which may also set another tolerance.

    Raises
    ------
    mkldist.errors.SpecError
        For an unknown method, one that learns something else, and parameters that are no mapping.
    """
    method = known_method(name)
    losses = losses_by_target(method.params)
    if target not in losses:
        able = [other for other, one in METHODS.items() if target in losses_by_target(one.params)]
        learnt = " or ".join(LEARNT[one] for one in losses)
        found = f"{name!r}, which learns {learnt}"
        raise SpecError("method", found, f"a method that learns {LEARNT[target]}: {one_of(able)}")
    if params is not None and not isinstance(params, Mapping):
        found = f"{params!r:.60}"
        raise SpecError("method_params", found, 'parameters by name, such as {"max_iter": 100}')
    given = {"tol": tol, **(params or {})}
    if not given.keys() <= method.params.model_fields.keys():
        validate(method.params, name, given)  # which refuses them by name
    if losses[target] and "loss" not in given:
        default = method.params.model_fields["loss"].default
        given["loss"] = default if default in losses[target] else losses[target][0]
    return given


def check_shares_weights(name: str) -> None:
    """Refuse a method whose classes cannot share kernel weights.

    Raises
    ------
    mkldist.errors.SpecError
        Naming those whose classes can.
    """
    if METHODS[name].joint_classes:
        return
    able = methods_for(ProblemFacts(laplacian=False, shared_weights=True))
    found = f"True for {name}, which {LEARNS_CLASSES_APART.reason}"
    raise SpecError("shared_weights", found, f"False, or one of the methods {one_of(able)}")


def regularised(method: Method, alpha: float, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the strength of the regulariser, unless they name one.

    Parameters
    ----------
    method : Method
        A method whose first hyperparameter is that strength: ``lam``, ``gamma_a``, or the ``C`` of
        block norms.
    alpha : float
        The strength.
    settings : mapping
        The other parameters.
    """
    return {method.hyperparameters[0]: float(alpha), **settings}


def positive(name: str, value: Any, *, or_zero: bool = False) -> float:
    """Return a parameter that is to be a finite number above 0, or 0 too where that is allowed.

    Raises
    ------
    mkldist.errors.SpecError
        For text, such as ``"1"``, and other values; by the name of the parameter.
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if math.isfinite(number) and (number > 0.0 or (or_zero and number == 0.0)):
        return number
    finite = "finite " if math.isinf(number) else ""
    expected = f"a {finite}number {'of at least' if or_zero else 'above'} 0"
    raise SpecError(name, f"{value!r:.60}", expected, _without_quotes(value))


def _without_quotes(value: Any) -> str:
    """Return the remedy for the text of a number, "" for anything else."""
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return ""
    return f"Give the number {value.strip()} without quotes" if math.isfinite(number) else ""


def with_penalty(method: Method, C: float, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with C, which a method without C takes only at the default, 1.

    Parameters
    ----------
    method : Method
        The method.
    C : float
        The estimator's C; a C among the settings goes before it.
    settings : mapping
        The other parameters.

    Raises
    ------
    mkldist.errors.SpecError
        For a C that is no number above 0, and for another C than 1 where the method has none.
    """
    number = positive("C", C)
    if "C" in method.params.model_fields:
        return {"C": number, **settings}
    if number == 1.0:
        return dict(settings)
    own = ", ".join(method.hyperparameters) or "none of its own"
    raise SpecError(
        "C",
        f"{C!r} for {method.name}, which has no C",
        "C=1.0, its default",
        f"Set the parameters of {method.name} by method_params: {own}",
    )


class FitLines:
    """Lines about the bank and the problems of a fit; those of solvers are solvers' own.

    Parameters
    ----------
    name : str
        The estimator, with which each line begins.
    verbose : int
        0 prints nothing.
    """

    def __init__(self, name: str, verbose: int) -> None:
        self._name, self._verbose = name, verbose
        self._start = time.perf_counter()

    def begin(self, n_rows: int, n_features: int) -> None:
        """Tell what is going to be computed, which may take long."""
        rows, features = counted(n_rows, "row"), counted(n_features, "feature")
        self._print(f"makes the kernels of {rows} and {features}, or takes those it made before")

    def bank(self, bank: KernelBank) -> None:
        """Tell what the kernels take."""
        seconds = time.perf_counter() - self._start
        self._print(f"{repr(bank).strip('<>').removeprefix('KernelBank: ')}; {seconds:.1f} s")

    def each(
        self, problems: Sequence[Floats], classes: Sequence[Hashable] | None
    ) -> Iterator[Floats]:
        """Return the problems one by one, and tell which it is where there are several."""
        for number, problem in enumerate(problems):
            if len(problems) > 1 and classes is not None:
                place = f"{number + 1} of {len(problems)}"
                self._print(f"class {classes[number]!r} against the rest, {place}")
            yield problem

    def _print(self, words: str) -> None:
        if self._verbose:
            say(self._name, words)


@dataclass(frozen=True, eq=False)
class FittedKernels:
    """Solutions on a bank, apart from the bank.

    Parameters
    ----------
    solutions : tuple of Solution
        One for each problem: of two classes, of each class against the rest, or of all classes
        with shared weights.
    expansions : tuple of Expansion
        Their decision functions.
    table : DataFrame
        The kernels of the bank, one row a kernel.
    """

    solutions: tuple[Solution, ...]
    expansions: tuple[Expansion, ...]
    table: pd.DataFrame

    @classmethod
    def of(cls, bank: KernelBank, solutions: Sequence[Solution]) -> FittedKernels:
        """Return what is to be kept of the solutions on a bank."""
        without_state = tuple(replace(solution, state=None) for solution in solutions)
        return cls(without_state, tuple(map(bank.expansion, solutions)), bank.kernels)

    @property
    def objective(self) -> float:
        """Sum of the objectives."""
        return float(sum(solution.objective for solution in self.solutions))

    @property
    def gap(self) -> float:
        """Largest relative duality gap; NaN where a solution has none."""
        return float(np.max([solution.gap for solution in self.solutions]))

    @property
    def n_iter(self) -> int:
        """Largest number of outer iterations."""
        return max(solution.counters.outer_iterations for solution in self.solutions)

    @property
    def stop_reason(self) -> str:
        """``"converged"`` if all solvers did, otherwise the first other reason."""
        reasons = [str(solution.stop_reason) for solution in self.solutions]
        others = [reason for reason in reasons if reason != StopReason.CONVERGED]
        return [*others, str(StopReason.CONVERGED)][0]

    @property
    def bias(self) -> Floats:
        """Constant terms of the decision functions, (k,)."""
        return np.concatenate([expansion.bias for expansion in self.expansions])

    def in_units(self, centre: float, spread: float) -> FittedKernels:
        """Return the same with functions in other units: ``centre + spread * f``."""
        changed = tuple(expansion.in_units(centre, spread) for expansion in self.expansions)
        return replace(self, expansions=changed)

    def values(self, rows: Rows) -> Floats:
        """Return the decision functions at t rows, as (t, k)."""
        numbers, texts = rows.numbers, rows.text_values
        parts = [expansion.values(numbers, texts=texts) for expansion in self.expansions]
        return np.concatenate(parts, axis=1)

    def weights(self, classes: Sequence[Hashable] | None) -> pd.DataFrame:
        """Return the kernels with their weights, and the class where each has weights of its own.

        Parameters
        ----------
        classes : sequence, optional
            Classes that the solutions learn, where there is more than one solution.
        """
        if len(self.solutions) == 1 or classes is None:
            return self.table.assign(weight=self.solutions[0].kernel_weights)
        tables = []
        for name, solution in zip(classes, self.solutions, strict=True):
            table = self.table.assign(weight=solution.kernel_weights)
            table.insert(0, "class", [name] * len(table))
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def by_kernel(self, rows: Rows, classes: Sequence[Hashable] | None) -> pd.DataFrame:
        """Return the share of each active kernel in the decision functions, without the bias.

        Parameters
        ----------
        rows : Rows
            t rows.
        classes : sequence, optional
            The k classes where there are k functions, the upper level of the columns.

        Returns
        -------
        DataFrame
            t rows, and a column for each kernel of weight above zero, or pair of a class and one.
        """
        parts = []
        for expansion in self.expansions:
            names = self.table["name"].to_numpy()[expansion.index]
            shares = expansion.by_kernel(rows.numbers, rows.text_values)
            parts += [pd.DataFrame(shares[:, :, c], columns=names) for c in range(shares.shape[2])]
        if classes is None:
            return parts[0]
        return pd.concat(parts, axis=1, keys=list(classes), names=["class", "kernel"])


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
        return Model(
            SourceColumns.of_features(features),
            features,
            exported_preparation(self.preparation_, len(features)),
            tuple(self._kept.expansions),
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
        ).with_texts(texts)

    @property
    def _features(self) -> tuple[str, ...]:
        """Names of the features of numbers."""
        names = self._feature_names
        return tuple(f"x{j}" for j in range(self.n_features_in_)) if names is None else names

    def _outcome(self) -> LabelCoding:
        """Return the step from decision values to predictions; that of classes by default."""
        classes = self.classes_
        if not all(isinstance(one, str | int | float) for one in classes.tolist()):
            found = f"{classes.tolist()[0]!r:.60}"
            raise SpecError("classes", found, "numbers, text or truth values, for a file")
        order = tuple(self._precedence.tolist()) if len(classes) > 2 else ()
        return LabelCoding(classes, order, positive_at_zero=False)

    @property
    def intercept_(self) -> float | Floats:
        """Constant term of the decision function; (k,) for k functions."""
        check_is_fitted(self)
        bias = self._kept.bias
        return bias if self._function_names() is not None else float(bias[0])


class KernelClassifier(ClassifierMixin, KernelEstimator):  # type: ignore[misc]
    """Base of the classifiers: one decision function for two classes, one a class for more."""

    classes_: npt.NDArray[Any]
    _precedence: Ints

    def _learn_classes(self, y: npt.NDArray[Any]) -> Ints:
        """Keep the classes of labels and their precedence in ties; return the labels' numbers."""
        self.classes_, numbers = encoded(y)
        self._precedence = np.argsort(-np.bincount(numbers), kind="stable")
        return numbers

    def _function_names(self) -> Sequence[Hashable] | None:
        """Return the classes where there is a decision function for each."""
        names: list[Hashable] = self.classes_.tolist()
        return names if len(names) > 2 else None

    def _classes_of(self, values: Floats) -> npt.NDArray[Any]:
        """Return the classes that decision values (t, k) predict."""
        if values.shape[1] == 1:
            return self.classes_[(values[:, 0] > 0.0).astype(np.intp)]
        return self.classes_[predicted_classes(values.T, self._precedence)]

    def decision_function(self, X: Any) -> Floats:
        """Return decision values: (t,) for two classes, (t, k) for k.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        """
        values = self._values(X)
        return values if values.shape[1] > 1 else values[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row; a tie of several goes to the most frequent one.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        """
        return self._classes_of(self._values(X))


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

    def _outcome(self) -> LabelCoding:
        return LabelCoding(None)

    def predict(self, X: Any) -> Floats:
        """Return the values of rows.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        """
        return self._values(X)[:, 0]


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

    def _outcome(self) -> LabelCoding:
        return LabelCoding(np.array([-1, 1]))

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
