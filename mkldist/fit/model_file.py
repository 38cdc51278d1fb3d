"""The content of a fitted model, and its file: one archive of arrays and JSON, without code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Array, Bools, Floats, Ints
from mkldist.data.archives import opened_npz
from mkldist.data.dataset import Dataset, View
from mkldist.data.listing import first_of
from mkldist.data.npz_files import column, row_names
from mkldist.data.number_texts import name_of_number, number_name, number_of_name
from mkldist.data.opening import check_file
from mkldist.data.preprocessing import FeatureScale, FittedPreprocessing
from mkldist.data.source_columns import SourceColumns
from mkldist.data.texts import as_arrays, from_arrays, side_by_side
from mkldist.data.views import positions_of_ids
from mkldist.durable import remove_temporaries, write_file, writing
from mkldist.errors import DataError, MkldistError, SpecError, StoreError, ending_words, nearest
from mkldist.fit.decision import Expansion, TextSupport
from mkldist.gram.bank_kernels import GivenKernel
from mkldist.kernel_functions.custom import CUSTOM_CODE, CustomFunction, CustomKernel, search_first
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.kernel_list import KernelList
from mkldist.row_places import FROM_ZERO, RowPlaces
from mkldist.scores import predicted_classes
from mkldist.sealed import Arrays, sealed, unsealed
from mkldist.spec.kinds import MissingView

Labels = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The step from decision values to predictions.

    Parameters
    ----------
    classes : (k,) array, or None
        Labels of the classes in the user's type: numbers, truth values or text.  Of two, the second
        has positive decision values.  None for real values, which are predictions themselves.
    order : tuple of int
        Of more than two classes: their positions by precedence, a tie goes to the first.
    positive_at_zero : bool
        True if a decision value of 0 predicts the second of two classes.
    """

    classes: Labels | None
    order: tuple[int, ...] = ()
    positive_at_zero: bool = True

    @classmethod
    def of_dataset(cls, dataset: Dataset, numbers: npt.NDArray[np.intp]) -> Outcome:
        """Return the outcome of a data set.

        Parameters
        ----------
        dataset : Dataset
            The data set, whose classes have names.
        numbers : (n,) intp
            Positions of the classes of the labelled rows; ties go to the most frequent class.
        """
        if dataset.classes is None:
            return cls(None)
        order: tuple[int, ...] = ()
        if dataset.multiclass:
            counts = np.bincount(numbers, minlength=len(dataset.classes))
            order = tuple(np.argsort(-counts, kind="stable").tolist())
        return cls(_typed(dataset.classes), order)

    @property
    def function_names(self) -> tuple[str, ...]:
        """Names of the decision functions: the classes where each has one, else empty."""
        if self.classes is None or not self.is_multiclass:
            return ()
        return tuple(map(str, self.classes.tolist()))

    @property
    def is_multiclass(self) -> bool:
        """True if there are more than two classes."""
        return self.classes is not None and len(self.classes) > 2

    @property
    def task(self) -> str:
        """``"regression"`` for real values, else ``"classification"``."""
        return "regression" if self.classes is None else "classification"

    def predictions(self, values: Floats) -> Labels:
        """Return the predictions of decision values (t, k), (t,): labels, or real values."""
        if self.classes is None:
            return values[:, 0]
        if self.is_multiclass:
            return self.classes[predicted_classes(values.T, np.array(self.order))]
        positive = values[:, 0] >= 0.0 if self.positive_at_zero else values[:, 0] > 0.0
        return self.classes[positive.astype(np.intp)]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        classes = None if self.classes is None else self.classes.tolist()
        return {
            "classes": classes,
            "type": None if self.classes is None else self.classes.dtype.str,
            "order": list(self.order),
            "positive_at_zero": self.positive_at_zero,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Outcome:
        """Return the outcome of which :meth:`as_dict` gave the fields."""
        if fields["classes"] is None:
            return cls(None)
        kind = str(fields["type"])
        classes = np.array(fields["classes"], dtype=object if kind.endswith("O") else kind)
        return cls(classes, tuple(fields["order"]), bool(fields["positive_at_zero"]))


def _typed(names: tuple[str, ...]) -> Labels:
    """Return names of classes as whole numbers or numbers where all are, else as text.

    A text such as ``01`` or ``1_2`` names no number: written as one, it would read otherwise.
    """
    if not all(name_of_number(name) == name for name in names):
        return np.array(names)
    numbers = [number_of_name(name) for name in names]
    if all(isinstance(number, int) for number in numbers):
        whole = np.array(numbers)
        return whole if whole.dtype.kind in "iu" else np.array(numbers, dtype=object)
    exact = all(
        number_name(float(number)) == name for number, name in zip(numbers, names, strict=True)
    )
    return np.array(numbers, dtype=np.float64) if exact else np.array(names)


SHOWN = 5


@dataclass(frozen=True)
class ModelTexts:
    """Columns of texts that kernels of a model use: those of its table, then those of its views.

    Parameters
    ----------
    names : tuple of str
        Their names; a column ``a`` of the file of a view ``v`` is called ``v.a``.
    optional : tuple of bool
        True for columns that rows may have no text in: kernels of these are zero there.
    """

    names: tuple[str, ...]
    optional: tuple[bool, ...]

    def check(self, texts: Array, where: str, row_places: RowPlaces = FROM_ZERO) -> None:
        """Refuse rows without a text that the model needs.

        Parameters
        ----------
        texts : (r, t) array of str objects
            Texts of some rows.
        where : str
            The place to name in a message.
        row_places : RowPlaces
            How a message names a row.

        Raises
        ------
        mkldist.errors.DataError
            Naming the first such column and some of the rows.
        """
        for place, (name, optional) in enumerate(zip(self.names, self.optional, strict=True)):
            rows = np.flatnonzero(texts[:, place] == "")
            if len(rows) and not optional:
                raise DataError(
                    where,
                    f"no text in column {name!r} for "
                    f"{first_of(row_places.names(rows.tolist()), SHOWN)}",
                    "a text for each row: the model knows no row without it",
                    'Fit a sweep with a view of this column that sets missing = "zero"',
                )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        return {"names": list(self.names), "optional": list(self.optional)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ModelTexts:
        """Return the columns of which :meth:`as_dict` gave the fields."""
        return cls(tuple(fields["names"]), tuple(fields["optional"]))


def texts_of(columns: Sequence[str], words: Mapping[str, Sequence[str]]) -> Array | None:
    """Return the texts of some columns side by side, (r, t); None without columns.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    words : mapping of str to sequence of str
        r texts of each of them, and perhaps of others.
    """
    return side_by_side({name: words[name] for name in columns}) if columns else None


POINTS = "points"


@dataclass(frozen=True, eq=False)
class GivenView:
    """A view of Gram matrices.

    Parameters
    ----------
    n_grams : int
        Number M of matrices.
    present : (a,) bool
        Which anchors have the view.
    missing : {"zero"} or None
        What holds for rows that lack it: kernels are zero, or they are refused.
    """

    n_grams: int
    present: Bools
    missing: MissingView | None


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows between which and new ones the user gives kernel values.

    Parameters
    ----------
    names : tuple of str
        The n rows that the model was fitted on: their ids, or their numbers in the data set.
    anchors : (a,) intp
        Those of them that decision functions use.
    views : dict of str to GivenView
        The views by name.
    """

    names: tuple[str, ...]
    anchors: Ints
    views: dict[str, GivenView]

    def values(self, view: str, given: Array, points: Array | None, where: str) -> Floats:
        """Return kernel values between new rows and anchors, (M, t, a); NaN for rows without view.

        Parameters
        ----------
        view : str
            The view.
        given : (t, p) or (M, t, p) array
            Kernel values between new rows and p rows of the data set.  NaN in all values of a new
            row says that it lacks the view.
        points : (p,) array of str, or None
            Names of these rows; None if they are the n that the model was fitted on, in order.
        where : str
            The place to name in a message.

        Raises
        ------
        mkldist.errors.DataError
            For another shape, for rows that are named twice, and if a row that the model needs is
            not among them.
        """
        own = self.views[view]
        stack = given[None] if given.ndim == 2 else given
        p = len(self.names) if points is None else len(points)
        if stack.ndim != 3 or stack.dtype.kind not in "fiub" or len(stack) != own.n_grams:
            found = f"an array of {stack.dtype}, shape {given.shape}"
            raise DataError(where, found, f"kernel values ({own.n_grams}, t rows, {p})")
        if stack.shape[2] != p:
            raise DataError(
                where,
                f"kernel values with {stack.shape[2]} rows of the data set",
                f"{p}, those that the model was fitted on" if points is None else f"{p}, as points",
                "Name them by an array points, or give the values of all in their order",
            )
        values = np.zeros((len(stack), stack.shape[1], len(self.anchors)))
        known = stack[:, :, self._places(points, own, where)].astype(np.float64)
        values[:, :, own.present] = known
        if known.size:
            values[:, np.isnan(known).all(axis=(0, 2))] = np.nan
        return values

    def _places(self, points: Array | None, own: GivenView, where: str) -> Ints:
        """Return where the anchors that have the view stand among the given rows."""
        wanted = self.anchors[own.present]
        if points is None:
            return wanted
        place = positions_of_ids(points, f"{where}, array {POINTS!r}")
        names = [self.names[row] for row in wanted.tolist()]
        lacking = [name for name in names if name not in place]
        if lacking:
            raise DataError(
                f"{where}, array {POINTS!r}",
                f"no {first_of([repr(name) for name in lacking], SHOWN)}",
                f"the {len(names)} support vectors of the model that have the view",
                "Compute the kernel values of new rows with these rows too",
            )
        return np.array([place[name] for name in names], dtype=np.intp)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        return {
            "names": list(self.names),
            "anchors": self.anchors.tolist(),
            "views": {
                name: [one.n_grams, np.flatnonzero(one.present).tolist(), one.missing]
                for name, one in self.views.items()
            },
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> GivenRows:
        """Return the rows of which :meth:`as_dict` gave the fields."""
        anchors = np.array(fields["anchors"], dtype=np.intp)
        views = {}
        for name, (n_grams, places, missing) in fields["views"].items():
            present = np.zeros(len(anchors), dtype=bool)
            present[places] = True
            views[name] = GivenView(n_grams, present, missing)
        return cls(tuple(fields["names"]), anchors, views)


def read_kernel_values(path: Path, where: str) -> tuple[Array, Array | None, Array | None]:
    """Read kernel values of new rows from ``.npz`` or ``.npy``.

    Returns
    -------
    (t, p) or (M, t, p) array, (t,) array of str or None, (p,) array of str or None
        The array ``grams``, the names of new rows (``ids``), and those of other rows (``points``).

    Raises
    ------
    mkldist.errors.DataError
        If the file is absent, damaged or lacks ``grams``.
    """
    check_file(path, where)
    extension = path.suffix.lower()
    if extension == ".npy":
        try:
            return np.load(path, allow_pickle=False), None, None
        except (ValueError, EOFError, OSError) as error:
            raise DataError(where, f"a damaged file ({error})", "one array (np.save)") from error
    if extension != ".npz":
        ending = ending_words(path.suffix, "file")
        hint = "Write one: np.savez(file, grams=K, ids=names of rows, points=names of columns)"
        raise DataError(where, ending, "kernel values in a .npz or .npy file", hint)
    with opened_npz(path, where) as archive:
        grams = archive.required("grams", "kernel values (t, n) or (M, t, n)")
        n_rows = grams.shape[-2] if grams.ndim > 1 else 0
        ids = row_names(archive, None, n_rows)
        points = column(archive[POINTS]).astype(str) if POINTS in archive else None
    return grams, ids, points


Description = dict[str, Any]

PROBED = 8  # support points whose kernel values a model keeps
AGREEMENT = 1e-8  # of the largest of these values


def described(kernels: KernelList) -> list[Description]:
    """Return kernels as JSON takes them: function, parameters, features and their label.

    Raises
    ------
    mkldist.errors.SpecError
        For a function of the user that cannot be imported by a name.
    """
    return [
        {
            **_function(kernels, m),
            "features": kernels.features_of(m).tolist(),
            "label": kernels.subset_labels.get(int(kernels.subset[m])),
        }
        for m in range(len(kernels))
    ]


def _function(kernels: KernelList, kernel: int) -> Description:
    """Return the function of a kernel with its parameters."""
    own = kernels.custom_of(kernel)
    if own is None:
        return {
            "function": kernels.function_of(kernel).label,
            "parameter": float(kernels.parameter[kernel]),
            "offset": float(kernels.offset[kernel]),
        }
    if not own.function.reference:
        raise SpecError(
            "model",
            f"kernel function {own.function.label!r}, which no name imports",
            'a function "package.module:function": the file of a model holds no code',
            "Define it at the top of a file of its own, and import it from there",
        )
    return {"code": own.function.reference, "arguments": dict(own.arguments)}


def code_of(described: Sequence[Description]) -> Iterator[str]:
    """Yield the name of every function of the user among described kernels."""
    return (kernel["code"] for kernel in described if "code" in kernel)


def has_code(kernels: KernelList) -> bool:
    """Return True for a list with a function of the user."""
    return bool((kernels.function == CUSTOM_CODE).any())


def kernel_list(described: Sequence[Description], where: str = "model") -> KernelList:
    """Return the kernels that :func:`described` describes; functions of the user are imported.

    Parameters
    ----------
    described : sequence of dict
        The descriptions.
    where : str
        The place to name in a message.

    Raises
    ------
    mkldist.errors.SpecError
        For a function that cannot be imported.
    """
    subsets: dict[tuple[tuple[int, ...], str | None], int] = {}
    numbers = [
        subsets.setdefault((tuple(kernel["features"]), kernel["label"]), len(subsets))
        for kernel in described
    ]
    sizes = [len(features) for features, _ in subsets]
    custom: list[CustomKernel] = []
    rows = [_numbers(kernel, custom, where) for kernel in described]
    return KernelList(
        function=np.array([code for code, _, _ in rows], dtype=np.uint8),
        parameter=np.array([first for _, first, _ in rows]),
        offset=np.array([second for _, _, second in rows]),
        subset=np.array(numbers),
        subset_indptr=np.cumsum([0, *sizes]),
        subset_indices=np.array([column for features, _ in subsets for column in features]),
        subset_labels={
            number: label for (_, label), number in subsets.items() if label is not None
        },
        custom=tuple(custom),
    )


def _numbers(
    kernel: Mapping[str, Any], custom: list[CustomKernel], where: str
) -> tuple[int, float, float]:
    """Return the code of a kernel's function and its two parameters in a list of kernels."""
    if "code" not in kernel:
        return FUNCTIONS[kernel["function"]].code, kernel["parameter"], kernel["offset"]
    function = CustomFunction.named(kernel["code"], where)
    custom.append(CustomKernel(function, tuple(kernel["arguments"].items())))
    return CUSTOM_CODE, float(len(custom) - 1), 0.0


def probe(kernels: KernelList, points: Floats | Array) -> Floats:
    """Return the values of the user's functions between the first support points, (S, p, p)."""
    own = kernels.select(np.flatnonzero(kernels.function == CUSTOM_CODE))
    return evaluate(own, points[:PROBED], points[:PROBED])


def check_probe(kernels: KernelList, points: Floats | Array, expected: Floats, where: str) -> None:
    """Refuse functions of the user that give other values than when the model was fitted.

    Raises
    ------
    mkldist.errors.StoreError
        Naming the first such function.
    """
    own = np.flatnonzero(kernels.function == CUSTOM_CODE)
    for m, now, then in zip(own.tolist(), probe(kernels, points), expected, strict=True):
        furthest = float(np.abs(now - then).max(initial=0.0))
        if furthest > AGREEMENT * float(np.abs(then).max(initial=0.0)):
            raise StoreError(
                where,
                f"kernel function {kernels.function_of(m).label!r} with values that differ by "
                f"{furthest:.3g} from those of the fit",
                "the function that the model was fitted with",
                "Restore it, or fit the model again",
            )


TEXTS = ("texts.content", "texts.ends")
SPARSE = ("points.data", "points.indices", "points.indptr", "points.shape")


def packed_points(
    parts: Sequence[Floats], texts: Sequence[Array] | None = None
) -> tuple[list[Ints], Arrays]:
    """Return the places of each part's points among all, and the arrays of these.

    Points are the same where all of their bits are: NaN marks features that a point lacks.

    Parameters
    ----------
    parts : sequence of (s, d) float64 array or csr_array
        Points, all dense or all sparse.
    texts : sequence of (s, t) array of str objects, optional
        Texts of these points.
    """
    first: dict[tuple[bytes, tuple[str, ...]], int] = {}
    kept: list[tuple[int, int]] = []
    places = []
    for number, points in enumerate(parts):
        own = np.empty(points.shape[0], dtype=np.int64)
        for row in range(points.shape[0]):
            own_texts = () if texts is None else tuple(texts[number][row].tolist())
            key = _content(points, row), own_texts
            if key not in first:
                first[key] = len(first)
                kept.append((number, row))
            own[row] = first[key]
        places.append(own)
    rows = [np.array([r for n, r in kept if n == number], int) for number in range(len(parts))]
    chosen = [points[own] for points, own in zip(parts, rows, strict=True)]
    if not is_sparse(parts[0]):
        arrays = {"points": np.concatenate(chosen)}
        if texts is not None:
            kept_texts = np.concatenate([own[r] for own, r in zip(texts, rows, strict=True)])
            arrays |= dict(zip(TEXTS, as_arrays(kept_texts), strict=True))
        return places, arrays
    from scipy.sparse import csr_array, vstack

    together = csr_array(vstack(chosen))
    parts_of = (together.data, together.indices, together.indptr, np.array(together.shape))
    return places, dict(zip(SPARSE, parts_of, strict=True))


def unpacked_points(arrays: Arrays) -> Any:
    """Return the points of :func:`packed_points`."""
    if "points" in arrays:
        return arrays["points"]
    from scipy.sparse import csr_array

    data, indices, indptr, shape = (arrays[name] for name in SPARSE)
    return csr_array((data, indices, indptr), shape=tuple(shape.tolist()))


def unpacked_texts(arrays: Arrays) -> Array | None:
    """Return the texts of :func:`packed_points`; None without any."""
    if TEXTS[0] not in arrays:
        return None
    content, ends = (arrays[name] for name in TEXTS)
    return from_arrays(content, ends)


def points_at(points: Any, rows: Ints) -> Any:
    """Return some of the points."""
    return points[rows] if is_sparse(points) else np.ascontiguousarray(points[rows])


def _content(points: Any, row: int) -> bytes:
    """Return the bits of a point."""
    if not is_sparse(points):
        return bytes(points[row].tobytes())
    entries = slice(points.indptr[row], points.indptr[row + 1])
    return bytes(points.indices[entries].tobytes() + points.data[entries].tobytes())


@dataclass(frozen=True, eq=False)
class ModelContent:
    """Preprocessing, active kernels, support vectors and classes of a model.

    Parameters
    ----------
    columns : SourceColumns
        Columns that new rows bring, and the features made of them.
    feature_names : tuple of str
        d names of the features.
    preprocessing : FittedPreprocessing
        Imputation and scaling of the features.
    functions : tuple of Expansion
        The decision functions, one or several in each.
    weights : tuple of (S,) float64
        Kernel weights as the method found them, of the kernels in each of `functions`.
    outcome : Outcome
        The step from decision values to predictions.
    facts : mapping
        Origin of the model, JSON-serialisable: data set, method, parameters, certificate,
        fingerprint of the data, versions.
    views : mapping of str to View
        Blocks of the features that rows may lack as a whole.
    view_columns : mapping of str to SourceColumns
        Columns of the views with a table of their own, whose features follow the others.
    given : GivenRows, or None
        Views that are Gram matrices; None without any.
    texts : ModelTexts, or None
        Columns of texts that kernels use; None without any.
    """

    columns: SourceColumns
    feature_names: tuple[str, ...]
    preprocessing: FittedPreprocessing
    functions: tuple[Expansion, ...]
    weights: tuple[Floats, ...]
    outcome: Outcome
    facts: Mapping[str, Any] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    view_columns: Mapping[str, SourceColumns] = field(default_factory=dict)
    given: GivenRows | None = None
    texts: ModelTexts | None = None

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
        first = len(self.feature_names) - sum(
            columns.n_kept for columns in self.view_columns.values()
        )
        for name, columns in self.view_columns.items():
            here = range(first, first + columns.n_kept)
            if columns.texts or any(
                column in here
                for function in self.functions
                for column in function.kernels.subset_indices.tolist()
            ):
                used.add(name)
            first += columns.n_kept
        return tuple(name for name in self.source_views if name in used)

    def needs_view(self, name: str) -> bool:
        """Return True if no row may lack a view with a table of its own."""
        if name in self.views:
            return self.views[name].missing is None
        if self.texts is None:
            return False
        own = [f"{name}.{column}" for column in self.view_columns[name].texts]
        optional = dict(zip(self.texts.names, self.texts.optional, strict=True))
        return not all(optional[column] for column in own)


FORMAT = 4  # raised when a file can no longer be read by the versions before
WITHOUT_CODE = 3  # the format of a model without functions of the user
WITHOUT_TEXTS = 2  # the format of a model without kernels of texts
ONE_TABLE = 1  # the format of a model of one dense table without views, which they read
KIND = "mkldist model"
EXPECTED = "a model that mkldist wrote"


def write_content(model: ModelContent, path: Path) -> None:
    """Write a model to a file, which appears whole or not at all.

    Raises
    ------
    mkldist.errors.OutputError
        If the file cannot be written.
    """
    content = encoded(model)
    with writing(path):
        remove_temporaries(path.parent)
        write_file(path, [content])


def read_content(file: Path, *, allow_code: bool = False) -> ModelContent:
    """Read the content of a model; see :func:`mkldist.load_model`.

    Raises
    ------
    mkldist.errors.StoreError
        If the file is missing, is no model, is damaged, or has a newer format; if it names
        functions of the user and `allow_code` is not set, or these have changed.
    mkldist.errors.SpecError
        If such a function cannot be imported.
    """
    return decoded(_bytes(file), str(file), file.parent if allow_code else None)


def read_sealed(file: Path) -> tuple[dict[str, Any], Arrays]:
    """Read header and arrays of a model, checked by their digest; nothing is imported.

    Raises
    ------
    mkldist.errors.StoreError
        If the file is missing, is no model, is damaged, or has a newer format.
    """
    return opened(_bytes(file), str(file))


def _bytes(file: Path) -> bytes:
    """Return the content of a file."""
    try:
        return file.read_bytes()
    except FileNotFoundError as error:
        near = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        hint = nearest(file.name, near) or "Fit one: mkldist fit RESULTS -o MODEL"
        raise StoreError(str(file), "no such file", "a model", hint) from error
    except OSError as error:
        found = "a folder" if file.is_dir() else f"a file that cannot be read ({error.strerror})"
        raise StoreError(str(file), found, "the file of a model") from error


def encoded(model: ModelContent) -> bytes:
    """Return a model as bytes, which :func:`opened` checks."""
    texts = None if model.texts is None else [_texts(model, one) for one in model.functions]
    parts, arrays = packed_points([function.points for function in model.functions], texts)
    scale = model.preprocessing.scale
    if not model.is_sparse:
        arrays |= {"centre": scale.centre, "spread": scale.spread}
    elif (scale.spread != 1.0).any():
        arrays["spread"] = scale.spread
    if model.preprocessing.fill is not None:
        arrays["fill"] = model.preprocessing.fill
    for number, (function, weights) in enumerate(zip(model.functions, model.weights, strict=True)):
        arrays |= {
            f"{number}.support": parts[number].astype(np.int64),
            f"{number}.index": function.index.astype(np.int64),
            f"{number}.weights": function.weights,
            f"{number}.coefficients": function.coefficients,
            f"{number}.bias": function.bias,
            f"{number}.kernel_weights": weights,
        }
        if function.rows is not None:
            arrays[f"{number}.rows"] = function.rows.astype(np.int64)
        for kind, support in _supports(function).items():
            if has_code(support.kernels):
                arrays[f"{number}.probe.{kind}"] = probe(support.kernels, support.points)
    one_table = not (
        model.is_sparse or model.views or model.view_columns or model.given or model.texts
    )
    header = {
        "kind": KIND,
        "format": WITHOUT_CODE if model.texts else ONE_TABLE if one_table else WITHOUT_TEXTS,
        "mkldist": metadata.version("mkldist"),
        "columns": model.columns.as_dict(),
        "features": list(model.feature_names),
        "outcome": model.outcome.as_dict(),
        "functions": [
            {
                "cosine": function.cosine,
                "kernels": described(function.kernels),
                "given": [[one.view, one.number, one.alone] for one in function.given],
                **({} if function.texts is None else {"texts": described(function.texts.kernels)}),
            }
            for function in model.functions
        ],
        "facts": dict(model.facts),
    }
    if list(_code(header)):
        header["format"] = FORMAT
    return sealed(header | ({} if one_table else _of_views(model)), arrays)


def _supports(function: Expansion) -> dict[str, Expansion | TextSupport]:
    """Return what has kernels and support points of its own: features, and texts if there are."""
    return {"features": function, **({} if function.texts is None else {"texts": function.texts})}


def _texts(model: ModelContent, function: Expansion) -> Array:
    """Return the texts of a function's support points, empty ones if it uses none."""
    if function.texts is not None:
        return function.texts.points
    n_columns = 0 if model.texts is None else len(model.texts.names)
    return np.full((function.n_support, n_columns), "", dtype=object)


def _of_views(model: ModelContent) -> dict[str, Any]:
    """Return the views of a model as JSON takes them."""
    return {
        "views": {name: [list(one.columns), one.missing] for name, one in model.views.items()},
        "view_columns": {name: one.as_dict() for name, one in model.view_columns.items()},
        "given": None if model.given is None else model.given.as_dict(),
        **({} if model.texts is None else {"texts": model.texts.as_dict()}),
    }


def decoded(content: bytes, where: str, code: Path | None = None) -> ModelContent:
    """Return the model of a file's content.

    Parameters
    ----------
    content : bytes
        Content of the file.
    where : str
        The file, to name in a message.
    code : Path, optional
        Folder to search first for functions of the user; None refuses them.

    Raises
    ------
    mkldist.errors.StoreError
        As for :func:`opened`, for functions of the user without `code`, and for such that have
        changed.
    mkldist.errors.SpecError
        If such a function cannot be imported.
    """
    header, arrays = opened(content, where)
    with _understood(where):
        names = sorted(set(_code(header)))
    if names and code is None:
        raise StoreError(
            where,
            f"kernel functions that are not mkldist's: {', '.join(map(repr, names))}",
            "kernel functions of mkldist, or --allow-code",
            "Repeat the command with --allow-code, or call load_model(path, allow_code=True), "
            "if you trust this code",
        )
    if names and code is not None:
        search_first(str(code.absolute()))
    with _understood(where):
        return _model(header, arrays, where)


@contextmanager
def _understood(where: str) -> Iterator[None]:
    """Refuse a content that no version of mkldist wrote, although its digest is right."""
    try:
        yield
    except MkldistError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise StoreError(
            where,
            f"a content that is no model's ({type(error).__name__}: {error})",
            EXPECTED,
            "Fit it again",
        ) from error


def _code(header: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of every function of the user that a model needs."""
    for fields in header["functions"]:
        yield from code_of([*fields["kernels"], *fields.get("texts", ())])


def opened(content: bytes, where: str) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a model of a file's content.

    Parameters
    ----------
    content : bytes
        Content of the file.
    where : str
        The file, to name in a message.

    Raises
    ------
    mkldist.errors.StoreError
        If it is no model, damaged, or of a newer format.
    """
    found = unsealed(content)
    if found is None:
        is_archive = content[:2] == b"PK"
        fault = "a file that is damaged or cut short" if is_archive else "no model"
        hint = "Copy it again, or fit it again" if is_archive else "Fit one: mkldist fit RESULTS"
        raise StoreError(where, fault, EXPECTED, hint)
    header, arrays = found
    if header.get("kind") != KIND:
        raise StoreError(where, "another file of mkldist", EXPECTED, "Name the file of a model")
    with _understood(where):
        is_newer = header["format"] > FORMAT
    if is_newer:
        raise StoreError(
            where,
            f"format {header['format']}, written by mkldist {header.get('mkldist')}",
            f"format {FORMAT} or before",
            f"Install mkldist {header.get('mkldist')} or later",
        )
    return header, arrays


def _model(header: Mapping[str, Any], arrays: Arrays, where: str) -> ModelContent:
    """Return the model of a header and arrays whose digest is right."""
    points, texts = unpacked_points(arrays), unpacked_texts(arrays)
    functions = [
        Expansion(
            kernels=kernel_list(fields["kernels"], where),
            index=arrays[f"{number}.index"].astype(np.intp),
            cosine=bool(fields["cosine"]),
            points=points_at(points, arrays[f"{number}.support"]),
            weights=arrays[f"{number}.weights"],
            coefficients=arrays[f"{number}.coefficients"],
            bias=arrays[f"{number}.bias"],
            given=tuple(GivenKernel(*one) for one in fields.get("given", ())),
            rows=arrays.get(f"{number}.rows"),
            texts=None
            if texts is None or "texts" not in fields
            else TextSupport(
                kernel_list(fields["texts"], where), texts[arrays[f"{number}.support"]]
            ),
        )
        for number, fields in enumerate(header["functions"])
    ]
    for number, function in enumerate(functions):
        for kind, support in _supports(function).items():
            if has_code(support.kernels):
                expected = arrays[f"{number}.probe.{kind}"]
                check_probe(support.kernels, support.points, expected, where)
    d = points.shape[1]
    scale = FeatureScale(arrays.get("centre", np.zeros(d)), arrays.get("spread", np.ones(d)))
    given = header.get("given")
    return ModelContent(
        SourceColumns.from_dict(header["columns"]),
        tuple(header["features"]),
        FittedPreprocessing(arrays.get("fill"), scale),
        tuple(functions),
        tuple(arrays[f"{number}.kernel_weights"] for number in range(len(functions))),
        Outcome.from_dict(header["outcome"]),
        {**header["facts"], "mkldist": header["mkldist"]},
        {name: View(tuple(c), missing) for name, (c, missing) in header.get("views", {}).items()},
        {
            name: SourceColumns.from_dict(columns)
            for name, columns in header.get("view_columns", {}).items()
        },
        None if given is None else GivenRows.from_dict(given),
        ModelTexts.from_dict(header["texts"]) if "texts" in header else None,
    )
