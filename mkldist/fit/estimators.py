"""Estimators with the interface of scikit-learn, and the banks of kernels that they share."""

from __future__ import annotations

import math
import multiprocessing
import time
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from mkldist.calibration import Calibrated, fit_curves
from mkldist.core.arrays import LEARNT, Array, Floats, Ints, Target
from mkldist.core.checksums import array_id, content_id
from mkldist.core.memory import GIB, physical_memory, row_cache_bytes
from mkldist.core.wording import pluralize
from mkldist.data.checks import (
    as_sparse,
    check_sparse,
    check_values,
    common_rows,
    numbered_features,
)
from mkldist.data.dataset import SourceColumns, TextColumns, absent_of
from mkldist.data.tables import pandas_frame
from mkldist.errors import DataError, SpecError, nearest
from mkldist.fit.decision import Contributions, LabelCoding
from mkldist.fit.inputs import Features, check_texts, divided, in_float64, refuse_twice, text_names
from mkldist.fit.preprocess import (
    DistinctRows,
    categories_of,
    check_labels,
    check_views,
    column_views,
    encoded,
    in_numbers,
    indicators,
    one_against_rest,
    preparation,
    sample_weights,
)
from mkldist.kernel_functions.bases import is_sparse
from mkldist.kernel_functions.custom import CustomFunction
from mkldist.kernels import Gaussian, Spectrum
from mkldist.kernels.families import LENGTHS, NAMED_FAMILIES, RELATIVE_WIDTHS, kernel_choice
from mkldist.kernels.graph import graph_laplacian, graph_spec
from mkldist.kernels.objects import Precomputed
from mkldist.methods.registry import METHODS, methods_for
from mkldist.scores import constant_answers
from mkldist.solvers.base import (
    LEARNS_CLASSES_APART,
    PATH_OF_C,
    Method,
    ProblemFacts,
    losses_by_target,
    one_of,
    proximity_of,
)
from mkldist.solvers.progress import StopReason
from mkldist.solvers.solver_params import check_names, validate
from mkldist.spec.banks import DEFAULT, PRECOMPUTED

if TYPE_CHECKING:
    from mkldist.fit.bank import KernelBank
    from mkldist.fit.model import Model

MOST_CACHED = GIB  # bytes of banks in memory by default,
CACHED_SHARE = 8  # and at most an eighth of this machine's
NEIGHBOURS = 10  # of each row in the graph, as in a sweep
FOLDS, FOLDS_OF_C = 5, 3  # of calibration, and that choose C; at most the rows of a class
_Folds = list[tuple[Ints, Ints]]  # training and held-out rows
_HeldOut = tuple[_Folds, Sequence[Floats]]
"""Training and held-out rows of folds, and the decision values (h, k) of the held-out ones."""
FOLDS_TOL = 3.0  # times tol
ROUNDING = 1e-9  # of the largest coefficient, and of scores
UNSCALED = (None, "none")
OF_METHOD = "method_params__"  # before the name of a parameter of the method, in searches
FILL_TEXTS = "Fill them, or name a view of this column in views: its kernels are zero there"
OWN_GRAMS = (
    "Give the numbers of rows as X, and a kernel of your own that reads Gram matrices at them, as "
    "the class shows; or call mkldist.KernelBank.from_grams and mkldist.solve"
)


class BankCache:
    """The banks that estimators used last, of limited size, for as long as there are estimators."""

    def __init__(self, limit: int | None = None) -> None:
        self._banks: dict[str, tuple[KernelBank, int]] = {}
        """Banks by content and their bytes, those used longest ago first."""
        self._users: set[object] = set()
        self.resize(limit)

    def __len__(self) -> int:
        return len(self._banks)

    @property
    def n_bytes(self) -> int:
        """Bytes that the banks take."""
        return sum(size for _, size in list(self._banks.values()))

    def serve(self, estimator: Any) -> None:
        """Count an estimator as a user: after the last one, nothing stays cached."""
        user = object()
        self._users.add(user)
        weakref.finalize(estimator, self._release, user)

    def _release(self, user: object) -> None:
        """Forget the banks after their last user, but in a process that joblib gives new users."""
        self._users.discard(user)
        if not self._users and multiprocessing.parent_process() is None:
            self.clear()

    def clear(self) -> None:
        """Forget all banks, also those that are lent."""
        self._banks = {}

    def resize(self, limit: int | None) -> None:
        """Set another limit, None for the default, and forget what exceeds it."""
        default = min(MOST_CACHED, physical_memory() // CACHED_SHARE)
        self.limit = default if limit is None else limit
        self._shrink()

    @contextmanager
    def bank(self, rows: Features, **settings: Any) -> Iterator[KernelBank]:
        """Lend :class:`mkldist.KernelBank` of rows; other threads make their own meanwhile."""
        from mkldist.fit.bank import KernelBank

        banks, key = self._banks, _bank_key(rows, **settings) if self.limit else ""
        bank, size = banks.pop(key, (None, 0))
        if bank is None:
            bank = KernelBank(rows, **settings)
            size = sum(a.nbytes for a in rows.arrays) + _size(bank)
        try:
            yield bank
        finally:
            if key:
                banks[key] = bank, size
            self._shrink()

    def _shrink(self) -> None:
        """Forget banks above the limit, then those used longest ago."""
        sizes = {key: size for key, (_, size) in list(self._banks.items())}
        total = sum(sizes.values())
        for key in sorted(sizes, key=lambda key: sizes[key] <= self.limit):
            if total > self.limit:
                total -= sizes[key]
                self._banks.pop(key, None)


def _bank_key(
    rows: Features, *, kernels: Any, normalisation: Any, groups: Any, views: Any, **others: Any
) -> str:
    """Return the name of a bank by its content."""
    from mkldist.fit.bank import normalisation_steps

    choice = kernel_choice(kernels)
    return content_id(
        points=array_id(*rows.arrays),
        names=list(rows.names) if rows.named else None,
        kernels=choice.model_dump(mode="json"),
        normalisation=normalisation_steps(normalisation),
        functions=[
            CustomFunction.named(name, f"kernels[{number}].function").identity
            for number, name in choice.imported.items()
        ],
        groups=_by_number_or_name(groups),
        views=_by_number_or_name(views),
        others=repr(sorted(others.items())),  # of which KernelBank refuses what it does not know
    )


def _by_number_or_name(blocks: Mapping[str, Sequence[int | str]]) -> dict[str, list[int | str]]:
    """Return columns of blocks as JSON tells them apart: 0 is a number, "0" a name."""
    return {
        name: [column if isinstance(column, str) else int(column) for column in columns]
        for name, columns in blocks.items()
    }


def _size(bank: KernelBank) -> int:
    """Return the bytes that a bank takes in memory."""
    from mkldist.bank.recomputed import RecomputedBank

    stored = bank.view.bank
    if isinstance(stored, RecomputedBank):
        return min(row_cache_bytes(None), stored.n_bytes)
    return stored.n_bytes


BANKS = BankCache()
"""The banks of this process."""


def set_bank_cache(n_bytes: int | None = None) -> ExitStack:
    """Bound the banks of kernels that the estimators of this process cache, or cache none.

    A fit on the same rows with the same kernels takes its bank from the cache, so that a search
    makes the bank of each split once.  The cache is empty when no estimator is left.

    Parameters
    ----------
    n_bytes : int, optional
        Bytes that cached banks may take; those used longest ago go first.  0 switches the cache
        off.  By default 1 GiB, or an eighth of this machine's memory if that is less.

    Returns
    -------
    context manager
        Restores the bound of before at the end of a ``with`` block.

    Examples
    --------
    >>> import mkldist
    >>> with mkldist.set_bank_cache(0):
    ...     model = mkldist.OneClassMKL().fit([[0.0], [1.0], [1.1], [1.2]])
    """
    whole = isinstance(n_bytes, int | np.integer) and not isinstance(n_bytes, bool)
    if n_bytes is not None and (not whole or n_bytes < 0):
        raise SpecError("n_bytes", f"{n_bytes!r:.60}", "a whole number of at least 0, or None")
    restoring = ExitStack()
    restoring.callback(BANKS.resize, BANKS.limit)
    BANKS.resize(n_bytes)
    return restoring


def _with_strength(
    method: Method, strength: float, settings: Mapping[str, Any], name: str = ""
) -> dict[str, Any]:
    """Return settings with the strength of the regulariser, unless they name one.

    A regulariser of the user that has its own strength takes only the default, 1.
    """
    name = name or method.hyperparameters[0]
    other, values = method.params.effective_with.get(name, ("", ()))
    if other and strength == 1.0:
        default = method.params.model_fields[other].default
        if settings.get(other, default) not in values:
            return dict(settings)
    return {name: strength, **settings}


def _warn_of_other_rows(**parts: Any) -> None:
    """Warn that rows are taken by their places, where indexes of pandas say something else."""
    try:
        common_rows("", parts)
    except DataError as error:
        warnings.warn(f"{error} Rows were taken by their places.", stacklevel=3)


def _group_numbers(groups: Any, n_rows: int) -> Ints:
    """Return the group of each row as a number."""
    found = np.asarray(groups)
    if found.shape != (n_rows,):
        raise DataError("groups", f"shape {found.shape}", f"a group of each of {n_rows} rows")
    numbers, _ = pd.factorize(found, sort=True)
    if len(missing := np.flatnonzero(numbers < 0)):
        hint = "Give such a row a group of its own, or leave it out"
        raise DataError("groups", f"none of row {missing[0]}", "a group of each row", hint)
    return numbers


def positive(name: str, value: Any, *, or_zero: bool = False) -> float:
    """Return a parameter that is to be a finite number above 0, or 0 too where that is allowed."""
    is_number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if is_number and (value > 0.0 or (or_zero and value == 0.0)):
        return float(value)
    expected = f"a finite number {'of at least' if or_zero else 'above'} 0"
    raise SpecError(name, f"{value!r:.60}", expected)


@dataclass(eq=False, repr=False)
class KernelEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators, with the parameters that all of them have."""

    method: str
    _: KW_ONLY
    kernels: Any = "default"
    normalisation: Any = "variance"
    impute: Any = "median"
    scale: Any = "zscore"
    tol: float = 0.01
    method_params: Mapping[str, Any] | None = None
    groups: Mapping[str, Sequence[int | str]] | None = None
    views: Mapping[str, Any] | None = None
    missing_views: str = "zero"
    texts: Sequence[str] | None = None
    backend: str = "auto"
    random_state: int = 0
    verbose: bool | int = False
    _calibrated: Calibrated | None = field(init=False, default=None)
    _labels: LabelCoding = field(init=False)

    _target = Target.CLASSES

    def __post_init__(self) -> None:
        BANKS.serve(self)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        BANKS.serve(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if `deep`, those of the method as ``method_params__NAME`` too."""
        found: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.method_params, Mapping):
            found |= {f"{OF_METHOD}{name}": value for name, value in self.method_params.items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of the method as ``method_params__NAME``.

        A search so varies them one by one: ``{"method_params__p": [1, 2]}``.
        """
        of_method = {name: params.pop(name) for name in [*params] if name.startswith(OF_METHOD)}
        super().set_params(**params)
        if of_method:
            from mkldist.fit.api import known_method

            own = {name.removeprefix(OF_METHOD): value for name, value in of_method.items()}
            check_names(known_method(self.method).params, self.method, own)
            self.method_params = {**(self.method_params or {}), **own}
        return self

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

    def _method_settings(self) -> tuple[Method, dict[str, Any]]:
        """Return the method, and the parameters with which :func:`mkldist.solve` is called.

        Where the method has several losses and none is named, it gets the first that learns the
        target of the estimator, its default one if that does.
        """
        from mkldist.fit.api import known_method

        method = known_method(self.method)
        losses, target = losses_by_target(method.params), self._target
        if target not in losses:
            able = [n for n, one in METHODS.items() if target in losses_by_target(one.params)]
            expected = f"a method that learns {LEARNT[target]}: {one_of(able)}"
            learnt = " or ".join(LEARNT[one] for one in losses)
            raise SpecError("method", f"{self.method!r}, which learns {learnt}", expected)
        params = {} if self.method_params is None else self.method_params
        if not isinstance(params, Mapping):
            expected = 'parameters by name, such as {"max_iter": 100}'
            raise SpecError("method_params", f"{params!r:.60}", expected)
        settings = {"tol": self.tol, **params}
        if not settings.keys() <= method.params.model_fields.keys():
            validate(method.params, method.name, settings)  # which refuses them by name
        if losses[target] and "loss" not in settings:
            default = method.params.model_fields["loss"].default
            settings["loss"] = default if default in losses[target] else losses[target][0]
        return method, settings

    def _checked(self, X: Any, *, fitted: bool = False, **labels: Any) -> tuple[Features, Any]:
        """Return rows of float64 and of texts, checked by scikit-learn, and labels if given."""
        if "y" in labels:
            check_labels(labels["y"], may_lack=self._target is Target.PARTIAL)
        for name in ("impute", "scale", "missing_views"):
            if isinstance(value := getattr(self, name), np.ndarray):
                raise SpecError(name, f"{value!r:.60}", "a word or None")
        X, of_texts, texts = pandas_frame(X), text_names(self.texts), None
        if isinstance(X, pd.DataFrame):
            refuse_twice(list(map(str, X.columns)), "X")
        unscaled = self.scale in UNSCALED
        if hasattr(X, "tocsr") and not unscaled:
            found = f"{self.scale!r:.60} for sparse X, which it would fill"
            hint = "Or call X.toarray(), or scale before by MaxAbsScaler in a pipeline"
            raise SpecError("scale", found, "None", hint)
        if not fitted:
            self._categories = categories_of(X, of_texts)
        if of_texts or self._categories:
            validate_data(self, X, reset=not fitted, skip_check_array=True)
            X, texts = divided(X, of_texts, "X")
        if self._categories:
            X = indicators(X, self._categories)
        X = in_numbers(X)
        checks = {
            "dtype": np.float64,
            "ensure_all_finite": "allow-nan" if self._may_lack else True,
            "accept_sparse": "csr" if unscaled and not of_texts else False,
            **labels,
        }
        if texts is None and not self._categories:
            found = validate_data(self, X, reset=not fitted, **checks)
            columns = getattr(self, "feature_names_in_", None)
        else:
            columns, check = X.columns, check_X_y if "y" in labels else check_array
            own = X if len(columns) else X.to_numpy(np.float64)
            found = check(own, ensure_min_features=0, **checks)
        numbers, y = found if "y" in labels else (found, None)
        names = tuple(columns if columns is not None else ())
        names = names or numbered_features(numbers.shape[1], "X", "x")
        return Features(numbers, names, columns is not None, texts=texts), y

    def _fit_problems(
        self,
        rows: Features,
        problems: Sequence[Floats],
        settings: Mapping[str, Any],
        *,
        units: tuple[float, float] = (0.0, 1.0),
        weights: Floats | None = None,
        graph: Mapping[str, Any] | None = None,
        choose: Callable[[KernelBank], Mapping[str, Any]] | None = None,
    ) -> None:
        """Prepare rows, make their bank, and solve problems on it.

        Decision functions become ``centre + spread * f``, with the `units` centre and spread.
        `graph` has the keys of ``[graph]``, for methods that use one.  `choose` returns settings
        that it chooses on the bank.
        """
        from mkldist.fit.api import say, solve, verbosity

        verbose, start = verbosity(self.verbose), time.perf_counter()

        def tell(words: str) -> None:
            if verbose:
                say(type(self).__name__, words)

        points = self._fit_preparation(rows)
        laplacian = None if graph is None else self._laplacian(points.points, graph)
        word = "row" if points.weights is None else "different row"
        size = f"{pluralize(points.n_points, word)} and {pluralize(len(points.names), 'feature')}"
        tell(f"makes the kernels of {size}, or takes those it made before")
        given: dict[str, Any] = {"weights": weights, "laplacian": laplacian, "verbose": verbose}
        classes, solutions = self._function_names, []
        with BANKS.bank(points, **self._bank_settings(points)) as bank:
            made = repr(bank).strip("<>").removeprefix("KernelBank: ")
            tell(f"{made}; {time.perf_counter() - start:.1f} s")
            if choose is not None:
                settings = {**settings, **choose(bank)}
            for number, y in enumerate(problems):
                if len(problems) > 1 and classes is not None:
                    place = f"{number + 1} of {len(problems)}"
                    tell(f"class {classes[number]!r} against the rest, {place}")
                solutions.append(solve(self.method, bank, y, **given, **settings))
            expansions = [bank.expansion(solution) for solution in solutions]
            self._table = bank.kernels
        self._expansions = tuple(one.in_units(*units) for one in expansions)
        self._settings = dict(settings)
        self.solutions_ = tuple(replace(solution, state=None) for solution in solutions)
        self.objective_ = float(sum(solution.objective for solution in solutions))
        self.gap_ = float(np.max([solution.gap for solution in solutions]))
        self.n_iter_ = max(solution.counters.outer_iterations for solution in solutions)
        reasons = [str(solution.stop_reason) for solution in solutions]
        others = [reason for reason in reasons if reason != StopReason.CONVERGED]
        self.stop_reason_ = [*others, str(StopReason.CONVERGED)][0]
        tables = [self._table.assign(weight=one.kernel_weights) for one in solutions]
        if len(tables) > 1 and classes is not None:
            for name, table in zip(classes, tables, strict=True):
                table.insert(0, "class", [name] * len(table))
        self.kernel_weights_ = pd.concat(tables, ignore_index=True)

    def _distinct(self, rows: Features, sample_weight: Any, *beside: Array) -> DistinctRows:
        """Return the rows to fit on: those of weight above zero, equal ones as one of their sum."""
        join = METHODS[self.method].weighs_points
        return DistinctRows.of(rows, sample_weight, beside, join=join)

    def _fit_preparation(self, rows: Features) -> Features:
        """Fit imputation and scaling on rows, and return these as kernels take them."""
        names = getattr(self, "feature_names_in_", None)
        self._views, self._text_views = column_views(
            self.views,
            self.missing_views,
            self.n_features_in_,
            None if names is None else tuple(names),
            () if rows.texts is None else rows.texts.names,
            self._categories,
        )
        self._features = rows.names  # those of numbers
        self._is_sparse = is_sparse(rows.points)
        self._ranges = None
        if not self._is_sparse:
            low, high = np.fmin.reduce(rows.points), np.fmax.reduce(rows.points)
            self._ranges = np.stack([low, high])
        if not self._is_sparse and len(rows.names):
            check_views(rows.points, self._views, fitting=True)
            if isinstance(self.impute, str) and self.impute != "none":
                check_values(rows.points, self._features, "median", "X")
        self.preparation_ = preparation(rows, self.impute, self.scale, self._views)
        return self._prepared(rows)

    def _prepared(self, rows: Features) -> Features:
        """Return rows imputed and scaled, as kernels take them."""
        if rows.texts is not None:
            zero = [view for view in self._text_views.values() if view.missing == "zero"]
            allowed = [column for view in zero for column in view.columns]
            check_texts(rows.texts, allowed, "X", FILL_TEXTS)
        X = rows.points
        if self._is_sparse:
            sparse = as_sparse(X)
            check_sparse(sparse, "X")
            return replace(rows, points=sparse)
        if is_sparse(X):
            hint = "Call X.toarray()"
            raise DataError("X", "sparse features", "dense ones, as those it was fitted on", hint)
        check_views(X, self._views, fitting=False)
        absent = absent_of(X, self._views)
        points = self.preparation_.applied(X, absent)
        if not (np.isfinite(points) if absent is None else np.isfinite(points) | absent).all():
            found = "values that are too large to be scaled, or NaN"
            raise DataError("X", found, "finite features", "Rescale them")
        return replace(rows, points=np.ascontiguousarray(points))

    def _laplacian(self, points: Floats, graph: Mapping[str, Any]) -> Any:
        """Return the graph Laplacian of prepared rows."""
        if graph.get("distance") == "precomputed":
            hint = "Give the Laplacian of distances to mkldist.solve, or their file to a sweep"
            raise SpecError("graph.distance", "'precomputed'", "distances between rows of X", hint)
        if not points.shape[1]:
            raise SpecError("graph", "columns of texts alone", "features of numbers beside them")
        if not is_sparse(points) and np.isnan(points).any():
            hint = 'Set missing_views="impute", or choose a method without a graph'
            raise SpecError("graph", "rows that lack a view", "all features of all rows", hint)
        return graph_laplacian(points, graph_spec(graph))

    def _bank_settings(self, points: Features) -> dict[str, Any]:
        """Return the arguments of :class:`mkldist.KernelBank` besides the points."""
        from mkldist.fit.bank import check_groups

        seed = self.random_state
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            hint = "Random feature subsets depend on it"
            raise SpecError("random_state", f"{seed!r:.60}", "a whole number from 0", hint)
        check_groups({} if self.groups is None else self.groups, "groups")
        encoded = {n: [f"{n}={one}" for one in own] for n, own in self._categories.items()}
        groups = {**encoded, **self._named_groups(encoded)}
        views: dict[str, list[int | str]] = {n: list(v.columns) for n, v in self._views.items()}
        names = () if points.texts is None else points.texts.names
        for view, block in self._text_views.items():
            views[view] = views.get(view, []) + [names[column] for column in block.columns]
        return {
            "kernels": self._chosen_kernels(points),
            "normalisation": self.normalisation,
            "groups": groups,
            "views": views,
            "missing": "zero" if views and self.missing_views == "zero" else "error",
            "backend": self.backend,
            "seed": int(seed),
        }

    def _named_groups(self, encoded: Mapping[str, list[str]]) -> dict[str, list[int | str]]:
        """Return the groups with the features of columns of categories in place of these."""
        found: dict[str, list[int | str]] = {}
        for name, members in (self.groups or {}).items():
            if encoded and not all(isinstance(member, str) for member in members):
                expected = "names of columns, beside columns of categories"
                raise SpecError(f"groups[{name!r}]", f"{members!r:.60}", expected)
            listed: list[list[int | str]] = [[*encoded.get(str(one), [one])] for one in members]
            found[name] = [member for own in listed for member in own]
        return found

    def _chosen_kernels(self, points: Features) -> Any:
        """Return the kernels as :class:`mkldist.KernelBank` takes them."""
        if not isinstance(self.kernels, str):
            given = [self.kernels] if hasattr(self.kernels, "shape") else self.kernels
            if not isinstance(given, Iterable | None):
                expected = "a list of kernels, or the name of a family"
                raise SpecError("kernels", f"{given!r:.60}", expected)
            for kernel in given or ():
                if isinstance(kernel, Precomputed) or hasattr(kernel, "shape"):
                    found = "Precomputed" if isinstance(kernel, Precomputed) else "an array"
                    found += " in an estimator, whose rows scikit-learn divides"
                    raise SpecError("kernels", found, "kernels of features", OWN_GRAMS)
            return self.kernels
        if self.kernels not in NAMED_FAMILIES:
            expected = f"one of {', '.join(map(repr, NAMED_FAMILIES))}, or a list of kernels"
            hint = OWN_GRAMS
            if self.kernels != PRECOMPUTED:
                hint = nearest(self.kernels, NAMED_FAMILIES)
            raise SpecError("kernels", f"{self.kernels!r}", expected, hint)
        return self.kernels

    def _new_rows(self, X: Any) -> Features:
        """Return new rows as kernels take them."""
        check_is_fitted(self)
        return self._prepared(self._checked(X, fitted=True)[0])

    def _values(self, rows: Features) -> Floats:
        """Return the decision functions at prepared rows, (t, k)."""
        numbers, texts = rows.points, rows.text_values
        return np.concatenate([f.values(numbers, texts=texts) for f in self._expansions], axis=1)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the predictions (t,) of rows X (t, d): classes, values, or -1 for outliers and 1.

        A tie of several classes goes to the most frequent one.
        """
        return self._predicted(self._values(self._new_rows(X)))

    def _predicted(self, values: Floats) -> npt.NDArray[Any]:
        """Return the predictions of decision values (t, k)."""
        return self._labels.predictions(values, self._calibrated)

    @property
    def _function_names(self) -> list[Hashable] | None:
        """Classes where there is a decision function for each; None for a single function."""
        names: list[Hashable] = np.asarray(getattr(self, "classes_", ())).tolist()
        return names if len(names) > 2 else None

    @property
    def intercept_(self) -> float | Floats:
        """Constant term of the decision function; (k,) for k functions."""
        check_is_fitted(self)
        bias = np.concatenate([function.bias for function in self._expansions])
        return bias if self._function_names is not None else float(bias[0])

    def contributions(self, X: Any, by: str = "features") -> pd.DataFrame:
        """Split the decision function into the contributions of views, features or kernels.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        by : {"views", "features", "kernels"}
            The parts; they and the result are as for :meth:`mkldist.Model.contributions`.
        """
        rows, texts = self._new_rows(X), text_names(self.texts)
        views = {n: {self._features[c] for c in v.columns} for n, v in self._views.items()}
        for name, view in self._text_views.items():
            views.setdefault(name, set()).update(texts[c] for c in view.columns)
        names = self._features, texts, views, self._function_names
        parts = Contributions.of(self._expansions, by, *names)
        found = parts.table(parts.values(rows.points, texts=rows.text_values))
        return found.set_index(X.index) if isinstance(X, pd.DataFrame) else found

    def to_model(self) -> Model:
        """Return the fitted model apart from scikit-learn, to be saved to one file.

        It predicts and decides as the estimator does, and has its probabilities.

        Raises
        ------
        mkldist.errors.SpecError
            For classes that are neither numbers nor text.
        """
        from mkldist.fit.model import Model
        from mkldist.methods.components import named

        check_is_fitted(self)
        classes = [] if self._labels.classes is None else self._labels.classes.tolist()
        if not all(isinstance(one, str | int | float) for one in classes):
            expected = "numbers, text or truth values, for a file"
            raise SpecError("classes", f"{classes[0]!r:.60}", expected)
        features, columns, texts = self._features, text_names(self.texts), None
        if columns:
            empty = np.empty((0, len(columns)), dtype=object)
            texts = TextColumns(columns, empty, self._text_views)
        pairs = zip(self.solutions_, self._expansions, strict=True)
        n_encoded = sum(map(len, self._categories.values()))
        numbers = tuple(features)[: len(features) - n_encoded]
        return Model(
            SourceColumns(numbers, self._categories),
            features,
            self.preparation_,
            self._expansions,
            tuple(solution.kernel_weights[function.index] for solution, function in pairs),
            self._labels,
            {
                "dataset": "an estimator's data",
                "method": self.method,
                "params": {name: named(value) for name, value in self._settings.items()},
                "objective": float(self.objective_),
                **proximity_of(self.solutions_),
                "stop_reason": self.stop_reason_,
            },
            self._views,
            calibration=self._calibrated,
            ranges=self._ranges,
        ).with_texts(texts)


class _Scored:
    """A score of scikit-learn that warns as :meth:`fit` does; before the mixin that has it."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of predictions: accuracy of classes, R² of real values y (t,).

        Warns
        -----
        UserWarning
            If indexes of pandas name other rows, or the same in another order.
        """
        _warn_of_other_rows(X=X, y=y, sample_weight=sample_weight)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]


@dataclass(eq=False, repr=False)
class KernelClassifier(_Scored, ClassifierMixin, KernelEstimator):  # type: ignore[misc]
    """Base of the classifiers: one decision function for two classes, one a class for more."""

    def _learn_classes(self, y: npt.NDArray[Any]) -> Ints:
        """Keep the classes of labels and their shares; return the labels' numbers."""
        self.classes_, numbers = encoded(y)
        answers = constant_answers(numbers, len(self.classes_))
        self._labels = LabelCoding(self.classes_, answers, positive_at_zero=False)
        return numbers

    def decision_function(self, X: Any) -> Floats:
        """Return decision values of rows X (t, d): (t,) for two classes, (t, k) for k."""
        values = self._values(self._new_rows(X))
        return values if values.shape[1] > 1 else values[:, 0]


@dataclass(eq=False, repr=False)
class SupervisedClassifier(KernelClassifier):
    """Base of the classifiers of labelled rows."""

    _: KW_ONLY
    tol: float = 0.03
    class_weight: Any = None
    shared_weights: bool | None = None
    calibration: str | None = None

    @in_float64("X, y or a parameter")
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn kernel weights and a decision function, after the choice of `C` where there is one.

        Parameters
        ----------
        X : (n, d) array-like, sparse array or DataFrame
            Training rows.
        y : (n,) array-like
            Labels of any type, of two classes or more.
        sample_weight : (n,) array-like, optional
            Weights of the rows: how often each counts, in scores of folds too.
        groups : (n,) array-like, optional
            Group of each row, such as a patient.  No fold that chooses `C` or calibrates divides
            a group; folds that a method makes itself, as ``best_single`` does, may.

        Raises
        ------
        ValueError
            For rows, labels, weights or parameters that cannot be used.  Errors of
            ``mkldist.errors`` are among them.

        Warns
        -----
        mkldist.errors.ConvergenceWarning
            If a solver stops before it reaches the tolerance.
        UserWarning
            If indexes of pandas name other rows, or the same in another order: rows are taken by
            their places, as scikit-learn does.
        """
        of_words = isinstance(self.calibration, str | None)
        if not of_words or self.calibration not in (None, "sigmoid", "isotonic"):
            found = f"{self.calibration!r:.60}"
            raise SpecError("calibration", found, "'sigmoid', 'isotonic' or None")
        settings = self._solver_settings()
        X = pandas_frame(X)
        _warn_of_other_rows(X=X, y=y, sample_weight=sample_weight, groups=groups)
        rows, y = self._checked(X, y=y)
        own_groups = None if groups is None else _group_numbers(groups, len(y))
        folds = self._given_folds(y, own_groups)
        beside = [y, *([] if groups is None else [own_groups]), *_sides(folds, len(y))]
        distinct = self._distinct(rows, sample_weight, *beside)
        used, own = distinct.first, distinct.weights
        weights = sample_weights(y[used], own, self.class_weight)
        numbers = self._learn_classes(y[used])
        shared, can_share = self.shared_weights, METHODS[self.method].joint_classes
        shared = len(self.classes_) > 2 and (can_share if shared is None else shared)
        if shared and not can_share:
            able = one_of(methods_for(ProblemFacts(laplacian=False, shared_weights=True)))
            found = f"True for {self.method}, which {LEARNS_CLASSES_APART.reason}"
            raise SpecError("shared_weights", found, f"False, or one of the methods {able}")
        problems = one_against_rest(numbers, len(self.classes_), shared=shared)
        order = np.argsort(used)  # folds are those of rows in their own order

        def divided(cv: Any, default: int, hint: str) -> _Folds:
            if folds is not None:
                found = [(distinct.at(train), distinct.at(held)) for train, held in folds]
            else:
                rows = used[order]
                of_groups = None if own_groups is None else own_groups[rows]
                parts = _folds(cv, y[rows], of_groups, default, hint)
                found = [(np.sort(order[train]), np.sort(order[held])) for train, held in parts]
            _check_folds(found, y[used])
            return found

        self._calibrated = None

        def choose(bank: KernelBank) -> Mapping[str, Any]:
            of_folds = _OnFolds(self, bank, problems, y[used], own, divided)
            chosen, held_out = self._chosen(settings, of_folds)
            if self.calibration is not None:
                if held_out is None:
                    parts = divided(None, FOLDS, "Set calibration=None, or add rows of it")
                    held_out = parts, of_folds.values(parts, [settings])[0]
                self._calibrated = self._calibration(*held_out, numbers, own, weights)
            return chosen

        self._fit_problems(rows.at(used, own), problems, settings, weights=weights, choose=choose)
        return self

    def _given_folds(self, y: npt.NDArray[Any], groups: Any) -> _Folds | None:
        """Return folds of all rows that the user gives; None where they are yet to be made."""
        return None

    def _chosen(
        self, settings: Mapping[str, Any], on_folds: _OnFolds
    ) -> tuple[Mapping[str, Any], _HeldOut | None]:
        """Return settings that are chosen on a bank, none, and decisions on folds at them."""
        return {}, None

    def _calibration(
        self,
        folds: _Folds,
        values: Sequence[Floats],
        numbers: Ints,
        sample_weight: Floats | None,
        weights: Floats | None,
    ) -> Calibrated:
        """Return the probabilities by decision values of held-out rows, and what they predict.

        A class whose rows weigh more has probabilities that count more, in the same proportion.
        """
        rows, found = np.concatenate([out for _, out in folds]), np.concatenate(values)
        own = np.ones(len(numbers)) if sample_weight is None else sample_weight
        first = np.unique(numbers, return_index=True)[1]
        of_classes = np.ones(len(first)) if weights is None else (weights / own)[first]
        curves = fit_curves(found, numbers[rows], str(self.calibration), own[rows])
        if len(curves) > 1:
            return Calibrated(curves, class_weights=tuple(of_classes.tolist()))
        return Calibrated(curves, curves[0].value_above(of_classes[0] / of_classes.sum()))

    @property
    def predict_proba(self) -> Callable[[Any], Floats]:
        """Return calibrated probabilities (t, k) of the classes of rows X; needs `calibration`.

        :meth:`predict` returns the class of the greatest one, or, with `class_weight`, of the
        greatest product of class weight and probability.
        """
        if self.calibration is None:
            raise AttributeError(
                "predict_proba: found calibration=None, so that decision values have no "
                "probabilities; expected 'sigmoid' or 'isotonic'. Make the estimator with "
                "calibration='sigmoid' and fit it again, or call decision_function."
            )
        return self._probabilities

    def _probabilities(self, X: Any) -> Any:
        values = self._values(self._new_rows(X))
        if self._calibrated is None:  # set_params(calibration=...) came after the fit
            raise NotFittedError(f"{type(self).__name__}: fit it again, with its calibration")
        return self._calibrated.probabilities(values)


@dataclass(frozen=True, eq=False)
class _OnFolds:
    """The problems of a classifier, to be solved on parts of its rows."""

    classifier: SupervisedClassifier
    bank: KernelBank
    problems: Sequence[Floats]
    y: npt.NDArray[Any]
    sample_weight: Floats | None
    divided: Callable[[Any, int, str], _Folds]

    def values(self, folds: _Folds, settings: Sequence[Mapping[str, Any]]) -> list[list[Floats]]:
        """Return decision values (h, k) of held-out rows, by setting and by fold."""
        from mkldist.fit.api import held_out_values

        method, balance = METHODS[self.classifier.method], self.classifier.class_weight
        points = [validate(method.params, method.name, one) for one in settings]
        own = np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight
        weights = [sample_weights(self.y[train], own[train], balance) for train, _ in folds]
        return held_out_values(method, self.bank, self.problems, folds, points, weights)


@dataclass(eq=False, repr=False)
class MKLClassifier(SupervisedClassifier):
    """Classifier on a weighted sum of kernels, whose weights it learns.

    With the default method, ``level``, it minimises::

        C sum_i w_i max(0, 1 - y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||)^2,   f = sum_m f_m,

    over functions f_m of the kernels, and reports how far its solution is from the optimum.  The
    row weights w_i are 1, or ``sample_weight`` times ``class_weight``.

    `C` is that of :class:`sklearn.svm.SVC` on the kernels as normalised.  By default every kernel
    is scaled to variance 1 in feature space, so that its values do not depend on the number of
    rows, and neither does what a value of `C` means.  With ``normalisation="trace"``, as in most
    papers, kernels have values near 1/n, and `C` has to grow with n.

    Of k > 2 classes, each is learnt against the rest, with one set of kernel weights for all where
    the method can share them, which takes less time.

    Parameters
    ----------
    method : str
        Method for two classes, see ``mkldist list methods``.
    C : float
        Weight of the losses; a larger one fits the training rows more closely.
    kernels : str or list
        ``"default"``: on all features together, Gaussians of four widths, which see how features
        combine, and additive kernels of three, each of which sums up functions of single features;
        linear kernels in place of these for more than 250 features.  A signal in few of many
        features needs kernels of single ones: let a search choose between ``"default"`` and
        ``[mkldist.kernels.Linear(features="each")]``.  Or a paper's family, such as
        ``"xu2008"``; or a list of kernels, such as ``mkldist.kernels.Gaussian(widths=[0.5, 1, 2],
        features="each")``, and of dictionaries with the keys of ``[[banks.kernels]]``.  Gram
        matrices of your own are read by a function of row numbers, see the second example.
    normalisation : str or list of str
        As in a sweep file: ``"variance"``, ``"trace"``, ``"cosine"``, ``"centre"``, ``"none"``,
        or several in order; fitted on the training rows.
    impute : {"median", "mean", "most_frequent"} or None
        What replaces missing values, fitted on the training rows; None refuses them.  A column
        without any value is refused.
    scale : {"zscore", "minmax"} or None
        Scaling of features, fitted on the training rows.  Other transformers go before the
        estimator, in a pipeline.  Sparse `X` needs None, and kernels that
        are Gaussian, polynomial or linear; it stays sparse.
    tol : float
        Relative duality gap at which to stop.  Below the default few decisions change, and no more
        of them are right.
    class_weight : dict, "balanced" or None
        Weights of classes, which multiply `C`.
    shared_weights : bool, optional
        True if more than two classes are to share kernel weights, False for weights of each; by
        default they share them where the method can.
    calibration : {"sigmoid", "isotonic"} or None
        Calibration of ``predict_proba`` by decision values of held-out rows, as of
        :class:`sklearn.calibration.CalibratedClassifierCV` with ``ensemble=False``.  It solves on
        five folds, or fewer where a class has fewer rows or groups, which share kernels, imputation
        and scaling.  :meth:`predict` then returns the class of the greatest probability; with
        `class_weight`, of the greatest product of class weight and probability.
    method_params : dict, optional
        Other parameters of the method by name, such as ``{"max_iter": 100}``.
    groups : dict of str to list, optional
        Names for groups of features, which `kernels` may use.
    views : dict of str to list, optional
        Views: blocks of columns of `X` by name, their columns by number, by name for a DataFrame,
        or as a slice.  ``features`` of a kernel may name a view, and ``"views"`` is each of them.
        The default kernels are then those of each view, and of all features if some are in none.
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
        Function, width, degree, offset, features, columns, name and weight of every kernel, in
        the order of feature sets rather than of `kernels`; with the column ``class`` where classes
        have weights of their own.
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
    preparation_ : FittedPreprocessing
        Fitted imputation and scaling.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A column of a DataFrame of a categorical type with texts becomes one feature for each category,
    ``column=category``, 1 where a row has it, after all numbers; `groups`, `views` and ``features``
    of kernels name the column.  A missing value is a category, ``?``, where the fit has seen one;
    other categories are those of no feature, of which predictions warn.  Columns of a nullable type
    are numbers.

    A row of ``sample_weight`` 2 counts as two equal rows everywhere: in the losses, imputation,
    scaling, widths, the normalisation of kernels, balanced classes and folds.  Equal rows with one
    label are one row whose weights add up, unless the method takes no weights; rows of weight zero
    are left out.

    M kernels on n rows take ``4 M n^2`` bytes, and time grows with both at least as fast: fewer
    `kernels` and a larger `tol` make a fit cheaper.  ``backend="factors"`` is for kernels that
    memory does not hold.  With ``n_jobs`` of scikit-learn, each process makes kernels of its own.

    :class:`sklearn.calibration.CalibratedClassifierCV` calibrates by folds with a preparation of
    their own; :class:`sklearn.model_selection.TunedThresholdClassifierCV` finds the threshold that
    is best by a metric.  Both take folds of groups by ``cv``.

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

    method: str = "level"
    _: KW_ONLY
    C: float = 1.0

    def _solver_settings(self) -> dict[str, Any]:
        """Return the parameters of the method with C, which one without takes only as 1."""
        method, settings = self._method_settings()
        number = positive("C", self.C)
        if "C" in method.params.model_fields:
            return _with_strength(method, number, settings, "C")
        if number != 1.0:
            own = ", ".join(method.hyperparameters) or "none of its own"
            hint = f"Set the parameters of {method.name} by method_params: {own}"
            found = f"{self.C!r} for {method.name}, which has no C"
            raise SpecError("C", found, "C=1.0, its default", hint)
        return settings


@dataclass(eq=False, repr=False)
class MKLClassifierCV(SupervisedClassifier):
    """:class:`mkldist.MKLClassifier` with a `C` chosen by cross-validation along a path.

    On the training rows of every fold the solver goes through all `Cs`, each time from the last
    solution.  The `C` of the best mean score on the held-out rows is that of the fit on all rows;
    of equal scores that nearest to 1, the default of :class:`mkldist.MKLClassifier`.
    All folds share the kernels, and the imputation and scaling, of all training rows, whose labels
    play no part in these.

    Parameters
    ----------
    method : str
        Method for two classes that has a `C`, see ``mkldist list methods``.
    Cs : sequence of float
        Values of `C` to choose from, by default 0.3, 1 and 3.
    cv : int, splitter or iterable, optional
        Folds as in scikit-learn.  By default three stratified ones, two where a class has
        fewer rows or groups.  These, and those of a number, keep the `groups` of :meth:`fit` whole.
    scoring : str or callable, optional
        Score as in scikit-learn, made of decision values or classes; by default accuracy.
    kernels, normalisation, impute, scale, tol, class_weight, shared_weights, calibration
        As for :class:`mkldist.MKLClassifier`.  On folds, solvers stop at three times `tol`.
        `calibration` takes the decision values of these folds.
    method_params, groups, views, missing_views, texts, backend, random_state, verbose
        As for :class:`mkldist.MKLClassifier`.

    Attributes
    ----------
    C_ : float
        The best of `Cs`.
    cv_results_ : dict of str to array
        ``param_C``, ``mean_test_score``, ``std_test_score``, ``rank_test_score`` and
        ``split0_test_score`` to the last fold's, as of a search of scikit-learn.
    classes_, kernel_weights_, objective_, gap_, n_iter_, stop_reason_, intercept_, solutions_
        As for :class:`mkldist.MKLClassifier`, at `C_`.
    preparation_, n_features_in_, feature_names_in_
        As for :class:`mkldist.MKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MKLClassifierCV().fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.95)
    True
    """

    method: str = "level"
    _: KW_ONLY
    Cs: Sequence[float] = PATH_OF_C
    cv: Any = None
    scoring: Any = None

    def _solver_settings(self) -> dict[str, Any]:
        """Return the parameters of the method without C."""
        method, settings = self._method_settings()
        if "C" not in method.params.model_fields or "C" in settings:
            found = f"{self.method!r}" if "C" not in settings else "C in method_params"
            raise SpecError("method", found, "a method with C, which is chosen among Cs")
        return settings

    def _given_folds(self, y: npt.NDArray[Any], groups: Any) -> _Folds | None:
        if self.cv is None or isinstance(self.cv, int | np.integer):
            return None
        return _folds(self.cv, y, groups, FOLDS_OF_C, "")

    def _chosen(
        self, settings: Mapping[str, Any], on_folds: _OnFolds
    ) -> tuple[Mapping[str, Any], _HeldOut | None]:
        """Return the C of the best mean score; set what :meth:`fit` tells of the choice."""
        given = self.Cs if np.iterable(self.Cs) and not isinstance(self.Cs, str) else [self.Cs]
        Cs = [positive("Cs", C) for C in given]
        tol = FOLDS_TOL * settings["tol"]
        each = [{**settings, "C": C, "tol": tol} for C in Cs]
        y, sample_weight = on_folds.y, on_folds.sample_weight
        folds = on_folds.divided(self.cv, FOLDS_OF_C, "Add rows of it, or choose C without folds")
        scorer = _accuracy if self.scoring is None else get_scorer(self.scoring)
        values = on_folds.values(folds, each)
        scores = np.empty((len(Cs), len(folds)))
        for c, of_folds in enumerate(values):
            for f, (_, rows) in enumerate(folds):
                decided = _Decided(self, of_folds[f])
                own = {} if sample_weight is None else {"sample_weight": sample_weight[rows]}
                try:
                    scores[c, f] = scorer(decided, np.arange(len(rows))[:, None], y[rows], **own)
                except AttributeError as error:  # of scikit-learn, for want of a method
                    expected = "a score of classes or decision values, such as 'roc_auc'"
                    found = f"{self.scoring!r:.60}, a score of probabilities"
                    raise SpecError("scoring", found, expected) from error
        means = scores.mean(axis=1)
        equal = np.flatnonzero(means >= means.max() - ROUNDING)
        best = min(equal, key=lambda c: (abs(math.log(Cs[c])), Cs[c]))
        self.C_ = Cs[best]
        self.cv_results_ = {
            "param_C": np.array(Cs),
            "mean_test_score": means,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": rankdata(-means, method="min").astype(np.intp),
            **{f"split{f}_test_score": scores[:, f] for f in range(len(folds))},
        }
        return {"C": self.C_}, (folds, values[best])


def _folds(
    cv: Any, y: npt.NDArray[Any], groups: Any, default: int, hint: str
) -> list[tuple[Ints, Ints]]:
    """Return the training and the held-out rows of folds.

    Without `cv` a class of one row, or of one group, is refused with the `hint`.
    """
    classes, numbers = np.unique(y, return_inverse=True)
    if cv is None:
        units = np.arange(len(y)) if groups is None else np.asarray(groups)
        each = [len(np.unique(units[numbers == c])) for c in range(len(classes))]
        if min(each) < 2:
            what = "row" if groups is None else "group"
            found = f"class {classes.tolist()[int(np.argmin(each))]!r} in one {what}"
            expected = f"two {'different ' * (groups is None)}{what}s of each class, for folds"
            raise DataError("y", found, expected, hint)
        cv = min(default, *each)
    if groups is not None and isinstance(cv, int | np.integer):
        cv = StratifiedGroupKFold(int(cv))
    splitter = check_cv(cv, y, classifier=True)
    return list(splitter.split(np.zeros((len(y), 1)), y, groups))


def _check_folds(folds: _Folds, y: npt.NDArray[Any]) -> None:
    """Refuse folds that hold all rows of a class."""
    classes, numbers = np.unique(y, return_inverse=True)
    for number, (train, _) in enumerate(folds):
        left = np.bincount(numbers[train], minlength=len(classes))
        if not left.all():
            lacking = classes.tolist()[left.argmin()]
            found = f"fold {number} (from 0) with all rows of class {lacking!r}"
            raise DataError("cv", found, "rows of each class outside each fold", "Set fewer folds")


def _sides(folds: _Folds | None, n: int) -> list[Array]:
    """Return which rows each fold trains on and which it holds out, (n, 2) for each."""
    found = []
    for train, held in folds or ():
        sides = np.zeros((n, 2), dtype=bool)
        sides[train, 0], sides[held, 1] = True, True
        found.append(sides)
    return found


class _Decided(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose decision values (h, k) at some rows are known, for scorers."""

    def __init__(self, classifier: KernelClassifier, values: Floats) -> None:
        self.classifier, self.values = classifier, values
        self.classes_ = classifier.classes_

    def decision_function(self, rows: Ints) -> Floats:
        """Return the decision values of rows by number, (h, 1)."""
        values = self.values[rows[:, 0]]
        return values if values.shape[1] > 1 else values[:, 0]

    def predict(self, rows: Ints) -> npt.NDArray[Any]:
        """Return the classes of rows by number, (h, 1)."""
        return self.classifier._predicted(self.values[rows[:, 0]])


def _accuracy(decided: _Decided, rows: Ints, y: Any, sample_weight: Any = None) -> float:
    """Return the share of right classes, also of labels of objects, which scorers refuse."""
    return float(np.average(decided.predict(rows) == y, weights=sample_weight))


@dataclass(eq=False, repr=False)
class MKLRegressor(_Scored, RegressorMixin, KernelEstimator):  # type: ignore[misc]
    """Regression on a weighted sum of kernels, whose weights it learns.

    With the default method, ``primalmkl``, it minimises::

        1/2 sum_i w_i (y_i - f(x_i) - b)^2 + 1/(2 C) (sum_m ||f_m||)^2,   f = sum_m f_m,

    over functions f_m of the kernels, and reports how far its solution is from the optimum.  The
    row weights w_i are 1, or ``sample_weight``.  The values y are scaled to mean 0 and standard
    deviation 1 before, so that `C` does not depend on their units; predictions are in the units
    of the data, the objective is not.

    Parameters
    ----------
    method : str
        Method for real values: primalmkl, spicymkl or elastmkl.
    C : float
        Weight of the losses; a larger one fits the training rows more closely.
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
        Function, width, degree, offset, features, columns, name and weight of every kernel.
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
    >>> bool(MKLRegressor().fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.8)
    True
    """

    _target = Target.VALUES

    method: str = "primalmkl"
    _: KW_ONLY
    C: float = 1.0

    @in_float64("X, y or a parameter")
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and a function of rows X (n, d) from values y (n,).

        `sample_weight` (n,) says how often each row counts.  Errors and warnings are those of
        :meth:`mkldist.MKLClassifier.fit`.
        """
        method, settings = self._method_settings()
        settings = _with_strength(method, positive("C", self.C), settings, "C")
        _warn_of_other_rows(X=X, y=y, sample_weight=sample_weight)
        rows, y = self._checked(X, y=y, y_numeric=True)
        values = np.asarray(y, dtype=np.float64)
        distinct = self._distinct(rows, sample_weight, values)
        weights = distinct.weights
        rows, values = rows.at(distinct.first, weights), values[distinct.first]
        constant = bool((values == values[0]).all())
        centre = float(values[0] if constant else np.average(values, weights=weights))
        variance = 1.0 if constant else np.average((values - centre) ** 2, weights=weights)
        units = centre, math.sqrt(variance)
        self._labels = LabelCoding(None, constant_answers(values, 0))
        problem = (values - centre) / units[1]
        self._fit_problems(rows, [problem], settings, units=units, weights=weights)
        return self


@dataclass(eq=False, repr=False)
class OneClassMKL(OutlierMixin, KernelEstimator):  # type: ignore[misc]
    """Outlier detection on a weighted sum of kernels, whose weights it learns.

    With the default method, ``primalmkl``, it minimises::

        1/2 { 1/C (sum_m ||f_m||)^2 + 1/n sum_i w_i max(0, rho - f(x_i))^2 } - rho,

    ``f = sum_m f_m``, and rows with ``f(x) < rho`` are outliers.  The row weights w_i are 1, or
    ``sample_weight``, and n is their sum.  With a smaller `C` more of the training rows are
    outliers: about one in ten at the default.

    Parameters
    ----------
    method : str
        Method for one class.
    C : float
        Weight of the mean of the losses, `C` of primalmkl times n.
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

    _target = Target.ONE_CLASS

    method: str = "primalmkl"
    _: KW_ONLY
    C: float = 100.0

    @in_float64("X, y or a parameter")
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Describe the rows X (n, d), most of which are no outliers; y is ignored.

        `sample_weight` (n,) says how often each row counts.  Errors and warnings are those of
        :meth:`mkldist.MKLClassifier.fit`; a UserWarning tells if all rows are outliers, since
        kernels are zero there or C is small.
        """
        method, settings = self._method_settings()
        _warn_of_other_rows(X=X, sample_weight=sample_weight)
        rows, _ = self._checked(X)
        distinct = self._distinct(rows, sample_weight)
        weights = distinct.weights
        rows = rows.at(distinct.first, weights)
        n = rows.n_points if weights is None else float(weights.sum())
        settings = _with_strength(method, positive("C", self.C) / n, settings, "C")
        self._fit_problems(
            rows, [np.ones(rows.n_points)], settings, units=(0.0, n), weights=weights
        )
        self._labels = LabelCoding(np.array([-1, 1]), (0.0, 1.0))
        self.objective_ *= n
        self.offset_ = -self.intercept_
        # ``C max(0, rho - f(x_i))`` up to a factor: above zero for outliers, and all zero
        # where that of ones is, since the kernels are.
        coefficients, reason = self.solutions_[0].coefficients, ""
        if not coefficients.any():
            reason = (
                "the kernels are zero on them, or add up to zero as centred ones do. Leave out "
                "constant columns, and use kernels such as Gaussians that are not centred"
            )
        elif (coefficients > ROUNDING * coefficients.max()).all():
            reason = f"C={self.C:g} is too small. Raise C"
        if reason:
            listed = pluralize(int((distinct.number >= 0).sum()), "training row")
            warnings.warn(f"OneClassMKL: {listed}, all outliers: {reason}", stacklevel=2)
        return self

    def _chosen_kernels(self, points: Features) -> Any:
        chosen = super()._chosen_kernels(points)
        if not isinstance(chosen, str) or chosen != DEFAULT:
            return chosen
        of_texts = [Spectrum(LENGTHS, features="each")] if points.texts is not None else []
        if not len(points.names):
            return of_texts
        features = "views" if self._views else "all"
        return [Gaussian(relative_widths=RELATIVE_WIDTHS, features=features), *of_texts]

    def decision_function(self, X: Any) -> Floats:
        """Return decision values (t,) of rows X (t, d), negative for outliers."""
        return self._values(self._new_rows(X))[:, 0]

    def score_samples(self, X: Any) -> Floats:
        """Return f(x) of rows X (t, d), (t,): the decision function plus ``offset_``."""
        return self.decision_function(X) + self.offset_


@dataclass(eq=False, repr=False)
class SemiSupervisedMKLClassifier(KernelClassifier):
    """Classifier on a weighted sum of kernels that learns from rows without labels too.

    With the default method, ``lapmkl``, its functions are smooth on a graph that joins neighbouring
    rows, labelled or not; ``mkldist show lapmkl`` states the objective.

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
        of the features after imputation and scaling; it has no ``distances``.
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

    _target = Target.PARTIAL

    method: str = "lapmkl"
    _: KW_ONLY
    gamma_a: float = 0.01
    gamma_i: float = 0.01
    graph: Mapping[str, Any] | None = None

    @in_float64("X, y or a parameter")
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and a decision function of rows X (n, d), labelled or not.

        Labels y (n,) are of two classes or more, and -1 where there is none.  `sample_weight` (n,)
        says how often each row counts; the graph and the norm on it have equal rows once.  Errors
        and warnings are those of :meth:`mkldist.MKLClassifier.fit`.
        """
        method, settings = self._method_settings()
        settings = _with_strength(method, positive("gamma_a", self.gamma_a), settings)
        if "gamma_i" in method.params.model_fields:
            settings = {"gamma_i": positive("gamma_i", self.gamma_i, or_zero=True), **settings}
        _warn_of_other_rows(X=X, y=y, sample_weight=sample_weight)
        all_rows, all_labels = self._checked(X, y=y)
        distinct = self._distinct(all_rows, sample_weight, all_labels)
        weights = distinct.weights
        rows, y = all_rows.at(distinct.first, weights), all_labels[distinct.first]
        labelled = _labelled(y)
        numbers = self._learn_classes(y[labelled])
        problems = []
        for signs in one_against_rest(numbers, len(self.classes_), shared=False):
            problem = np.zeros(len(y))
            problem[labelled] = signs
            problems.append(problem)
        graph = {} if self.graph is None else self.graph
        if not isinstance(graph, Mapping):
            raise SpecError("graph", f"{graph!r:.60}", 'a dict, such as {"neighbours": 6}')
        if graph.get("kind", "knn") == "knn":
            graph = {"neighbours": max(1, min(NEIGHBOURS, rows.n_points - 1)), **graph}
        needed = graph if method.needs_laplacian else None
        self._fit_problems(rows, problems, settings, weights=weights, graph=needed)
        self.transduction_ = self._predicted(self._values(self._prepared(all_rows)))
        given = (distinct.number >= 0) & np.array([one != -1 for one in all_labels.tolist()])
        self.transduction_[given] = all_labels[given]
        return self


def _labelled(y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which rows have a label; refuse those of less than two classes.

    Numpy makes the text "-1" of -1 among texts; and -1, for no label, is often meant as a class.
    """
    labels = y.tolist()
    if "-1" in labels:
        found = f"the text '-1' as the label of {pluralize(labels.count('-1'), 'row')}"
        hint = "Make y by np.array([...], dtype=object), in which -1 stays a number among texts"
        expected = "the number -1 for unlabelled rows"
        raise DataError(f"y[{labels.index('-1')}]", found, expected, hint)
    labelled = np.array([label != -1 for label in labels])
    classes = list(dict.fromkeys(y[labelled].tolist()))
    if len(classes) < 2:
        n_without = int((~labelled).sum())
        found = f"one class, {classes[0]!r}" if classes else "no labels"
        found += f", and {pluralize(n_without, 'unlabelled row')}"
        expected = "two classes or more, and -1 for unlabelled rows alone"
        hint = "Write the classes as other labels, such as 0 and 1"
        raise DataError("y", found, expected, hint if classes and n_without else "")
    return labelled
