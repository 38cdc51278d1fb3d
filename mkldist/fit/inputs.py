"""What a user gives in Python: points, labels, weights, groups, views and texts, checked once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from mkldist.arrays import Array, Floats, Ints
from mkldist.counted import counted
from mkldist.data.frames import frame_features, frame_texts
from mkldist.data.listing import first_of
from mkldist.data.missing import check_values
from mkldist.data.raw import as_features
from mkldist.data.sparse_features import canonical, check_sparse
from mkldist.data.texts import TextColumns
from mkldist.errors import DataError, GramError, SpecError, nearest
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.methods.registry import METHODS, methods_for
from mkldist.row_places import FROM_ZERO
from mkldist.solvers.base import Method
from mkldist.solvers.refusals import Part, ProblemFacts, Refusal, one_of
from mkldist.solvers.targets import learns_unlabelled, losses_by_target
from mkldist.target import Target

FEW = 20  # whole numbers: as many may be classes


def label_hint(method: Method, distinct: Sequence[float], target: Target) -> str:
    """Return what to do about labels, "" where that is not known.

    Parameters
    ----------
    method : Method
        The method, which refused them.
    distinct : sequence of float
        The distinct labels, in order.
    target : Target
        What the method learns with its settings.

    Examples
    --------
    >>> label_hint(METHODS["level"], [0.0, 1.0], Target.CLASSES)
    'Write np.where(y == 1, 1, -1)'
    >>> label_hint(METHODS["spicymkl"], [0.3, 0.5, 2.1], Target.CLASSES)
    'For real values, set loss="squared"'
    """
    if target not in (Target.CLASSES, Target.PARTIAL) or len(distinct) < 2:
        return ""
    if len(distinct) == 2:
        return f"Write np.where(y == {distinct[1]:g}, 1, -1)"
    if set(distinct) == {-1.0, 0.0, 1.0}:
        able = [name for name, other in METHODS.items() if learns_unlabelled(other)]
        return f"If 0 marks points without a label, call {one_of(able)}"
    if all(label.is_integer() for label in distinct) and len(distinct) <= FEW:
        one = f"y == {distinct[-1]:g}"
        return f"Call it for each class, as by np.where({one}, 1, -1); {_for_values(method)}"
    hint = _for_values(method)
    return f"{hint[0].upper()}{hint[1:]}"


def _for_values(method: Method) -> str:
    """Return which method, or which loss of this one, learns real values."""
    own = losses_by_target(method.params).get(Target.VALUES)
    if own:
        return f'for real values, set loss="{own[0]}"'
    able = {name: losses_by_target(other.params) for name, other in METHODS.items()}
    names = [name for name, losses in able.items() if Target.VALUES in losses]
    return f'for real values, call {one_of(names)} with loss="{able[names[0]][Target.VALUES][0]}"'


SYMMETRY = 1e-8  # asymmetry, relative to the largest entry, that rounding explains
SHOWN = 5  # distinct labels in a message
MAKE_LAPLACIAN = (
    'Give laplacian=graph_laplacian(X, graph_spec({"neighbours": 10})), of the features X of the '
    "points, by functions of mkldist.kernels.graph"
)


def real_array(given: Any, where: str, expected: str, hint: str = "") -> Floats:
    """Return an array-like as float64; refuse anything but real numbers in rows of one length."""
    refuse_masked(given, where)
    try:
        array = np.asarray(given)
        if array.dtype.kind in "fiubO":
            return np.asarray(array, dtype=np.float64)
        found = f"texts such as {array.flat[0]!s:.30}" if array.dtype.kind in "US" else ""
    except (TypeError, ValueError) as error:
        raise GramError(where, f"{_described(given)} ({error})", expected, hint) from None
    raise GramError(where, found or f"an array of {array.dtype}", expected, hint)


def refuse_masked(given: Any, where: str) -> None:
    """Refuse an array of numpy with masked entries, which others would read as numbers.

    Raises
    ------
    mkldist.errors.GramError
        If any entry is masked.
    """
    if isinstance(given, np.ndarray) and np.any(getattr(given, "mask", False)):
        hint = "Fill them, as by array.filled(numpy.nan), or leave these points out"
        raise GramError(where, "masked entries", "a number everywhere", hint)


def _described(given: Any) -> str:
    """Return the name of an object's type, with its module unless that is ``builtins``."""
    return f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")


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

    Parameters
    ----------
    method : Method
        The method.
    target : Target
        Labels that it learns with its settings.
    labels : (n,) or (n, k) float64
        The labels, finite.
    has_laplacian : bool
        True if a graph Laplacian was given.
    weighted : bool
        True if points have weights.
    folds : int
        Folds that its settings choose, ``params.chosen_folds``.
    grouped : bool
        True if kernels have groups.
    in_memory : int, optional
        Points up to which memory would hold matrices, of a bank that has thin factors of the
        kernels; None for other banks.
    rounded : bool
        True if these factors are rounded to float32.

    Raises
    ------
    mkldist.errors.SpecError
        For a Laplacian, columns of labels, weights of points, groups of kernels or factors that the
        method does not take, and for more folds than a class has points.
    mkldist.errors.GramError
        For labels of another kind.
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
    match refusal.part:
        case Part.LAPLACIAN:
            raise _refused_laplacian(method, refusal, given=has_laplacian)
        case Part.CLASSES:
            raise SpecError(
                "method",
                f"{method.name} with labels of shape {labels.shape}, but it {refusal.reason}",
                _others(refusal, problem),
                "Or call it for one column at a time",
            )
        case Part.WEIGHTS | Part.GROUPS:
            word = refusal.part.value
            found = f"{word} for {method.name}, which {refusal.reason}"
            raise SpecError(word, found, f"{refusal.expected}, or {_others(refusal, problem)}")
        case Part.FOLDS:
            raise SpecError("folds", f"{folds}", refusal.expected, "Lower it, or omit it")
        case Part.FACTORS:
            found = f"{method.name} on a bank of factors, but it {refusal.reason}, which half of "
            found += f"this machine's memory holds up to {in_memory:,} points"
            others = _others(refusal, ProblemFacts(factors=True))
            raise SpecError("method", found, others, "Or make the bank with another backend")
        case Part.ROUNDED:
            found = f"{method.name} on a bank of factors of float32, but it {refusal.reason}"
            others = _others(refusal, ProblemFacts(factors=True, rounded=True))
            raise SpecError("method", found, others, f"Or make the bank with {refusal.expected}")
        case Part.LABELS:
            raise _refused_labels(method, columns, target, refusal)


def _others(refusal: Refusal, problem: ProblemFacts) -> str:
    """Return the words for methods that take a problem, whatever its labels, with their names."""
    return f"{refusal.others}: {one_of(methods_for(replace(problem, targets=None)))}"


def _refused_labels(
    method: Method, columns: Sequence[list[float]], target: Target, refusal: Refusal
) -> GramError:
    """Return the error of the first column of distinct labels that do not fit."""
    distinct = next(column for column in columns if not _fits(column, target))
    shown = [f"{value:g}" for value in distinct[:SHOWN]] + ["..."] * (len(distinct) > SHOWN)
    hint = label_hint(method, distinct, target)
    return GramError("y", f"labels {{{', '.join(shown)}}}", refusal.expected, hint)


def _refused_laplacian(method: Method, refusal: Refusal, *, given: bool) -> SpecError:
    """Return the error of a Laplacian that a method needs or does not use."""
    if not given:
        found = f"none for {method.name}, which {refusal.reason}"
        return SpecError("laplacian", found, refusal.expected, MAKE_LAPLACIAN)
    able = one_of(methods_for(ProblemFacts(laplacian=True)))
    found = f"one for {method.name}, which {refusal.reason}"
    return SpecError("laplacian", found, f"{refusal.expected}, or {refusal.others}: {able}")


def _fits(values: Sequence[float], target: Target) -> bool:
    """Return True if distinct, finite labels are of a kind, see :class:`mkldist.target.Target`."""
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


def weight_array(weights: Any, n: int) -> Floats | None:
    """Return weights of the points as (n,) float64; None stays None.

    Raises
    ------
    mkldist.errors.GramError
        For another shape, and for weights that are not finite and positive.
    """
    if weights is None:
        return None
    given = real_array(weights, "weights", "numbers, one a point")
    if given.shape != (n,):
        raise GramError("weights", f"shape {given.shape}", f"({n},): one weight a point")
    bad = np.flatnonzero(~(np.isfinite(given) & (given > 0.0)))
    if len(bad):
        hint = "Leave out points that are to have no weight"
        raise GramError(f"weights[{bad[0]}]", f"{given[bad[0]]:g}", "a positive number", hint)
    return np.ascontiguousarray(given)


def group_array(groups: Any, n_kernels: int) -> Ints:
    """Return groups of kernels, by name or number, as numbers (M,); None is a group of its own.

    Raises
    ------
    mkldist.errors.GramError
        For anything but one name or number a kernel.
    """
    expected = f"{n_kernels} names or numbers, one a kernel"
    if isinstance(groups, str | bytes) or not hasattr(groups, "__len__"):
        raise GramError("groups", f"{groups!r:.60}", expected)
    if len(groups) != n_kernels:
        raise GramError("groups", f"{len(groups)} for {counted(n_kernels, 'kernel')}", expected)
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

    Parameters
    ----------
    laplacian : (n, n) array-like or sparse array, or None
        Laplacian as a user gave it.
    n : int
        Number of points.

    Raises
    ------
    mkldist.errors.GramError
        For a matrix of another shape, entries that are not finite, an asymmetry above 1e-8 of the
        largest entry, or an eigenvalue below -1e-8 of the trace.
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
        raise GramError(
            "laplacian", f"an eigenvalue of {smallest:g}", "a positive semi-definite matrix"
        )
    return matrix.astype(np.float64)


def text_names(given: Any) -> tuple[str, ...]:
    """Return the names of columns of texts that a user lists; None stands for no column.

    Raises
    ------
    mkldist.errors.SpecError
        For anything but a list of names.
    """
    if given is None:
        return ()
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        hint = f"Write texts=[{given!r}]" if isinstance(given, str) else ""
        raise SpecError("texts", f"{given!r:.60}", "a list of names of columns", hint)
    return tuple(given)


def divided(given: Any, names: Sequence[str], where: str) -> tuple[Any, TextColumns | None]:
    """Return a DataFrame without its columns of texts, and these.

    Parameters
    ----------
    given : DataFrame or other features
        The points.
    names : sequence of str
        Columns of texts; without any, the points are returned as they are.
    where : str
        The place to name in a message.

    Raises
    ------
    mkldist.errors.DataError
        For anything but a DataFrame, and for columns that it lacks.
    """
    if not len(names):
        return given, None
    if not (hasattr(given, "columns") and hasattr(given, "to_numpy")):
        listed = first_of([repr(name) for name in names], SHOWN)
        expected = f"a DataFrame, for columns of texts ({listed})"
        raise DataError(where, f"one {type(given).__name__}", expected, "Name columns")
    frame = given.set_axis(list(map(str, given.columns)), axis=1)
    for place, name in enumerate(names):
        if name not in frame.columns:
            hint = nearest(name, frame.columns)
            raise DataError(f"{where}: texts", f"no column {name!r}", "names of columns", hint)
        if name in names[:place] or list(frame.columns).count(name) > 1:
            raise DataError(f"{where}: texts", f"column {name!r} twice", "each once")
    texts = TextColumns.of({name: frame_texts(frame[name], where) for name in names})
    return frame.drop(columns=list(names)), texts


def check_texts(texts: TextColumns, allowed: Collection[int], where: str, hint: str) -> None:
    """Refuse missing texts in columns that points may not lack.

    Parameters
    ----------
    texts : TextColumns
        The texts.
    allowed : collection of int
        Columns that points may lack.
    where : str
        The place to name in a message.
    hint : str
        What to do.

    Raises
    ------
    mkldist.errors.DataError
        Naming the first such column and some of the points.
    """
    for column, name in enumerate(texts.names):
        rows = np.flatnonzero(texts.absent[:, column]).tolist()
        if rows and column not in allowed:
            listed = first_of(FROM_ZERO.names(rows), SHOWN)
            found = f"no text in column {name!r} for {listed}"
            raise DataError(where, found, "a text for each point", hint)


ALLOW_GAPS = 'Fill them, or set missing="zero": kernels are zero where a point lacks a text'


@dataclass(frozen=True, eq=False)
class Features:
    """Points with the names of their features.

    Parameters
    ----------
    points : (n, d) float64 array or csr_array
        The points, finite; NaN where a point lacks a feature, if it may.
    names : tuple of str
        d names; ``x0``, ``x1`` and so on for an array.
    named : bool
        True if the user gave the names: the columns of a DataFrame.
    gaps : bool
        True if points may lack features.
    views : dict of str to Features
        The blocks that the features were given in, by name; empty for a single block.
    texts : TextColumns, or None
        Columns of texts beside the features; None without any.
    """

    points: Floats
    names: tuple[str, ...]
    named: bool
    gaps: bool = False
    views: dict[str, Features] = field(default_factory=dict)
    texts: TextColumns | None = None

    @property
    def n_points(self) -> int:
        """Number of points n."""
        return int(self.points.shape[0])

    @property
    def columns_of_views(self) -> dict[str, tuple[int, ...]]:
        """The columns of each view."""
        found, first = {}, 0
        for name, view in self.views.items():
            found[name] = tuple(range(first, first + len(view.names)))
            first += len(view.names)
        return found

    @classmethod
    def of(
        cls, given: Any, where: str = "X", *, gaps: bool = False, texts: Sequence[str] = ()
    ) -> Features:
        """Return a DataFrame or an array-like (n, d) of numbers, or views of these, checked.

        Parameters
        ----------
        given : array-like, sparse array, DataFrame, or mapping of str to these
            The features, or blocks of them by name.  A feature ``a`` of a view ``v`` is called
            ``v.a``.
        where : str
            The place to name in a message.
        gaps : bool
            True to permit NaN for features that a point lacks, and missing texts.
        texts : sequence of str
            Columns of a DataFrame that are texts.

        Raises
        ------
        mkldist.errors.DataError
            For other shapes, texts, missing or infinite values, and columns of the same name.
        """
        given, of_texts = divided(given, texts, where)
        if of_texts is not None:
            check_texts(of_texts, range(len(texts) if gaps else 0), where, ALLOW_GAPS)
            if not len(given.columns) and len(given):
                return cls(np.empty((len(given), 0)), (), named=True, gaps=gaps, texts=of_texts)
            return replace(cls.of(given, where, gaps=gaps), texts=of_texts)
        if isinstance(given, Mapping):
            return _joined(
                {str(n): cls.of(x, f"{where}[{n!r}]", gaps=gaps) for n, x in given.items()}, where
            )
        if hasattr(given, "tocsr"):
            return cls._of_sparse(given, where)
        named = hasattr(given, "columns") and hasattr(given, "to_numpy")
        if named:
            names = tuple(map(str, given.columns))
            twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
            if twice is not None:
                raise DataError(
                    where, f"two columns {twice!r}", "a name of its own for every column"
                )
            points = frame_features(given, where)
        else:
            points = _array(given, where)
            names = tuple(f"x{j}" for j in range(points.shape[1]))
        if not len(points):
            raise DataError(where, "no rows", "at least one point")
        if gaps:
            _check_known(points, names, where)
            return cls(points, names, named, gaps=True)
        return cls(_finite(points, names, where), names, named)

    def apart_from(self, given: Any) -> Features:
        """Return features that stay as they are when the array-like that gave them is changed."""
        own = is_sparse(self.points) or (self.points is not given and self.points.base is None)
        return self if own else replace(self, points=self.points.copy())

    @classmethod
    def _of_sparse(cls, given: Any, where: str) -> Features:
        """Return a sparse array or matrix of numbers, checked and not made dense."""
        if given.dtype.kind not in "fiub" or given.ndim != 2 or 0 in given.shape:
            found = f"a sparse array of {given.dtype}, shape {given.shape}"
            raise DataError(where, found, "(n, d) real numbers, at least one")
        from scipy.sparse import csr_array

        points = canonical(csr_array(given))
        check_sparse(points, where)
        return cls(points, tuple(f"x{j}" for j in range(points.shape[1])), named=False)

    def like(self, given: Any, where: str = "X_new") -> Floats:
        """Return new points with the same features, (t, d), columns of a DataFrame by their names.

        Raises
        ------
        mkldist.errors.DataError
            For other columns, and as :meth:`of`.
        """
        if self.views:
            return self._like_views(given, where)
        new = self._new(given, where)
        if new.named and self.named:
            missing = [name for name in self.names if name not in new.names]
            others = [name for name in new.names if name not in self.names]
            if missing or others:
                found = f"no column {missing[0]!r}" if missing else f"a column {others[0]!r}"
                hint = nearest(missing[0], others) if missing else "Leave it out"
                raise DataError(
                    where, found, f"the {len(self.names)} columns that the bank was made of", hint
                )
            return np.ascontiguousarray(
                new.points[:, [new.names.index(name) for name in self.names]]
            )
        if len(new.names) != len(self.names):
            raise DataError(
                where,
                counted(len(new.names), "column"),
                f"{len(self.names)}, as the bank was made of",
            )
        if is_sparse(self.points) and not is_sparse(new.points):
            from scipy.sparse import csr_array

            return cast("Floats", csr_array(new.points))
        if is_sparse(new.points) and not is_sparse(self.points):
            hint = "Call X_new.toarray(), or make the bank of sparse features"
            raise DataError(where, "sparse features", "dense ones, as the bank was made of", hint)
        return new.points

    def texts_like(self, given: Any, where: str = "X_new") -> Array:
        """Return the texts of new points in the same columns, (t, c) str objects.

        Raises
        ------
        mkldist.errors.DataError
            For columns that are absent, and for missing texts unless points may lack them.
        """
        texts = self._new(given, where).texts
        return np.empty((0, 0), dtype=object) if texts is None else texts.values

    def _new(self, given: Any, where: str) -> Features:
        names = () if self.texts is None else self.texts.names
        return Features.of(given, where, gaps=self.gaps, texts=names)

    def _like_views(self, given: Any, where: str) -> Floats:
        """Return new points with the same views."""
        expected = f"a mapping of the views {', '.join(map(repr, self.views))}"
        if not isinstance(given, Mapping):
            raise DataError(where, f"one {type(given).__name__}", expected)
        names = [str(name) for name in given]
        lacking = [name for name in self.views if name not in names]
        if lacking:
            found = f"no view{'s' * (len(lacking) > 1)} {', '.join(map(repr, lacking))}"
            raise DataError(where, found, expected, nearest(lacking[0], names))
        for name in names:
            if name not in self.views:
                raise DataError(where, f"a view {name!r}", expected, nearest(name, self.views))
        by_name = {str(name): x for name, x in given.items()}
        blocks = {n: v.like(by_name[n], f"{where}[{n!r}]") for n, v in self.views.items()}
        _check_sizes({name: len(block) for name, block in blocks.items()}, where)
        return np.hstack(list(blocks.values()))


def _joined(views: dict[str, Features], where: str) -> Features:
    """Return the features of several views side by side."""
    if not views:
        raise DataError(where, "no view", "at least one block of features")
    for name, view in views.items():
        if is_sparse(view.points):
            hint = "Call toarray() first"
            raise DataError(f"{where}[{name!r}]", "sparse features", "dense ones in views", hint)
    _check_sizes({name: view.n_points for name, view in views.items()}, where)
    return Features(
        np.hstack([view.points for view in views.values()]),
        tuple(f"{name}.{feature}" for name, view in views.items() for feature in view.names),
        named=True,
        gaps=any(view.gaps for view in views.values()),
        views=views,
    )


def _check_sizes(sizes: Mapping[str, int], where: str) -> None:
    """Refuse views of different numbers of points."""
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{count} of {name!r}" for name, count in sizes.items())
        hint = 'Give a row of NaN to a point that lacks a view, and missing="zero" to the bank'
        raise DataError(where, f"rows that differ: {found}", "the same points in each view", hint)


def _check_known(points: Floats, names: Sequence[str], where: str) -> None:
    """Refuse infinite values, and features that no point has."""
    check_values(np.where(np.isnan(points), 0.0, points), names, None, where)
    empty = np.flatnonzero(np.isnan(points).all(axis=0))
    if len(empty) == len(names):
        raise DataError(where, "no value at all", "points with features", "Leave the view out")


def _array(given: Any, where: str) -> Floats:
    """Return an array-like as (n, d) float64."""
    try:
        return as_features(real_array(given, where, "(n, d) numbers"), where)
    except GramError as error:
        raise DataError(error.where, error.found, error.expected, error.hint) from None


def _finite(points: Floats, names: Sequence[str], where: str) -> Floats:
    """Return points without missing values; the hint is one for arrays, not for sweep files."""
    try:
        check_values(points, names, None, where)
    except DataError as error:
        hint = 'Fill them, or set missing="zero": kernels are zero where a point lacks a feature'
        if "infinite" in error.found:
            hint = "Correct them in the data"
        raise DataError(where, error.found, error.expected, hint) from None
    return points
