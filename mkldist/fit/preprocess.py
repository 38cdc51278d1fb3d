"""Rows, labels and weights of estimators, checked, and imputation and scaling before kernels."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_array, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from mkldist.core.arrays import LARGEST, LEAST, Array, Bools, Floats, Ints
from mkldist.core.wording import FROM_ZERO, truncate
from mkldist.data.checks import canonical, feature_position, numbered_features
from mkldist.data.dataset import Dataset, View, lacking_rows
from mkldist.data.labels import class_weights
from mkldist.data.preprocessing import FittedPreprocessing, fitted_preprocessing
from mkldist.data.tables import MISSING, frame_features, frame_texts, of_categories
from mkldist.errors import DataError, SpecError, UnknownCategoryWarning, nearest
from mkldist.fit.inputs import SHOWN, Features
from mkldist.kernel_functions.bases import is_sparse
from mkldist.spec.datasets import WORDS_FOR_FEATURES, PreprocessingSpec
from mkldist.spec.kinds import Imputation, MissingView

ENCODE = (
    'Give them the type "category" of pandas, encode them before, as by OneHotEncoder in a '
    "pipeline, drop them, or set texts=[names] for kernels of texts"
)
EXAMPLE = 'columns by the names of views, such as {"clinical": [0, 1], "genes": slice(2, 50)}'
CHOICES = (*get_args(MissingView), "error")
LEAVE_OUT = (
    "Leave these rows out: known = np.asarray(pd.notna(y)), then fit(X[known], y[known])",
    "a label or value for each row",
)
MARK = (
    "Mark rows without a label by the number -1: y = np.where(pd.isna(y), -1, y)",
    "a label for each row, -1 where it is unknown",
)


def in_numbers(X: Any) -> Any:
    """Return a DataFrame with its columns as numbers, NaN where missing; refuse other values."""
    if isinstance(X, pd.DataFrame):
        others = X.select_dtypes(exclude="number")
        if others.shape[1]:
            X = X.copy()
            X[others.columns] = frame_features(others, "X", ENCODE)
    return X


def categories_of(X: Any, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the categories of the columns of a DataFrame of a categorical type, by name.

    Columns of texts are none, nor are those whose categories are numbers or truth values.  Missing
    values are a category of their own, the last.
    """
    found = {}
    for name, column in X.items() if isinstance(X, pd.DataFrame) else ():
        if str(name) not in texts and of_categories(column.dtype):
            there = set(column.dropna())
            own = [str(one) for one in column.cat.categories if one in there]
            found[str(name)] = (*own, *([MISSING] if column.isna().any() else []))
    return found


def indicators(X: Any, categories: Mapping[str, Sequence[str]]) -> Any:
    """Return a DataFrame with columns of categories as their indicators, after all others."""
    if not isinstance(X, pd.DataFrame):
        listed = truncate([*map(repr, categories)], SHOWN)
        expected = f"a DataFrame, for columns of categories ({listed})"
        raise DataError("X", f"one {type(X).__name__}", expected, "Name columns")
    X, unknown = X.set_axis(list(map(str, X.columns)), axis=1), []
    blocks = [X.drop(columns=list(categories))]
    for name, own in categories.items():
        texts = [one or MISSING for one in frame_texts(X[name], "X")]
        blocks += [
            pd.Series([float(text == one) for text in texts], X.index, name=f"{name}={one}")
            for one in own
        ]
        unknown += [f"{name!r}: {text!r}" for text in dict.fromkeys(texts) if text not in own]
    if unknown:
        message = f"X: categories that the fit has not seen ({truncate(unknown, SHOWN)}), taken as "
        warnings.warn(f"{message}none of the known ones", UnknownCategoryWarning, stacklevel=5)
    return pd.concat(blocks, axis=1)


def column_views(
    views: Any,
    missing: Any,
    n_features: int,
    names: Sequence[str] | None,
    texts: Sequence[str],
    categories: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> tuple[dict[str, View], dict[str, View]]:
    """Return the views of an estimator as blocks of features, and of its columns of texts.

    Columns of X are given by number or name, several in a list, an array or a slice; `texts` names
    those of texts.  Columns of `categories` are features for each of these, after all others.
    """
    if missing not in CHOICES:
        hint = nearest(missing, CHOICES) if isinstance(missing, str) else ""
        expected = f"one of {', '.join(map(repr, CHOICES))}"
        raise SpecError("missing_views", f"{missing!r:.60}", expected, hint)
    if views is None:
        return {}, {}
    if not isinstance(views, Mapping) or not views:
        raise SpecError("views", f"{views!r:.60}", EXAMPLE)
    rule = None if missing == "error" else missing
    known = list(numbered_features(n_features, "X", "x") if names is None else names)
    numbers = [p for p, name in enumerate(known) if name not in texts and name not in categories]
    features: dict[int, tuple[int, ...]] = {p: (number,) for number, p in enumerate(numbers)}
    end = len(numbers)
    for name, own_categories in categories.items():
        features[known.index(name)] = tuple(range(end, end := end + len(own_categories)))
    of_numbers, of_texts = {}, {}
    for view, columns in views.items():
        if not isinstance(view, str) or view in WORDS_FOR_FEATURES or view in (names or ()):
            expected = "a name that is neither a word for features nor a column"
            raise SpecError("views", f"a view {view!r:.60}", expected)
        places = _positions(columns, known, f"views[{view!r}]")
        own = tuple(number for place in places for number in features.get(place, ()))
        others = tuple(texts.index(known[place]) for place in places if place not in features)
        if own:
            of_numbers[view] = View(own, rule)
        if others:
            of_texts[view] = View(others, rule)
    return of_numbers, of_texts


def _positions(columns: Any, names: Sequence[str], where: str) -> list[int]:
    """Return the positions of the columns of one view."""
    if isinstance(columns, slice):
        members: list[Any] = list(range(len(names))[columns])
    elif hasattr(columns, "dtype"):
        members = np.atleast_1d(np.asarray(columns)).tolist()
    else:
        single = isinstance(columns, str) or not isinstance(columns, Iterable)
        members = [columns] if single else list(columns)
    if any(isinstance(member, bool) or not isinstance(member, int | str) for member in members):
        hint = ""
        if any(isinstance(member, bool) for member in members):
            hint = "Give the numbers of the columns of a mask: np.flatnonzero(mask)"
        raise SpecError(where, f"{columns!r:.60}", "numbers from 0 or names of columns", hint)
    numbered = {name: place for place, name in enumerate(names)}
    found = [feature_position(member, numbered, where) for member in members]
    if not found or len(set(found)) < len(found):
        words = "a column twice" if found else "no columns"
        raise SpecError(where, words, "at least one column, each once")
    return found


def check_views(x: Floats, views: Mapping[str, View], *, fitting: bool) -> None:
    """Refuse rows (r, d) that lack a view which they must have, or to fit, all of them."""
    for name, view in views.items():
        missing = lacking_rows(x, view)
        if view.missing is None and missing.any():
            found = f"no value of view {name!r} for {_rows_of(missing)}"
            hint = 'Set missing_views="zero" for its kernels to be zero there, or "impute"'
            raise DataError("X", found, "a value of each view for each row", hint)
        if fitting and missing.all():
            expected = "at least one, to fit its scaling and kernels on"
            raise DataError(
                "X", f"no row with a value of view {name!r}", expected, "Leave the view out"
            )


def _rows_of(where: Bools) -> str:
    """Return the words for the rows of an array (n,) or (n, k) in which something is true."""
    rows = np.flatnonzero(where if where.ndim == 1 else where.any(axis=1))
    return truncate(FROM_ZERO.names(rows.tolist()), SHOWN)


def preparation(
    rows: Features, impute: Any, scale: Any, views: Mapping[str, View] = MappingProxyType({})
) -> FittedPreprocessing:
    """Return imputation and scaling as a sweep fits them, on rows that count as they weigh."""
    filled = _word("impute", impute, get_args(Imputation))
    spec = PreprocessingSpec(scale=_word("scale", scale, ("zscore", "minmax")) or "none", fit="all")
    x, y = rows.points, np.zeros(rows.n_points)
    dense, sparse = (None, x) if is_sparse(x) else (x if len(rows.names) else None, None)
    data = Dataset("X", dense, y, None, rows.names, sparse=sparse, weights=rows.weights)
    data = replace(data, views=dict(views), impute=filled)
    return fitted_preprocessing(spec, data, filled)


def _word(where: str, asked: Any, known: Sequence[str]) -> Any:
    """Return one of the known words; None for none."""
    if asked is None or (isinstance(asked, str) and asked == "none"):
        return None
    if not isinstance(asked, str) or asked not in known:
        hint = nearest(asked, known) if isinstance(asked, str) else ""
        hint = hint or "Put other transformers before the estimator, in a pipeline"
        raise SpecError(where, f"{asked!r:.60}", f"one of {', '.join(known)}, or None", hint)
    return asked


def check_labels(y: Any, *, may_lack: bool = False) -> None:
    """Refuse labels or values (n,) of which some are missing or infinite, by the first such rows.

    What is no array of rows is left to scikit-learn's checks.  `may_lack` says that -1 marks rows
    without a label.
    """
    if y is None or hasattr(y, "toarray"):
        return
    try:
        labels = np.asarray(y, dtype=object)
    except (TypeError, ValueError):
        return
    if labels.ndim not in (1, 2):
        return
    missing = pd.isna(labels)
    if missing.any():
        hint, expected = MARK if may_lack else LEAVE_OUT
        first = labels[missing].tolist()[0]
        raise DataError("y", f"{first!r} in {_rows_of(missing)}", expected, hint)
    infinite = (labels == np.inf) | (labels == -np.inf)
    if infinite.any():
        found = f"{labels[infinite][0]} in {_rows_of(infinite)}"
        raise DataError("y", found, "finite numbers")


def encoded(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Ints]:
    """Return the classes in order, and the number of each label's class."""
    if y.dtype == object and all(isinstance(one, bool | int | float) for one in y.tolist()):
        y = np.array(y.tolist())
    check_classification_targets(y)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        found = f"one class, {classes.tolist()[0]!r}" if len(classes) else "no labels"
        raise DataError("y", found, "two classes or more")
    return classes, numbers


def one_against_rest(numbers: Ints, n_classes: int, *, shared: bool) -> list[Floats]:
    """Return labels in {-1, +1}: of two classes those of one problem, of k > 2 those of k problems.

    With `shared` the k are the columns of one problem.
    """
    if n_classes == 2:
        return [np.where(numbers == 1, 1.0, -1.0)]
    columns = np.where(numbers[:, None] == np.arange(n_classes), 1.0, -1.0)
    return [columns] if shared else [np.ascontiguousarray(column) for column in columns.T]


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows of weight above zero, equal ones once.

    A row of weight 2 and two equal rows are thus one and the same.  Where rows weigh or some are
    equal, the order depends on their content alone.
    """

    first: Ints  # (m,), the first row of each
    weights: Floats | None  # (m,), sums of weights; None if all are 1
    number: Ints  # (n,), the place of each row in these; -1 for rows of weight 0

    @classmethod
    def of(
        cls, rows: Features, sample_weight: Any, beside: Sequence[Array], *, join: bool
    ) -> DistinctRows:
        """Return the rows that differ in features, texts or a value beside these, (n,) or (n, k).

        Only with `join` are equal rows made one; of others, those of weight zero are left out.
        """
        n = rows.n_points
        weights = sample_weights(np.zeros(n), sample_weight, None)
        used = np.arange(n) if weights is None else np.flatnonzero(weights)
        number, first = np.full(n, -1), used
        if join:
            keys = _digests(rows, beside, used)
            _, place, of_key = np.unique(keys, return_index=True, return_inverse=True)
            if weights is None and len(place) == len(used):
                return cls(used, None, used)
            own = np.bincount(of_key, None if weights is None else weights[used])
            first, number[used], weights = used[place], of_key, own.astype(np.float64)
        else:
            number[used] = np.arange(len(used))
            weights = None if weights is None else weights[used]
        return cls(first, None if weights is None or (weights == 1.0).all() else weights, number)

    def at(self, rows: Ints) -> Ints:
        """Return the places of some rows, each once."""
        found = np.unique(self.number[rows])
        return found[found >= 0]


def _digests(rows: Features, beside: Sequence[Array], used: Ints) -> list[str]:
    """Return what tells rows from others by their content."""
    points, texts = rows.points, rows.text_values
    sparse = canonical(points) if is_sparse(points) else None
    columns = [
        np.asarray(one)[used].tolist() for one in (*beside, *([] if texts is None else [texts]))
    ]
    found = []
    for i, *values in zip(used.tolist(), *columns, strict=True):
        key = hashlib.blake2b(digest_size=16)
        if sparse is None:
            key.update((points[i] + 0.0).tobytes())  # -0.0 is 0.0
        else:
            own = slice(sparse.indptr[i], sparse.indptr[i + 1])
            key.update(sparse.indices[own].astype(np.int64).tobytes() + sparse.data[own].tobytes())
        key.update(repr(values).encode())
        found.append(key.hexdigest())
    return found


def sample_weights(y: npt.NDArray[Any], sample_weight: Any, class_weight: Any) -> Floats | None:
    """Return the weight of each row, that of the sample times that of its class; None for ones.

    `sample_weight` is (n,), zero or above, or None, and `class_weight` as scikit-learn takes it; a
    row counts as often as it weighs where classes are balanced.
    """
    if sample_weight is None and class_weight is None:
        return None
    if isinstance(sample_weight, Real | None):
        sample_weight = np.full(len(y), 1.0 if sample_weight is None else sample_weight)
    weights: Floats = check_array(
        sample_weight,
        dtype=np.float64,
        ensure_2d=False,
        ensure_non_negative=True,
        copy=True,
        input_name="sample_weight",
    )
    if weights.shape != y.shape:
        raise DataError("sample_weight", f"shape {weights.shape}", f"{y.shape}: one weight a row")
    bad = np.flatnonzero((weights > LARGEST) | ((weights < LEAST) & (weights != 0.0)))
    if len(bad):
        expected = f"0, or a number from {LEAST:g} to {LARGEST:g}"
        raise DataError(f"sample_weight[{bad[0]}]", f"{weights[bad[0]]:g}", expected)
    if not weights.any():
        raise DataError("sample_weight", "zero for every row", "at least one weight above zero")
    if class_weight is not None:
        counts = weights > 0.0
        classes, numbers = np.unique(y[counts], return_inverse=True)
        if isinstance(class_weight, str) and class_weight == "balanced":
            names = tuple(map(str, classes.tolist()))
            of_class = class_weights("balanced", names, numbers, weights[counts])
        else:
            try:
                of_class = compute_class_weight(class_weight, classes=classes, y=y[counts])
            except (ValueError, TypeError):
                of_class = np.zeros(1)
        if not (np.isfinite(of_class) & (of_class > 0.0)).all():
            named = truncate([*map(repr, classes.tolist())], SHOWN)
            expected = f"'balanced', None, or a dict of weights above zero by class, of {named}"
            raise DataError("class_weight", f"{class_weight!r:.60}", expected)
        weights[counts] *= of_class[numbers]
    return None if bool((weights == 1.0).all()) else weights
