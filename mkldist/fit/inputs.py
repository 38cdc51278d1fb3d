"""What a user gives in Python: points, labels, weights, groups, views and texts, checked once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from mkldist.core.arrays import LARGEST, LEAST, Array, Floats, Ints, Target
from mkldist.core.wording import FROM_ZERO, pluralize, truncate
from mkldist.data.checks import (
    as_features,
    canonical,
    check_sparse,
    check_values,
    common_rows,
    numbered_features,
)
from mkldist.data.dataset import TextColumns, fingerprint_parts, sparse_parts
from mkldist.data.grams import check_stack
from mkldist.data.tables import frame_features, frame_texts, pandas_frame
from mkldist.errors import DataError, GramError, SpecError, nearest
from mkldist.kernel_functions.bases import is_sparse
from mkldist.methods.registry import METHODS, methods_for
from mkldist.solvers.base import (
    Method,
    Part,
    ProblemFacts,
    Refusal,
    learns_unlabelled,
    losses_by_target,
    one_of,
)

SHOWN = 5  # distinct labels, columns or rows in a message
SYMMETRY = 1e-8  # asymmetry, relative to the largest entry, that rounding explains
MAKE_LAPLACIAN = (
    'Give laplacian=graph_laplacian(X, graph_spec({"neighbours": 10})), of the features X of the '
    "points, by functions of mkldist.kernels.graph"
)


@contextmanager
def in_float64(where: str) -> Iterator[None]:
    """Refuse integers that float64 cannot hold, which numpy cannot convert."""
    try:
        yield
    except OverflowError as error:
        raise DataError(where, f"a number without float64 ({error})", "finite numbers") from error


def real_array(value: Any, where: str, expected: str, hint: str = "") -> Floats:
    """Return an array-like as float64; refuse anything but real numbers in rows of one length."""
    _refuse_masked(value, where)
    try:
        array = np.asarray(value)
        if array.dtype.kind in "fiubO":
            return np.asarray(array, dtype=np.float64)
        found = f"texts such as {array.flat[0]!s:.30}" if array.dtype.kind in "US" else ""
    except (TypeError, ValueError, OverflowError) as error:
        name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        raise GramError(where, f"{name} ({error})", expected, hint) from None
    raise GramError(where, found or f"an array of {array.dtype}", expected, hint)


def _refuse_masked(value: Any, where: str) -> None:
    """Refuse an array of numpy with masked entries, which others would read as numbers."""
    if isinstance(value, np.ndarray) and np.any(getattr(value, "mask", False)):
        hint = "Fill them, as by array.filled(numpy.nan), or leave these points out"
        raise GramError(where, "masked entries", "a number everywhere", hint)


def kernel_values(values: Any, where: str, expected: str) -> Array:
    """Return an array-like of real numbers; an array of numpy keeps its type, and may be mapped."""
    _refuse_masked(values, where)
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values
    return real_array(values, where, expected)


def gram_stack(grams: Any, where: str = "grams") -> Array:
    """Return an array-like as M square matrices of numbers, arrays of numpy in their own type."""
    stack = kernel_values(grams, where, "(M, n, n) numbers: M Gram matrices of one size")
    check_stack(stack, where)
    return np.asarray(stack)


def label_array(y: Any, n: tuple[int, ...]) -> Floats:
    """Return labels as float64, (n,) or (n, k); refuse other shapes and numbers not finite."""
    hint = 'Turn class names into numbers, as in numpy.where(names == "positive", 1, -1)'
    labels = real_array(y, "y", "numbers, one a point", hint)
    one_column = labels.ndim > 1 and labels.size == max(labels.shape)
    if labels.ndim == 0 or one_column or (labels.ndim > 1 and labels.shape[:-1] != n):
        hint = "Use y.ravel()" if one_column else ""
        raise GramError("y", f"shape {labels.shape}", "(n,): one label a point, or (n, k)", hint)
    if not np.isfinite(labels).all():
        place = tuple(np.argwhere(~np.isfinite(labels))[0].tolist())
        where = f"y[{', '.join(map(str, place))}]"
        hint = "Leave this point out; for methods on graphs, 0 marks a point without a label"
        raise GramError(where, f"{labels[place]:g}", "a finite number", hint)
    return np.ascontiguousarray(labels)


def check_word(where: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a value of an argument `where` that is none of the known words."""
    if not isinstance(value, str) or value not in known:
        hint = nearest(value, known) if isinstance(value, str) else ""
        raise SpecError(where, f"{value!r:.60}", one_of(list(map(repr, known))), hint)


def whole_number(where: str, value: Any, least: int) -> int:
    """Return a whole number that an argument `where` gives, checked."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SpecError(where, f"{value!r:.60}", f"a whole number of at least {least}")
    return int(value)


def check_method(
    method: Method,
    target: Target,
    labels: Floats,
    *,
    has_laplacian: bool,
    weighted: bool = False,
    folds: int = 0,
    grouped: bool = False,
    in_memory: int | None = None,
    rounded: bool = False,
) -> None:
    """Refuse labels, weights of points, folds, groups, a Laplacian or factors that do not fit.

    The labels (n,) or (n, k) are finite, the target is what the method learns with its settings.
    Of a bank of thin factors, `in_memory` is the number of points up to which memory would hold
    matrices, and `rounded` says that factors are of float32.
    """
    columns = [np.unique(column).tolist() for column in np.atleast_2d(labels.T)]
    problem = ProblemFacts(
        laplacian=has_laplacian,
        shared_weights=labels.ndim > 1,
        weighted=weighted,
        grouped=grouped,
        factors=in_memory is not None,
        rounded=rounded,
        targets=[one for one in Target if all(_fits(column, one) for column in columns)],
        smallest_class=int(min((labels > 0).sum(axis=0).min(), (labels < 0).sum(axis=0).min())),
    )
    refusal = method.refuses(problem, target, folds)
    if refusal is None:
        return
    if refusal.part is Part.LABELS:
        distinct = next(column for column in columns if not _fits(column, target))
        shown = [f"{value:g}" for value in distinct[:SHOWN]] + ["..."] * (len(distinct) > SHOWN)
        hint = label_hint(method, distinct, target)
        raise GramError("y", f"labels {{{', '.join(shown)}}}", refusal.expected, hint)
    raise _refused(method, refusal, problem, labels.shape, folds, in_memory)


def _refused(
    method: Method,
    refusal: Refusal,
    problem: ProblemFacts,
    shape: tuple[int, ...],
    folds: int,
    in_memory: int | None,
) -> SpecError:
    """Return the error of what a method does not take besides the labels, and which others do."""
    name, reason, part = method.name, refusal.reason, refusal.part
    facts = {
        Part.LAPLACIAN: ProblemFacts(laplacian=True),
        Part.FACTORS: ProblemFacts(factors=True),
        Part.ROUNDED: ProblemFacts(factors=True, rounded=True),
    }.get(part, problem)
    others = f"{refusal.others}: {one_of(methods_for(replace(facts, targets=None)))}"
    own = f"{refusal.expected}, or {others}"
    match part:
        case Part.LAPLACIAN if not problem.laplacian:
            found = f"none for {name}, which {reason}"
            return SpecError("laplacian", found, refusal.expected, MAKE_LAPLACIAN)
        case Part.LAPLACIAN:
            return SpecError("laplacian", f"one for {name}, which {reason}", own)
        case Part.CLASSES:
            found = f"{name} with labels of shape {shape}, but it {reason}"
            return SpecError("method", found, others, "Or call it for one column at a time")
        case Part.FOLDS:
            return SpecError("folds", f"{folds}", refusal.expected, "Lower it, or omit it")
        case Part.FACTORS:
            found = f"{name} on a bank of factors, but it {reason}, which half of "
            found += f"this machine's memory holds up to {in_memory:,} points"
            return SpecError("method", found, others, "Or make the bank with another backend")
        case Part.ROUNDED:
            found = f"{name} on a bank of factors of float32, but it {reason}"
            hint = f"Or make the bank with {refusal.expected}"
            return SpecError("method", found, others, hint)
    word = part.value  # weights or groups
    return SpecError(word, f"{word} for {name}, which {reason}", own)


def _fits(values: Sequence[float], target: Target) -> bool:
    """Return True if distinct, finite labels are of a kind of target."""
    distinct = set(values)
    match target:
        case Target.CLASSES:
            return distinct == {-1.0, 1.0}
        case Target.PARTIAL:
            return distinct - {0.0} == {-1.0, 1.0}
        case Target.ONE_CLASS:
            return 1.0 in distinct <= {-1.0, 1.0}
        case Target.VALUES:
            return True


def label_hint(method: Method, distinct: Sequence[float], target: Target) -> str:
    """Return what to do about distinct labels that a method refused, "" where that is not known."""
    if target not in (Target.CLASSES, Target.PARTIAL) or len(distinct) < 2:
        return ""
    if target is Target.PARTIAL and set(distinct) < {-1.0, 0.0, 1.0}:
        return "0 marks points without a label: give some points of each class their label"
    if len(distinct) == 2:
        return f"Write np.where(y == {distinct[1]:g}, 1, -1)"
    if set(distinct) == {-1.0, 0.0, 1.0}:
        able = [name for name, other in METHODS.items() if learns_unlabelled(other)]
        return f"If 0 marks points without a label, call {one_of(able)}"
    able = [n for n, one in METHODS.items() if Target.VALUES in losses_by_target(one.params)]
    return (
        f"Call it for each class, as by np.where(y == {distinct[-1]:g}, 1, -1); for real values, "
        f'call {one_of(able)}, with loss="squared"'
    )


def weight_array(weights: Any, n: int) -> Floats | None:
    """Return weights of the points as (n,) float64, positive; None stays None.

    Like parameters, they must be neither so large nor so small that their products overflow.
    """
    if weights is None:
        return None
    array = real_array(weights, "weights", "numbers, one a point")
    if array.shape != (n,):
        raise GramError("weights", f"shape {array.shape}", f"({n},): one weight a point")
    bad = np.flatnonzero(~((array >= LEAST) & (array <= LARGEST)))
    if len(bad):
        hint = "Leave out points that are to have no weight"
        expected = f"a number from {LEAST:g} to {LARGEST:g}"
        raise GramError(f"weights[{bad[0]}]", f"{array[bad[0]]:g}", expected, hint)
    return np.ascontiguousarray(array)


def group_array(groups: Any, n_kernels: int) -> Ints:
    """Return groups of kernels, by name or number, as numbers (M,); None is a group of its own."""
    expected = f"{n_kernels} names or numbers, one a kernel"
    if isinstance(groups, str | bytes) or not hasattr(groups, "__len__"):
        raise GramError("groups", f"{groups!r:.60}", expected)
    if len(groups) != n_kernels:
        raise GramError("groups", f"{len(groups)} for {pluralize(n_kernels, 'kernel')}", expected)
    number: dict[object, int] = {}
    found = np.empty(n_kernels, dtype=np.intp)
    for m, name in enumerate(groups):
        if name is not None and not isinstance(name, str | int | np.integer):
            raise GramError(f"groups[{m}]", f"{name!r:.60}", "a name, a number or None")
        key = ("its own", m) if name is None else name
        found[m] = number.setdefault(key, len(number))
    return found


def checked_laplacian(laplacian: Any, n: int) -> Any:
    """Return a graph Laplacian as a float64 array or sparse array; None stays None.

    It is finite, symmetric to 1e-8 of its largest entry, and without an eigenvalue below -1e-8 of
    its trace.
    """
    if laplacian is None:
        return None
    from scipy import sparse

    given_sparse: bool = sparse.issparse(laplacian)
    matrix: Any = laplacian
    if not given_sparse:
        matrix = real_array(laplacian, "laplacian", f"an array of shape ({n}, {n})")
    if matrix.shape != (n, n):
        raise GramError("laplacian", f"shape {matrix.shape}", f"({n}, {n})")
    entries = matrix.tocoo().data if given_sparse else matrix
    if not np.isfinite(entries).all():
        raise GramError("laplacian", "entries that are not finite", "finite numbers")
    asymmetry = float(abs(matrix - matrix.T).max())
    if asymmetry > SYMMETRY * max(float(np.abs(entries).max(initial=0.0)), 1e-300):
        raise GramError("laplacian", f"an asymmetry of {asymmetry:g}", "a symmetric matrix")
    dense = matrix.toarray() if given_sparse else matrix
    smallest = float(np.linalg.eigvalsh(dense)[0])
    if smallest < -SYMMETRY * float(np.abs(np.trace(dense))):
        found = f"an eigenvalue of {smallest:g}"
        raise GramError("laplacian", found, "a positive semi-definite matrix")
    return matrix.astype(np.float64)


def text_names(names: Any) -> tuple[str, ...]:
    """Return the names of columns of texts that a user lists; None stands for no column."""
    if names is None:
        return ()
    listed = isinstance(names, Iterable) and not isinstance(names, str)
    if not (listed and all(isinstance(name, str) for name in names)):
        hint = f"Write texts=[{names!r}]" if isinstance(names, str) else ""
        raise SpecError("texts", f"{names!r:.60}", "a list of names of columns", hint)
    return tuple(names)


def divided(X: Any, names: Sequence[str], where: str) -> tuple[Any, TextColumns | None]:
    """Return a DataFrame without its columns of texts, and these; other points as they are."""
    if not len(names):
        return X, None
    if not (hasattr(X, "columns") and hasattr(X, "to_numpy")):
        listed = truncate([repr(name) for name in names], SHOWN)
        expected = f"a DataFrame, for columns of texts ({listed})"
        raise DataError(where, f"one {type(X).__name__}", expected, "Name columns")
    frame = X.set_axis(list(map(str, X.columns)), axis=1)
    for place, name in enumerate(names):
        if name not in frame.columns:
            hint = nearest(name, frame.columns)
            raise DataError(f"{where}: texts", f"no column {name!r}", "names of columns", hint)
        if name in names[:place] or list(frame.columns).count(name) > 1:
            raise DataError(f"{where}: texts", f"column {name!r} twice", "each once")
    texts = TextColumns.of({name: frame_texts(frame[name], where) for name in names})
    return frame.drop(columns=list(names)), texts


def check_texts(texts: TextColumns, allowed: Collection[int], where: str, hint: str) -> None:
    """Refuse missing texts in columns other than the allowed ones, which points may lack."""
    for column, name in enumerate(texts.names):
        rows = np.flatnonzero(texts.absent[:, column]).tolist()
        if rows and column not in allowed:
            listed = truncate(FROM_ZERO.names(rows), SHOWN)
            found = f"no text in column {name!r} for {listed}"
            raise DataError(where, found, "a text for each point", hint)


ALLOW_GAPS = 'Fill them, or set missing="zero": kernels are zero where a point lacks a '


@dataclass(frozen=True, eq=False)
class Features:
    """Points, dense or sparse, with the names of their features."""

    points: Floats  # (n, d)
    names: tuple[str, ...]
    named: bool  # True if the user gave the names
    gaps: bool = False  # True if points may lack features, which are then NaN
    views: dict[str, Features] = field(default_factory=dict)
    """Blocks that the features were given in; empty for a single block."""
    texts: TextColumns | None = None  # columns of texts beside the features
    rows: Any = None  # index of a frame
    weights: Floats | None = None
    """How often points count in widths and normalisations, (n,); None for once."""

    @property
    def n_points(self) -> int:
        """Number of points n."""
        return int(self.points.shape[0])

    @property
    def text_values(self) -> Array | None:
        """The texts, (n, t) str objects; None without any."""
        return None if self.texts is None else self.texts.values

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays that tell these points from others."""
        own = sparse_parts(self.points) if is_sparse(self.points) else (self.points,)
        weights = () if self.weights is None else (self.weights,)
        return (*own, *fingerprint_parts(self.texts), *weights)

    def at(self, rows: Ints, weights: Floats | None) -> Features:
        """Return some of the points, with their weights."""
        texts = None if self.texts is None else self.texts.of_rows(rows)
        return replace(self, points=self.points[rows], texts=texts, weights=weights)

    @classmethod
    def of(
        cls, X: Any, where: str = "X", *, gaps: bool = False, texts: Sequence[str] = ()
    ) -> Features:
        """Return a DataFrame, an array-like or sparse array (n, d), or views of these, checked.

        A feature ``a`` of a view ``v`` is called ``v.a``.  With `gaps`, points may lack features,
        which are NaN, and `texts`, which are columns of a DataFrame.
        """
        if isinstance(X, Features):  # of an estimator, which has checked them
            own = canonical(X.points) if is_sparse(X.points) else X.points.copy()
            refuse_twice(X.names, where)
            return replace(X, points=own, gaps=gaps)
        X, columns = divided(pandas_frame(X), texts, where)
        if columns is not None:
            check_texts(columns, range(len(texts) if gaps else 0), where, f"{ALLOW_GAPS}text")
            if not len(X.columns) and len(X):
                none = np.empty((len(X), 0))
                return cls(none, (), named=True, gaps=gaps, texts=columns, rows=X.index)
            return replace(cls.of(X, where, gaps=gaps), texts=columns)
        if isinstance(X, Mapping):
            views = {str(n): cls.of(x, f"{where}[{n!r}]", gaps=gaps) for n, x in X.items()}
            return cls._joined(views, where)
        rows = common_rows(where, {"X": X})
        if hasattr(X, "tocsr"):
            return cls._of_sparse(X, where)
        named = hasattr(X, "columns") and hasattr(X, "to_numpy")
        if named:
            names = tuple(map(str, X.columns))
            refuse_twice(names, where)
            points = frame_features(X, where)
        else:
            try:
                points = as_features(real_array(X, where, "(n, d) numbers"), where)
            except GramError as error:
                raise DataError(error.where, error.found, error.expected, error.hint) from None
            names = numbered_features(points.shape[1], where, "x")
        if not len(points):
            raise DataError(where, "no rows", "at least one point")
        _check_entries(points, names, where, gaps=gaps)
        return cls(points, names, named, gaps=gaps, rows=rows)

    @classmethod
    def _of_sparse(cls, matrix: Any, where: str) -> Features:
        """Return a sparse array or matrix of numbers, checked and not made dense."""
        if matrix.dtype.kind not in "fiub" or matrix.ndim != 2 or 0 in matrix.shape:
            found = f"a sparse array of {matrix.dtype}, shape {matrix.shape}"
            raise DataError(where, found, "(n, d) real numbers, at least one")
        from scipy.sparse import csr_array

        names = numbered_features(matrix.shape[1], where, "x")
        points = canonical(csr_array(matrix))
        check_sparse(points, where)
        return cls(points, names, named=False)

    @classmethod
    def _joined(cls, views: dict[str, Features], where: str) -> Features:
        """Return the features of several views side by side."""
        if not views:
            raise DataError(where, "no view", "at least one block of features")
        for name, view in views.items():
            if is_sparse(view.points):
                hint, place = "Call toarray() first", f"{where}[{name!r}]"
                raise DataError(place, "sparse features", "dense ones in views", hint)
        rows = common_rows("", {f"{where}[{name!r}]": view.rows for name, view in views.items()})
        if len({view.n_points for view in views.values()}) > 1:
            sizes = ", ".join(f"{view.n_points} of {name!r}" for name, view in views.items())
            found, expected = f"rows that differ: {sizes}", "the same points in each view"
            hint = 'Give a row of NaN to a point that lacks a view, and missing="zero" to the bank'
            raise DataError(where, found, expected, hint)
        return cls(
            np.hstack([view.points for view in views.values()]),
            tuple(f"{name}.{feature}" for name, view in views.items() for feature in view.names),
            named=True,
            gaps=any(view.gaps for view in views.values()),
            views=views,
            rows=rows,
        )

    def apart_from(self, X: Any) -> Features:
        """Return features that stay as they are when the array-like that gave them is changed."""
        own = is_sparse(self.points) or (self.points is not X and self.points.base is None)
        return self if own else replace(self, points=self.points.copy())

    def like(self, X: Any, where: str = "X_new") -> Features:
        """Return new points with the same features, columns of a DataFrame by their names."""
        if self.views:
            return self._like_views(X, where)
        texts = () if self.texts is None else self.texts.names
        new = Features.of(X, where, gaps=self.gaps, texts=texts)
        if new.named and self.named:
            place, known = {name: at for at, name in enumerate(new.names)}, set(self.names)
            missing = [name for name in self.names if name not in place]
            others = [name for name in new.names if name not in known]
            if missing or others:
                found = f"no column {missing[0]!r}" if missing else f"a column {others[0]!r}"
                hint = nearest(missing[0], others) if missing else "Leave it out"
                expected = f"the {len(self.names)} columns that the bank was made of"
                raise DataError(where, found, expected, hint)
            order = [place[name] for name in self.names]
            return replace(new, points=np.ascontiguousarray(new.points[:, order]), names=self.names)
        if len(new.names) != len(self.names):
            expected = f"{len(self.names)}, as the bank was made of"
            raise DataError(where, pluralize(len(new.names), "column"), expected)
        if is_sparse(self.points) and not is_sparse(new.points):
            from scipy.sparse import csr_array

            return replace(new, points=cast("Floats", csr_array(new.points)))
        if is_sparse(new.points) and not is_sparse(self.points):
            hint = "Call X_new.toarray(), or make the bank of sparse features"
            raise DataError(where, "sparse features", "dense ones, as the bank was made of", hint)
        return new

    def _like_views(self, X: Any, where: str) -> Features:
        """Return new points with the same views."""
        expected = f"a mapping of the views {', '.join(map(repr, self.views))}"
        if not isinstance(X, Mapping):
            raise DataError(where, f"one {type(X).__name__}", expected)
        by_name = {str(name): block for name, block in X.items()}
        missing = [name for name in self.views if name not in by_name]
        if missing:
            found = f"no view{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
            raise DataError(where, found, expected, nearest(missing[0], by_name))
        for name in by_name:
            if name not in self.views:
                raise DataError(where, f"a view {name!r}", expected, nearest(name, self.views))
        blocks = {n: v.like(by_name[n], f"{where}[{n!r}]") for n, v in self.views.items()}
        return Features._joined(blocks, where)


def refuse_twice(names: Sequence[str], where: str) -> None:
    """Refuse columns of one name."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(where, f"two columns {twice!r}", "a name of its own for every column")


def _check_entries(points: Floats, names: Sequence[str], where: str, *, gaps: bool) -> None:
    """Refuse infinite values, and missing ones unless points may lack features."""
    try:
        check_values(
            np.where(np.isnan(points), 0.0, points) if gaps else points, names, None, where
        )
    except DataError as error:
        infinite = "infinite" in error.found
        hint = "Correct them in the data" if infinite else f"{ALLOW_GAPS}feature"
        raise DataError(where, error.found, error.expected, hint) from None
    if gaps and np.isnan(points).all():
        raise DataError(where, "no value at all", "points with features", "Leave the view out")
