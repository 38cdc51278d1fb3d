"""Fitted models, all that predictions on new rows need, and their files.

A file is one frame of :mod:`mkldist.core.checksums`, of arrays and words without code: kernels are
described in words, and points that decision functions share stand there once.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from mkldist.bank.bank_kernels import GivenKernel
from mkldist.calibration import Calibrated
from mkldist.core.arrays import Array, Bools, Floats
from mkldist.core.checksums import Arrays, frame, unframed
from mkldist.core.durable import MAGIC, remove_temporaries, write_file, writing
from mkldist.core.threads import n_processors, single_threaded
from mkldist.core.wording import html_of, pluralize, truncate
from mkldist.data.checks import as_sparse, check_sparse, common_rows
from mkldist.data.dataset import (
    SourceColumns,
    TextColumns,
    View,
    absent_of,
    as_arrays,
    from_arrays,
    lacking_rows,
    sparse_parts,
)
from mkldist.data.preprocessing import FeatureScale, FittedPreprocessing
from mkldist.errors import (
    DataError,
    MkldistError,
    SpecError,
    StoreError,
    UnknownCategoryWarning,
    nearest,
)
from mkldist.fit.decision import Between, Contributions, Expansion, LabelCoding, Labels, TextSupport
from mkldist.fit.inputs import SHOWN
from mkldist.fit.new_rows import (
    Block,
    GivenRows,
    NewRows,
    ViewRows,
    kernel_view,
    lacks,
    opened_rows,
    table_view,
    unseen_lines,
)
from mkldist.kernel_functions import FUNCTIONS
from mkldist.kernel_functions.bases import is_sparse
from mkldist.kernel_functions.custom import CUSTOM_CODE, CustomFunction, CustomKernel, search_first
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.kinds import as_path, check_flags

if TYPE_CHECKING:
    import pandas as pd

KIND = "mkldist model"
FORMAT = 8  # raised when what a file holds changes
EXPECTED = "a model that mkldist wrote"
TEXTS = ("texts.content", "texts.ends")
SPARSE = ("points.data", "points.indices", "points.indptr", "points.shape")
PROBED = 8  # support points between which a model keeps the values of the user's functions
AGREEMENT = 1e-8  # of the largest of these values

PLAIN: dict[str, Any] = {
    "columns": SourceColumns,
    "feature_names": tuple[str, ...],
    "views": dict[str, View],
    "view_columns": dict[str, SourceColumns],
    "given": GivenRows | None,
    "texts": dict[str, bool],
    "calibration": Calibrated | None,
}
"""Fields of a model that stand in the header as JSON, with their types."""

Description = dict[str, Any]


def write_model(file: Path, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a model to a file, which appears whole or not at all."""
    content = frame({"kind": KIND, "format": FORMAT, **header}, arrays)
    with writing(file):
        remove_temporaries(file.parent)
        write_file(file, [content])


def read_model(file: Path) -> tuple[dict[str, Any], Arrays]:
    """Read header and arrays of a model, checked by their checksums; nothing is imported."""
    where = str(file)
    try:
        content = file.read_bytes()
    except FileNotFoundError as error:
        near = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        hint = nearest(file.name, near) or "Fit one: mkldist fit RESULTS -o MODEL"
        raise StoreError(where, "no such file", "a model", hint) from error
    except OSError as error:
        found = "a folder" if file.is_dir() else f"a file that cannot be read ({error.strerror})"
        raise StoreError(where, found, "the file of a model") from error
    read = unframed(content)
    if read is None:
        is_frame = content.startswith(MAGIC)
        fault = "a file that is damaged or cut short" if is_frame else "no model"
        hint = "Copy it again, or fit it again" if is_frame else "Fit one: mkldist fit RESULTS"
        raise StoreError(where, fault, EXPECTED, hint)
    header, arrays = read
    if header.get("kind") != KIND:
        raise StoreError(where, "another file of mkldist", EXPECTED, "Name the file of a model")
    if header.get("format") != FORMAT:
        version = header.get("mkldist")
        found = f"format {header.get('format')}, written by mkldist {version}"
        hint = f"Fit it again, or read it by mkldist {version}"
        raise StoreError(where, found, f"format {FORMAT}", hint)
    return header, arrays


@contextmanager
def understood(where: str) -> Iterator[None]:
    """Refuse a content that no version of mkldist wrote, although its checksums are right."""
    try:
        yield
    except MkldistError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        found = f"a content that is no model's ({type(error).__name__}: {error})"
        raise StoreError(where, found, EXPECTED, "Fit it again") from error


def packed(
    functions: Sequence[Expansion], weights: Sequence[Floats]
) -> tuple[list[Description], Arrays]:
    """Return decision functions, and the weights that their method found, for a file."""
    of_texts = [one.texts.points.shape[1] for one in functions if one.texts is not None]
    texts = [
        np.full((one.n_support, max(of_texts, default=0)), "", dtype=object)
        if one.texts is None
        else one.texts.points
        for one in functions
    ]
    places, arrays = packed_points([one.points for one in functions], texts)
    descriptions = []
    for number, (function, own) in enumerate(zip(functions, weights, strict=True)):
        arrays |= {
            f"{number}.support": places[number],
            f"{number}.index": function.index.astype(np.int64),
            f"{number}.weights": function.weights,
            f"{number}.coefficients": function.coefficients,
            f"{number}.bias": function.bias,
            f"{number}.kernel_weights": own,
        }
        if function.rows is not None:
            arrays[f"{number}.rows"] = function.rows.astype(np.int64)
        for kind, support in _supports(function).items():
            if has_code(support.kernels):
                arrays[f"{number}.probe.{kind}"] = _probe(support)
        descriptions.append(
            {
                "cosine": function.cosine,
                "kernels": described(function.kernels),
                "given": [[one.view, one.number, one.label] for one in function.given],
                "texts": None if function.texts is None else described(function.texts.kernels),
            }
        )
    return descriptions, arrays


def unpacked(
    descriptions: Sequence[Mapping[str, Any]], arrays: Arrays, where: str, code: Path | None = None
) -> tuple[Expansion, ...]:
    """Return the decision functions of a file.

    Functions of the user are imported, `code` being the folder to search first, and must give the
    values that they gave in the fit; if it is None, they are refused.
    """
    kernels = [one for f in descriptions for one in (*f["kernels"], *(f["texts"] or ()))]
    names = sorted({kernel["code"] for kernel in kernels if "code" in kernel})
    if names and code is None:
        found = f"kernel functions that are not mkldist's: {', '.join(map(repr, names))}"
        hint = "Repeat the command with --allow-code, or call load_model(path, allow_code=True), "
        hint += "if you trust this code"
        raise StoreError(where, found, "kernel functions of mkldist, or --allow-code", hint)
    if names and code is not None:
        search_first(str(code.absolute()))
    points, texts = unpacked_points(arrays)
    functions = []
    for number, fields in enumerate(descriptions):
        own = arrays[f"{number}.support"]
        function = Expansion(
            kernels=kernel_list(fields["kernels"], where),
            index=arrays[f"{number}.index"].astype(np.intp),
            cosine=bool(fields["cosine"]),
            points=points[own],
            weights=arrays[f"{number}.weights"],
            coefficients=arrays[f"{number}.coefficients"],
            bias=arrays[f"{number}.bias"],
            given=tuple(GivenKernel(*one) for one in fields["given"]),
            rows=arrays.get(f"{number}.rows"),
            texts=None
            if fields["texts"] is None
            else TextSupport(kernel_list(fields["texts"], where), texts[own]),
        )
        for kind, support in _supports(function).items():
            if has_code(support.kernels):
                _check_probe(support, arrays[f"{number}.probe.{kind}"], where)
        functions.append(function)
    return tuple(functions)


def packed_points(
    parts: Sequence[Floats], texts: Sequence[Array]
) -> tuple[list[npt.NDArray[np.int64]], Arrays]:
    """Return the places of each part's points among all distinct ones, and the arrays of these.

    Points are the same where all of their bits are, for NaN marks features that a point lacks, and
    their texts are: (s, d) float64 arrays or csr_arrays, and (s, t) arrays of str objects.
    """
    sparse = is_sparse(parts[0])
    join: Callable[..., Any] = scipy.sparse.vstack if sparse else np.concatenate
    points = scipy.sparse.csr_array(join(parts)) if sparse else join(parts)
    own_texts = np.concatenate(texts)
    keys = []
    for row, words in enumerate(own_texts.tolist()):
        bits = points[[row]]
        if sparse:
            bits = np.concatenate([bits.indices, bits.data])
        keys.append((bits.tobytes(), *words))
    number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    places = np.array([number[key] for key in keys], dtype=np.int64)
    first = np.unique(places, return_index=True)[1]
    points, own_texts = points[first], own_texts[first]
    arrays = Arrays()
    if own_texts.size:
        arrays |= dict(zip(TEXTS, as_arrays(own_texts), strict=True))
    if sparse:
        arrays |= dict(zip(SPARSE, sparse_parts(points), strict=True))
    else:
        arrays["points"] = points
    return np.split(places, np.cumsum([part.shape[0] for part in parts])[:-1]), arrays


def unpacked_points(arrays: Arrays) -> tuple[Any, Array]:
    """Return the points and the texts of :func:`packed_points`."""
    if "points" in arrays:
        points: Any = arrays["points"]
    else:
        data, indices, indptr, shape = (arrays[name] for name in SPARSE)
        points = scipy.sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    if TEXTS[0] not in arrays:
        return points, np.empty((points.shape[0], 0), dtype=object)
    content, ends = (arrays[name] for name in TEXTS)
    return points, from_arrays(content, ends)


def described(kernels: KernelList) -> list[Description]:
    """Return kernels as a file takes them: function, parameters, features and their label."""
    found = []
    for m in range(len(kernels)):
        description: Description = {
            "features": kernels.features_of(m).tolist(),
            "label": kernels.subset_labels.get(int(kernels.subset[m])),
        }
        own = kernels.custom_of(m)
        if own is None:
            description |= {
                "function": kernels.function_of(m).label,
                "parameter": float(kernels.parameter[m]),
                "offset": float(kernels.offset[m]),
            }
        elif own.function.reference:
            description |= {"code": own.function.reference, "arguments": dict(own.arguments)}
        else:
            raise SpecError(
                "model",
                f"kernel function {own.function.label!r}, which no name imports",
                'a function "package.module:function": the file of a model holds no code',
                "Define it at the top of a file of its own, and import it from there",
            )
        found.append(description)
    return found


def kernel_list(described: Sequence[Description], where: str = "model") -> KernelList:
    """Return the kernels that :func:`described` describes; functions of the user are imported."""
    subsets: dict[tuple[tuple[int, ...], str | None], int] = {}
    numbers: list[int] = []
    custom: list[CustomKernel] = []
    rows: list[tuple[int, float, float]] = []
    for kernel in described:
        subset = tuple(kernel["features"]), kernel["label"]
        numbers.append(subsets.setdefault(subset, len(subsets)))
        if "code" in kernel:
            rows.append((CUSTOM_CODE, float(len(custom)), 0.0))
            function = CustomFunction.named(kernel["code"], where)
            custom.append(CustomKernel(function, tuple(kernel["arguments"].items())))
        else:
            code = FUNCTIONS[kernel["function"]].code
            rows.append((code, kernel["parameter"], kernel["offset"]))
    return KernelList(
        function=np.array([code for code, _, _ in rows], dtype=np.uint8),
        parameter=np.array([first for _, first, _ in rows]),
        offset=np.array([second for _, _, second in rows]),
        subset=np.array(numbers),
        subset_indptr=np.cumsum([0, *(len(features) for features, _ in subsets)]),
        subset_indices=np.array([column for features, _ in subsets for column in features]),
        subset_labels={n: label for (_, label), n in subsets.items() if label is not None},
        custom=tuple(custom),
    )


def has_code(kernels: KernelList) -> bool:
    """Return True for a list with a function of the user."""
    return bool((kernels.function == CUSTOM_CODE).any())


def _supports(function: Expansion) -> dict[str, Expansion | TextSupport]:
    """Return what has kernels and support points of its own: features, and texts if there are."""
    return {"features": function, **({} if function.texts is None else {"texts": function.texts})}


def _probe(support: Expansion | TextSupport) -> Floats:
    """Return the values of the user's functions between the first support points, (S, p, p)."""
    own = support.kernels.select(np.flatnonzero(support.kernels.function == CUSTOM_CODE))
    return evaluate(own, support.points[:PROBED], support.points[:PROBED])


def _check_probe(support: Expansion | TextSupport, expected: Floats, where: str) -> None:
    """Refuse functions of the user that give other values than when the model was fitted."""
    own = np.flatnonzero(support.kernels.function == CUSTOM_CODE)
    for m, now, then in zip(own.tolist(), _probe(support), expected, strict=True):
        furthest = float(np.abs(now - then).max(initial=0.0))
        if furthest > AGREEMENT * float(np.abs(then).max(initial=0.0)):
            raise StoreError(
                where,
                f"kernel function {support.kernels.function_of(m).label!r} with values that differ "
                f"by {furthest:.3g} from those of the fit",
                "the function that the model was fitted with",
                "Restore it, or fit the model again",
            )


Item = TypeVar("Item")
Result = TypeVar("Result")
Decide = Callable[[Floats, Between | None, Array | None], Floats]
"""Function of prepared points, kernel values of views, and texts, that gives values of rows."""

BLOCK_BYTES = 2**23  # of the features of the rows that one thread takes at a time
MOST_ROWS, FEWEST_ROWS = 8192, 64
SPARSE_ROWS = 1024
CALIBRATED = "one with probabilities"
CALIBRATE = "Fit it again: mkldist fit RESULTS --calibrate sigmoid"


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` of each item, in order, of a function that releases Python's lock.

    The calling thread takes an item when one of the threads, by default one for each processor, is
    about to be free, so that no more than one item beyond the threads is in memory.
    """
    threads = n_processors() if n_threads is None else n_threads
    with ThreadPoolExecutor(threads, thread_name_prefix="mkldist-predict") as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= threads:
                yield waiting.popleft().result()
        yield from (one.result() for one in waiting)


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A fitted model: preprocessing, active kernels, support vectors and classes.

    ``mkldist fit`` and ``to_model`` of an estimator make models, :func:`mkldist.load_model` reads
    them.  A model needs neither the sweep nor the data that it was fitted on.

    Examples
    --------
    >>> import numpy as np, mkldist
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = mkldist.MKLClassifier(C=10.0).fit(X, y).to_model()
    >>> model.predict([[1.0, 1.0], [-1.0, 1.0]]).tolist()
    ['same', 'other']
    """

    columns: SourceColumns  # that new rows bring, and the features made of them
    feature_names: tuple[str, ...]  # of the d features
    preprocessing: FittedPreprocessing  # imputation and scaling of the features
    functions: tuple[Expansion, ...]  # the decision functions, one or several in each
    weights: tuple[Floats, ...]  # as the method found them, of the kernels in each function
    labels: LabelCoding  # the step from decision values to predictions
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Origin of the model: data set, method, parameters, certificate, fingerprint, versions."""
    views: Mapping[str, View] = field(default_factory=dict)  # which rows may lack as a whole
    view_columns: Mapping[str, SourceColumns] = field(default_factory=dict)
    """Columns of the views with a table of their own, whose features follow the others."""
    given: GivenRows | None = None  # views that are Gram matrices
    texts: Mapping[str, bool] = field(default_factory=dict)
    """Columns of texts that kernels use, those of a view ``v`` called ``v.a``; True for those that
    rows may have no text in, where kernels are zero."""
    calibration: Calibrated | None = None  # probabilities, and the predictions that follow
    ranges: Floats | None = None
    """Least and greatest value of each feature in the fit, (2, d), in the units of the data; NaN of
    one without values.  None for sparse features."""

    def __repr__(self) -> str:
        """Return what the model is of and its size in one line, without arrays."""
        origin = f"{self.facts.get('method', 'model')} on {self.facts.get('dataset', 'data')}"
        classes = self.labels.classes
        answer = "real values" if classes is None else f"classes {', '.join(map(str, classes))}"
        return (
            f"<Model: {origin}, {answer}, {pluralize(self.n_kernels, 'kernel')}, {self.n_support} "
            f"support vectors, {pluralize(len(self.feature_names), 'feature')}>"
        )

    def _repr_html_(self) -> str:
        """Return the same, with the kernel weights, for a notebook."""
        classes = self.labels.classes
        facts = {
            "method": self.facts.get("method", "unknown"),
            "data set": self.facts.get("dataset", "unknown"),
            "labels": "real values" if classes is None else ", ".join(map(str, classes)),
            "support vectors": self.n_support,
            "features": len(self.feature_names),
        }
        return html_of("Model", facts, self.kernel_weights)

    @property
    def n_kernels(self) -> int:
        """Number of active kernels, those of each decision function counted."""
        return sum(function.n_kernels for function in self.functions)

    @property
    def n_support(self) -> int:
        """Number of support vectors, those of each decision function counted."""
        return sum(function.n_support for function in self.functions)

    @property
    def kernel_weights(self) -> pd.DataFrame:
        """Active kernels with their weights, and the class where each has weights of its own."""
        import pandas as pd

        tables = []
        for place, (function, weights) in enumerate(zip(self.functions, self.weights, strict=True)):
            names = function.names(self.feature_names, tuple(self.texts))
            table = pd.DataFrame({"kernel": names, "weight": weights})
            if len(self.functions) > 1:
                table.insert(0, "class", [self.labels.function_names[place]] * len(table))
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    @property
    def is_sparse(self) -> bool:
        """True if features are kept in compressed sparse rows."""
        return is_sparse(self.functions[0].points)

    @property
    def runs_code(self) -> bool:
        """True if active kernels are functions of the user."""
        lists = [function.kernels for function in self.functions]
        lists += [one.texts.kernels for one in self.functions if one.texts is not None]
        return any(map(has_code, lists))

    @property
    def source_views(self) -> tuple[str, ...]:
        """Views that new rows bring beside their table: tables, then kernel values."""
        return (*self.view_columns, *(self.given.views if self.given else ()))

    @property
    def needed_views(self) -> tuple[str, ...]:
        """Those of :attr:`source_views` that kernels of weight above zero use."""
        used = {kernel.view for function in self.functions for kernel in function.given}
        features = {c for one in self.functions for c in one.kernels.subset_indices.tolist()}
        first = len(self.feature_names) - sum(one.n_kept for one in self.view_columns.values())
        for name, columns in self.view_columns.items():
            if columns.texts or not features.isdisjoint(range(first, first + columns.n_kept)):
                used.add(name)
            first += columns.n_kept
        return tuple(name for name in self.source_views if name in used)

    def with_texts(self, texts: TextColumns | None) -> Model:
        """Return the model, whose functions were fitted on these texts or on None.

        It holds the texts of the columns that kernels use, and new rows bring these alone.
        """
        if texts is None:
            return self
        indices = [f.texts.kernels.subset_indices for f in self.functions if f.texts is not None]
        used = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *indices])).astype(np.intp)
        needed = {texts.names[c]: c in texts.may_lack for c in used.tolist()}
        of_views = {
            texts.names[c]: view for view in self.view_columns for c in texts.groups.get(view, ())
        }

        def needing(columns: SourceColumns, view: str | None) -> SourceColumns:
            place = "" if view is None else f"{view}."
            names = [name for name in texts.names if of_views.get(name) == view]
            own = tuple(name.removeprefix(place) for name in names if name in needed)
            others = dict.fromkeys([*columns.others, *(name.removeprefix(place) for name in names)])
            return replace(columns, texts=own, others=tuple(n for n in others if n not in own))

        return replace(
            self,
            columns=needing(self.columns, None),
            view_columns={view: needing(one, view) for view, one in self.view_columns.items()},
            functions=tuple(
                one if one.texts is None else replace(one, texts=one.texts.on_columns(used))
                for one in self.functions
            ),
            texts=needed,
        )

    def predict(self, X: Any, views: Mapping[str, Any] | None = None) -> Labels:
        """Return the predictions of rows: classes in the type of the labels, or real values.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows in the units of the data: the columns of a DataFrame by name, in any order; those
            of an array as they were when the model was fitted.
        views : mapping of str to array-like or DataFrame, optional
            For each of :attr:`needed_views` its rows: a table, or, of a view of Gram matrices,
            kernel values (t, n) or (M, t, n) between the rows and the n of ``model.given.names``.
            Tables with the column of ids are joined by it to the rows of `X`, which then have
            theirs; others have the rows of `X` in their order, NaN where they lack the view.

        Raises
        ------
        mkldist.errors.DataError
            For other columns, text where numbers should be, infinite values, and missing values
            that the model does not fill; for views that are absent, unknown or cannot be joined.

        Warns
        -----
        mkldist.errors.UnknownCategoryWarning
            For categories that the model does not know; such a row has none of the known ones.
        """
        return self.predictions(self._values(X, views))

    def predict_proba(self, X: Any, views: Mapping[str, Any] | None = None) -> Floats:
        """Return the probabilities of the classes, (t, k), of a calibrated model.

        :meth:`predict` returns the class of the greatest one, unless ``calibration`` has a
        threshold or class weights that do better by the metric of the sweep.

        Parameters
        ----------
        X, views
            As for :meth:`predict`, also for errors and warnings.

        Raises
        ------
        mkldist.errors.SpecError
            For a model without a calibration.
        """
        if self.calibration is None:
            raise SpecError("predict_proba", "a model without a calibration", CALIBRATED, CALIBRATE)
        return self.calibration.probabilities(self._values(X, views))

    def contributions(
        self, X: Any, by: str = "features", views: Mapping[str, Any] | None = None
    ) -> pd.DataFrame:
        """Split decision values into the contributions of views, features or kernels.

        The sum of a row is its decision value: its last entry is the ``intercept``.

        Parameters
        ----------
        X, views
            As for :meth:`predict`, also for errors and warnings.
        by : {"views", "features", "kernels"}
            One column for all kernels of a view, and of no view by their features; for all kernels
            on the same features, where those of ``additive`` kernels stand apart; or for each.

        Returns
        -------
        DataFrame
            Its columns have the levels ``class`` and ``part`` if there are several classes.
        """
        parts = self.parts(by)
        return parts.table(self._values(X, views, parts.values, len(parts.columns)))

    def parts(self, by: str) -> Contributions:
        """Return the decision functions divided among parts; see :meth:`contributions`."""
        views = {n: [self.feature_names[c] for c in v.columns] for n, v in self.views.items()}
        for name in self.view_columns:
            texts = [text for text in self.texts if text.startswith(f"{name}.")]
            views[name] = [*views.get(name, ()), *texts]
        given = by, self.feature_names, tuple(self.texts), views, self.labels.function_names
        return Contributions.of(self.functions, *given)

    def predictions(self, values: Floats) -> Labels:
        """Return the predictions of decision values (t, k), (t,)."""
        return self.labels.predictions(values, self.calibration)

    def decision_function(self, X: Any, views: Mapping[str, Any] | None = None) -> Floats:
        """Return decision values, (t,), or (t, k) of k > 2 classes; real values as predicted.

        Parameters
        ----------
        X, views
            As for :meth:`predict`, also for errors and warnings.
        """
        values = self._values(X, views)
        return values if values.shape[1] > 1 else values[:, 0]

    def save(self, path: str | Path) -> None:
        """Write the model to one file, whole or not at all; see :func:`mkldist.load_model`.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        mkldist.errors.OutputError
            If it cannot be written.
        """
        functions, arrays = packed(self.functions, self.weights)
        scale = self.preprocessing.scale
        for name, values, default in (("centre", scale.centre, 0.0), ("spread", scale.spread, 1.0)):
            if (values != default).any():
                arrays[name] = values
        if self.preprocessing.fill is not None:
            arrays["fill"] = self.preprocessing.fill
        if self.ranges is not None:
            arrays["ranges"] = self.ranges
        labels = self.labels
        classes = np.array([], dtype="U") if labels.classes is None else labels.classes
        header = {
            "mkldist": metadata.version("mkldist"),
            "functions": functions,
            "facts": dict(self.facts),
            "labels": {
                "classes": None if labels.classes is None else classes.tolist(),
                "kind": classes.dtype.str,
                "answers": list(labels.answers),
                "positive_at_zero": labels.positive_at_zero,
            },
            **{name: to_jsonable_python(getattr(self, name)) for name in PLAIN},
        }
        write_model(as_path("path", path), header, arrays)

    def rows_at_once(self) -> int:
        """Return the number of rows that a thread takes at a time."""
        if self.is_sparse:
            return SPARSE_ROWS
        width = 8 * max(1, len(self.feature_names))
        return max(FEWEST_ROWS, min(MOST_ROWS, BLOCK_BYTES // width))

    def join(
        self, views: Mapping[str, Any], where: str, ignored: Collection[str] = ()
    ) -> list[ViewRows]:
        """Read the needed views of new rows, of files or in Python; see :meth:`predict`."""
        known, needed, tables = self.source_views, self.needed_views, self.view_columns
        if not isinstance(views, Mapping):
            found = f"a {type(views).__name__} of rows without the names of their views"
            expected = "a mapping of tables or arrays by the names of views"
            raise SpecError(where, found, expected, "Write views={NAME: ROWS}")
        for name in views:
            if name not in known:
                expected = f"one of {', '.join(map(repr, known))}" if known else "no view"
                hint = nearest(name, known) if known else "The model is of one table"
                raise DataError(where, f"a view {name!r}", expected, hint)
        missing = [name for name in needed if name not in views]
        if missing:
            found = f"no view{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
            contents = ["a table" if n in tables else "kernel values" for n in missing]
            expected = "; ".join(f"{c} of {n!r}" for c, n in zip(contents, missing, strict=True))
            options = " ".join(f"--view {quote(name)}=FILE" for name in missing)
            keys = ", ".join(f"{name!r}: …" for name in missing)
            hint = f"Name each: {options}, or predict(X, views={{{keys}}}) in Python"
            raise DataError(where, found, expected, hint)
        joined = []
        for name in needed:
            source = views[name]
            place = str(source) if isinstance(source, Path) else f"views[{name!r}]"
            if name in tables:
                texts = [self.texts[f"{name}.{one}"] for one in tables[name].texts]
                own = self.views.get(name)
                required = not all(texts) if own is None else own.missing is None
                joined.append(table_view(name, source, tables[name], place, required, ignored))
            elif self.given is not None:
                joined.append(kernel_view(name, source, self.given, place))
        return joined

    def joined(
        self,
        rows: NewRows,
        views: Sequence[ViewRows],
        n_threads: int | None = None,
        decide: Decide | None = None,
    ) -> Iterator[tuple[Block, Floats]]:
        """Yield the blocks of a table and their decision values (r, k), in order.

        Some blocks are computed side by side.  Features of views that no kernel uses are 0.  By
        `decide` others are computed of prepared points, kernel values and texts.
        """

        def whole(block: Block) -> Block:
            count = block.x.shape[0]
            found = {view.name: view.joined(block.ids, count) for view in views}
            tables = [
                found[name][0] if name in found else np.zeros((count, columns.n_kept))
                for name, columns in self.view_columns.items()
            ]
            texts = [block.texts, *(found[n][1] for n in self.view_columns if n in found)]
            parts = [one for one in texts if one is not None]
            return replace(
                block,
                x=np.hstack([block.x, *tables]) if tables else block.x,
                texts=np.hstack(parts) if parts else None,
                between={n: one for n, (one, _) in found.items() if n not in self.view_columns},
            )

        def work(block: Block) -> tuple[Block, Floats]:
            return block, self._block_values(block, rows.where, decide)

        yield from in_order(work, map(whole, rows.blocks), n_threads)

    def _values(
        self, X: Any, views: Mapping[str, Any] | None, decide: Decide | None = None, width: int = 0
    ) -> Floats:
        """Return decision values of rows in Python, (t, k), or what `decide` gives, (t, width)."""
        own = {} if views is None else views
        if isinstance(own, Mapping):
            id = self.columns.id
            by_place = [name for name in own if id not in getattr(own[name], "columns", ())]
            common_rows("", {"X": X, **{f"views[{name!r}]": own[name] for name in by_place}})
        joined = self.join(own, "views")
        width = width or sum(len(function.bias) for function in self.functions)
        values = [np.empty((0, width))]
        step, sparse = self.rows_at_once(), self.is_sparse
        with opened_rows(X, self.columns, step, "X", sparse=sparse) as rows, single_threaded():
            values += [of_block for _, of_block in self.joined(rows, joined, decide=decide)]
        for view in joined:
            view.check_end()
        unseen = sum((view.unseen for view in joined), rows.unseen)
        if unseen:
            message = "X: " + "; ".join(unseen_lines(unseen))
            warnings.warn(message, UnknownCategoryWarning, stacklevel=3)
        return np.concatenate(values)

    def _block_values(self, block: Block, where: str, decide: Decide | None) -> Floats:
        """Return decision values of rows with all of their views, (r, k), or what `decide` does."""
        absent = self._checked(block, where)
        if self.is_sparse:  # not filled
            points = self.preprocessing.scale.scaled(as_sparse(block.x))
        else:
            points = np.ascontiguousarray(self.preprocessing.applied(block.x, absent))
        return (decide or self.decision_values)(points, block.between or None, block.texts)

    def decision_values(
        self, points: Floats, between: Between | None, texts: Array | None
    ) -> Floats:
        """Return decision values (r, k) at prepared points."""
        values = [function.values(points, between, texts) for function in self.functions]
        return np.concatenate(values, axis=1)

    def _checked(self, block: Block, where: str) -> Bools | None:
        """Check rows; return where features (r, d) are those of views that rows lack, or None."""
        x, places = block.x, block.row_labels
        for column, (name, optional) in enumerate(self.texts.items()):
            if block.texts is None or optional:
                continue
            rows = np.flatnonzero(block.texts[:, column] == "")
            if len(rows):
                found = f"no text in column {name!r} for "
                found += f"{truncate(places.names(rows.tolist()), SHOWN)}"
                expected = "a text for each row: the model knows no row without it"
                hint = 'Fit a sweep with a view of this column that sets missing = "zero"'
                raise DataError(where, found, expected, hint)
        if is_sparse(x):
            check_sparse(x, where, places)
            return None
        for name, view in self.views.items():
            missing = [] if view.missing else np.flatnonzero(lacking_rows(x, view)).tolist()
            if missing:
                raise lacks(name, places.names(missing), where)
        absent, filled = absent_of(x, self.views), self.preprocessing.fill is not None
        bad = np.isinf(x) if filled else ~np.isfinite(x)
        if absent is not None:
            bad &= ~absent
        if bad.any():
            row, feature = np.argwhere(bad)[0].tolist()
            infinite = bool(np.isinf(x[row, feature]))
            raise DataError(
                f"{where}, {places.of(row)}, column {self.feature_names[feature]!r}",
                "an infinite value" if infinite else "no value",
                "a finite number" if infinite else "a number: the model fills no missing values",
                "Correct it" if infinite else "Fill it, or fit a sweep whose data set sets impute",
            )
        return absent


def load_model(path: str | Path, *, allow_code: bool = False) -> Model:
    """Read a model that ``mkldist fit`` or :meth:`Model.save` wrote.

    Nothing in the file is executed or unpickled, and a file that was altered is refused.  Of kernel
    functions of one's own it holds the names alone; the functions themselves are imported if
    `allow_code` says so, and must give the kernel values that they gave in the fit.

    Parameters
    ----------
    path : str or Path
        The file.
    allow_code : bool
        True to import and call kernel functions that are not mkldist's.  The folder of the file is
        searched first.

    Raises
    ------
    mkldist.errors.StoreError
        If the file is missing, is no model, is damaged, or has another format; if it names such
        functions and `allow_code` is not set, or they give other values.
    mkldist.errors.SpecError
        If such a function cannot be imported, `path` is no path, or `allow_code` is neither True
        nor False.

    Examples
    --------
    >>> import mkldist
    >>> model = mkldist.load_model("wdbc.model")  # doctest: +SKIP
    >>> model.predict(table)  # doctest: +SKIP
    """
    check_flags(allow_code=allow_code)
    file = as_path("path", path)
    header, arrays = read_model(file)
    with understood(str(file)):
        own = header["functions"]
        functions = unpacked(own, arrays, str(file), file.parent if allow_code else None)
        d, labels = functions[0].points.shape[1], header["labels"]
        plain = {n: TypeAdapter(kind).validate_python(header[n]) for n, kind in PLAIN.items()}
        scale = FeatureScale(arrays.get("centre", np.zeros(d)), arrays.get("spread", np.ones(d)))
        return Model(
            preprocessing=FittedPreprocessing(arrays.get("fill"), scale),
            functions=functions,
            weights=tuple(arrays[f"{number}.kernel_weights"] for number in range(len(functions))),
            labels=LabelCoding.of_names(**labels | {"answers": tuple(labels["answers"])}),
            facts={**header["facts"], "mkldist": header["mkldist"]},
            ranges=arrays.get("ranges"),
            **plain,
        )
