"""Banks of kernels for Python: made, checked and packed once, then solved many times."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, cast

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from mkldist.arrays import Array, Bools, Floating, Floats, Ints
from mkldist.blas_threads import single_threaded, threads_for
from mkldist.counted import counted
from mkldist.data.dataset import Dataset, GivenGrams, sparse_parts
from mkldist.data.listing import first_of
from mkldist.data.texts import TextColumns, TextView, fingerprint_parts
from mkldist.durable import temporary_folder, writing
from mkldist.errors import DataError, GramError, SpecError, nearest
from mkldist.fit.decision import Expansion, NewPoints, RawPredictor, TextSupport, raw_predictors
from mkldist.fit.grams import (
    MOST_THREADS,
    Inspection,
    gram_stack,
    inspected_stack,
    packed_bank,
    side_by_side,
)
from mkldist.fit.inputs import Features, real_array
from mkldist.gram.bank import Bank, MemoryBank
from mkldist.gram.bank_kernels import BankKernels
from mkldist.gram.cache import default_directory
from mkldist.gram.device_source import on_device
from mkldist.gram.factored_kernels import FactoredKernels, begin_factors, least_bytes, limits_of
from mkldist.gram.layout import TileLayout
from mkldist.gram.part import PartBank
from mkldist.gram.passes import answer
from mkldist.gram.plain_source import PlainSource
from mkldist.gram.recomputed import RecomputedBank
from mkldist.gram.requests import Combine
from mkldist.gram.sources import BankSource, FeatureSource, check_finite
from mkldist.gram.view import BankView, make_views
from mkldist.identity import array_id, content_id
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import NAMED_FAMILIES
from mkldist.kernels.gaps import Presence
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.point_checks import check_custom, check_points
from mkldist.kernels.precomputed import Precomputed
from mkldist.kernels.words import Kernel
from mkldist.machine_memory import GIB, SHARE_OF_MEMORY, at_most_half, physical_memory
from mkldist.memory import kept_arrays_bytes, row_cache_bytes
from mkldist.processors import n_processors
from mkldist.row_places import FROM_ZERO
from mkldist.solvers.kept_arrays import KeptArrays
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.kernel_entries import PRECOMPUTED
from mkldist.spec.mistakes import location_of, most_telling, spec_error
from mkldist.spec.overrides import spelled_location

if TYPE_CHECKING:
    import pandas as pd

    from mkldist.solvers.base import Solution


Backend = Literal["memory", "mmap", "stream", "recompute"]


@dataclass(frozen=True)
class BankSize:
    """Size of a bank before it is made.

    Parameters
    ----------
    n_kernels, n_points : int
        Numbers of kernels and of points.
    dtype : dtype
        float32 or float64.
    """

    n_kernels: int
    n_points: int
    dtype: np.dtype[np.floating]

    @property
    def n_bytes(self) -> int:
        """Bytes of all stored entries."""
        layout = TileLayout.for_points(self.n_points)
        return self.n_kernels * layout.n_entries * self.dtype.itemsize

    @property
    def fits(self) -> bool:
        """True if half of this machine's memory holds the bank."""
        return self.n_bytes <= SHARE_OF_MEMORY * physical_memory()

    def require_fit(self, hint: str) -> None:
        """Raise DataError unless the bank fits in memory; `hint` names the remedy."""
        if not self.fits:
            limit = SHARE_OF_MEMORY * physical_memory()
            raise DataError(
                "backend",
                f"'memory' for {self.n_kernels} kernels on {self.n_points} points, which take "
                f"{self.n_bytes / GIB:.1f} GiB as {self.dtype.name}",
                at_most_half(limit),
                hint,
            )


def backend_for(asked: str, size: BankSize, otherwise: Backend) -> Backend:
    """Return the backend that was asked for; for ``"auto"`` memory if the bank fits.

    Parameters
    ----------
    asked : str
        A backend or ``"auto"``.
    size : BankSize
        Size of the bank.
    otherwise : Backend
        Backend of a bank that does not fit, which the message about it also names.

    Raises
    ------
    mkldist.errors.DataError
        For ``"memory"`` if the bank does not fit there.
    """
    if asked == "auto":
        return "memory" if size.fits else otherwise
    if asked == "memory":
        size.require_fit(f"Choose backend='{otherwise}'")
    return cast(Backend, asked)


@dataclass(frozen=True)
class Keeping:
    """Settings of a bank that do not concern its kernels.

    Parameters
    ----------
    normalisations : tuple of str
        The normalisations in order.
    backend, dtype : str
        As in a sweep file.
    """

    normalisations: tuple[str, ...] = ()
    backend: str = "auto"
    dtype: str = "auto"

    @classmethod
    def of(cls, spec: BankSpec) -> Keeping:
        """Return the settings of a bank of a sweep file."""
        return cls(spec.normalisations, spec.backend, spec.dtype)

    @classmethod
    def of_grams(cls, normalisation: Any, backend: str, dtype: str) -> Keeping:
        """Return the settings of a bank of Gram matrices, checked as those of a sweep file.

        The usual ones need no check, and so none of the classes of sweep files, whose import
        takes as long as the solution of a small problem.

        Raises
        ------
        mkldist.errors.SpecError
            For an unknown word.
        """
        if isinstance(normalisation, str) and (normalisation, backend, dtype) == USUAL:
            return cls()

        settings = {"normalisation": normalisation, "backend": backend, "dtype": dtype}
        return cls.of(bank_spec("precomputed", **settings))

    @property
    def cosine(self) -> bool:
        """True for kernels divided by the roots of k(x, x), as their source does."""
        return "cosine" in self.normalisations

    @property
    def of_views(self) -> list[str]:
        """The normalisations that views make: all but the cosine."""
        return [name for name in self.normalisations if name != "cosine"]

    @property
    def stored_type(self) -> np.dtype[np.floating]:
        """Type in which the bank is stored."""
        return np.dtype("float64" if self.dtype == "auto" else self.dtype)

    def check_one_process(self) -> None:
        """Refuse a bank that only the workers of a sweep divide."""
        if self.backend == "sharded":
            raise SpecError(
                "backend",
                '"sharded" for a bank of one process',
                "another backend",
                "The workers of a sweep divide such a bank",
            )

    def check_given(self) -> None:
        """Refuse cosines of given matrices, whose new points would lack k(x, x)."""
        if self.cosine:
            raise SpecError(
                "normalisation",
                "'cosine' for given Gram matrices",
                "'trace', 'centre', 'variance' or 'none'",
                "Divide k(x, z) by the root of k(x, x) k(z, z) before",
            )

    def __str__(self) -> str:
        """Return the normalisations as the user reads them."""
        return ", ".join(self.normalisations) or "none"


USUAL = ("none", "auto", "auto")


NO_VIEWS: Mapping[str, Sequence[int | str]] = {}
EXAMPLE = '[{"function": "gaussian", "widths": [0.5, 1, 2]}]'
SHOWN = 5


def bank_spec(kernels: Any, **settings: Any) -> BankSpec:
    """Return the bank that a sweep file would describe by ``[[banks]]``.

    Parameters
    ----------
    kernels : str or sequence of mappings and kernels
        Name of a family; or entries with the keys of ``[[banks.kernels]]``, objects such as
        ``mkldist.kernels.Gaussian``, and functions of two sets of points.
    **settings
        Other keys of ``[[banks]]``.

    Raises
    ------
    mkldist.errors.SpecError
        For an unknown family, key or value, in the words of sweep files.
    """
    document = {name: plain(value) for name, value in settings.items()}
    if isinstance(kernels, str):
        document["family"] = kernels
    elif isinstance(kernels, Mapping) or not isinstance(kernels, Sequence) or not len(kernels):
        empty = isinstance(kernels, list | tuple) and not kernels
        found = "an empty list" if empty else f"{kernels!r:.60}"
        raise SpecError(
            "kernels",
            found,
            f"the name of a family, such as {next(iter(NAMED_FAMILIES))!r}, or {EXAMPLE}",
        )
    else:
        document["kernels"] = [
            {"function": kernel} if callable(kernel) else plain(kernel) for kernel in kernels
        ]
    try:
        return BankSpec.model_validate(document)
    except ValidationError as error:
        first = most_telling(error.errors())
        where = spelled_location(location_of(first), document) or "KernelBank"
        raise spec_error(first, "kernels" if where == "family" else where, BankSpec) from None


def check_seed(seed: Any) -> None:
    """Refuse a seed that is no whole number of at least 0.

    Raises
    ------
    mkldist.errors.SpecError
        For any other seed.
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or seed < 0:
        raise SpecError("seed", f"{seed!r:.60}", "a whole number of at least 0")


def kernels_on(
    features: Features,
    spec: BankSpec,
    groups: Mapping[str, Sequence[int | str]],
    seed: int,
    given: dict[str, GivenGrams],
    views: Mapping[str, Sequence[int | str]] = NO_VIEWS,
) -> tuple[BankKernels, Dataset]:
    """Return the kernels of a bank over features and given matrices, and both as a data set.

    Parameters
    ----------
    features : Features
        The points.
    spec : BankSpec
        The kernels.
    groups : mapping of str to sequence of int or str
        Names for groups of features, given by name or by number from 0.
    seed : int
        Seed of random subsets and widths.
    given : dict of str to GivenGrams
        Views that are Gram matrices.
    views : mapping of str to sequence of int or str
        Names for groups of features that are views, besides those that the features were given in.

    Raises
    ------
    mkldist.errors.SpecError, mkldist.errors.DataError
        For kernels that do not fit the features, for unknown features of a group, and for groups
        and views of one name.
    """
    from mkldist.data.assemble import group_columns
    from mkldist.data.dataset import Dataset, View
    from mkldist.gram.bank_kernels import BankKernels

    for kind, named in (("groups", groups), ("views", views)):
        check_groups(named, kind)
    columns = features.columns_of_views
    _check_apart(columns, views, "views")
    texts, views = _with_views(features.texts, views)
    columns |= group_columns(views, features.names, "X")
    of_views = tuple(columns)
    _check_apart(columns, groups, "groups")
    columns |= group_columns(groups, features.names, "X")
    dataset = Dataset(
        name="X",
        x=None if is_sparse(features.points) or not features.names else features.points,
        sparse=features.points if is_sparse(features.points) else None,
        y=np.zeros(features.n_points),
        classes=None,
        feature_names=features.names,
        groups=columns,
        views={name: View(columns[name]) for name in of_views},
        given=given,
        texts=texts,
    )
    try:
        return BankKernels.of(spec, dataset, seed), dataset
    except SpecError as error:
        where = error.where.removeprefix(f"banks.{spec.label}.")
        raise SpecError(where, error.found, error.expected, error.hint) from None


def _with_views(
    texts: TextColumns | None, views: Mapping[str, Sequence[int | str]]
) -> tuple[TextColumns | None, Mapping[str, Sequence[int | str]]]:
    """Return columns of texts with the views that name them, and the other columns of views."""
    if texts is None:
        return None, views
    places = {name: place for place, name in enumerate(texts.names)}
    of_texts, others = {}, {}
    for view, members in views.items():
        own = tuple(places[member] for member in members if member in places)
        if own:
            of_texts[view] = TextView(own)
        if len(own) < len(members) or not own:
            others[view] = [member for member in members if member not in places]
    return replace(texts, views=of_texts), others


def plain(value: Any) -> Any:
    """Return kernels, arrays, ranges and numbers of numpy within a value as plain Python."""
    if isinstance(value, Kernel):
        return plain(value.entry())
    if callable(value):
        return value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    return value


def check_groups(groups: Mapping[str, Any], where: str) -> None:
    """Refuse groups that are no lists of features.

    Parameters
    ----------
    groups : mapping of str to sequence of int or str
        Features by the names of their groups.
    where : str
        The parameter to name in a message.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first such group.
    """
    expected = "features in lists, by the names of their groups"
    if not isinstance(groups, Mapping):
        raise SpecError(where, f"{groups!r:.60}", expected)
    for name, members in groups.items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            raise SpecError(f"{where}[{name!r}]", f"{members!r:.60}", expected)
        if any(isinstance(member, bool | np.bool_) for member in members):
            hint = "Give the numbers of the columns of a mask: np.flatnonzero(mask).tolist()"
            raise SpecError(f"{where}[{name!r}]", f"{members!r:.60}", expected, hint)


def _check_apart(known: Collection[str], names: Collection[str], where: str) -> None:
    """Refuse groups or views that have the name of a view."""
    both = [repr(name) for name in names if name in known]
    if both:
        raise SpecError(
            where,
            f"{first_of(both, SHOWN)}, the name of a view too",
            "a name of its own for each group and view",
            "Rename one of them",
        )


def loaded(source: BankSource, dtype: np.dtype[np.floating]) -> MemoryBank:
    """Compute a bank into memory, several kernels side by side.

    Raises
    ------
    mkldist.errors.GramError
        If a kernel has values that the type cannot hold.
    """
    layout = TileLayout.for_points(source.n_points)
    values: Floating = np.empty((source.n_kernels, layout.n_entries), dtype=dtype)
    tiles = values.reshape(len(values), layout.n_tiles, layout.tile, layout.tile)

    def work(kernels: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            source.fill(kernels, slice(0, layout.n_tiles), layout, tiles[kernels])
            check_finite(values[kernels], kernels.start, source)

    with single_threaded():
        side_by_side(work, len(values), layout.n_entries)
    return MemoryBank(values, layout)


def recomputed(source: BankSource) -> RecomputedBank:
    """Return a bank whose kernels are computed in every pass."""
    return RecomputedBank(source, row_cache_bytes(None), n_processors())


class TemporaryFolder:
    """A new folder that is deleted with this object, or at the end of the process.

    Raises
    ------
    mkldist.errors.OutputError
        If no folder for temporary files can be written.
    """

    def __init__(self) -> None:
        with writing(parent := temporary_folder()):
            self.path = Path(tempfile.mkdtemp(prefix="mkldist-", dir=parent))
        self.delete = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class StoredBank:
    """A bank in a folder, and the temporary folder that ends with it.

    Parameters
    ----------
    bank : Bank
        The bank, open.
    temporary : TemporaryFolder or None
        The folder; None if the user gave one.
    """

    bank: Bank
    temporary: TemporaryFolder | None


def stored(
    make_source: Callable[[], BankSource],
    bank_id: str,
    size: BankSize,
    backend: Backend,
    folder: str | Path | None,
) -> StoredBank:
    """Build what a folder lacks of a bank, and open it there.

    Parameters
    ----------
    make_source : callable
        Returns the source of the bank's values; called only if blocks are missing.
    bank_id : str
        Name of the bank in the folder: a content hash, under which it is found again.
    size : BankSize
        Its size.
    backend : {"mmap", "stream"}
        How it is read.
    folder : str, Path or None
        The folder; None for a temporary one.

    Raises
    ------
    mkldist.errors.DataError
        If the disk has too little room.
    mkldist.errors.OutputError
        If the folder cannot be written.
    """
    from mkldist.gram.build import build_blocks
    from mkldist.gram.cache import NodeCache
    from mkldist.gram.open import open_bank
    from mkldist.gram.store import GramStore

    temporary = TemporaryFolder() if folder is None else None
    root = temporary.path if temporary is not None else Path(folder or ".")
    reading: Literal["mmap", "stream"] = "mmap" if backend == "mmap" else "stream"
    layout = TileLayout.for_points(size.n_points)
    store = GramStore.create(root, bank_id, size.n_kernels, layout, size.dtype)
    missing = store.missing()
    if missing:
        _require_room(root, len(missing) / len(store.blocks) * store.n_bytes)
        source = make_source()

        def build(blocks: slice) -> None:
            build_blocks(source, store, missing[blocks])

        with single_threaded():
            side_by_side(build, len(missing), store.n_bytes // len(store.blocks))
    return StoredBank(open_bank(store, reading, cache=NodeCache(root / "mapped")), temporary)


def _require_room(folder: Path, n_bytes: float) -> None:
    """Raise DataError if a disk has too little room for the blocks to build."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise DataError(
            str(folder),
            f"{free / GIB:.1f} GiB of free space",
            f"{n_bytes / GIB:.1f} GiB for the bank",
            "Choose another folder, or backend='recompute' for kernels of features",
        )


def factored(
    source: BankSource, spec: BankSpec, seed: int, folder: str | Path | None = None
) -> FactoredKernels:
    """Factorise all kernels to few columns, several side by side, in half of the memory.

    Factors that do not fit there lie in a file of a folder, by default of the node cache.

    Raises
    ------
    mkldist.errors.DataError
        If not even one of these factors might fit in memory while it is made.
    mkldist.errors.GramError
        If a kernel has values that are not finite.
    mkldist.errors.OutputError
        If the folder cannot be written.
    """
    most = int(SHARE_OF_MEMORY * physical_memory())
    limits = limits_of(spec, most)
    n, threads = source.n_points, min(n_processors(), MOST_THREADS)
    needed = least_bytes(n, limits)
    if needed > most:
        raise DataError(
            "backend",
            f"'factors' of rank {limits.first(n)} on {counted(n, 'point')}, of which one takes "
            f"up to {needed / GIB:.1f} GiB while it is made",
            at_most_half(most),
            "Lower rank",
        )
    place = default_directory() if folder is None else Path(folder)
    dtype = "float32" if spec.dtype == "float32" else "float64"
    return begin_factors(source, limits, seed, threads, folder=place, dtype=dtype)


class Origin(Protocol):
    """Source of the names of kernels and of their values at new points."""

    def select(self, kernels: Ints) -> Origin:
        """Return the origin of some of the kernels."""

    def table(self) -> pd.DataFrame:
        """Return a description of the kernels, one row a kernel."""

    def groups(self) -> Ints | None:
        """Return the group of each kernel, (M,): its features; None where kernels have none."""

    def at(self, new: Any, view: BankView, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points for decision functions on a view of the bank."""

    def expansion(self, predictors: list[RawPredictor]) -> Expansion:
        """Return decision functions of the bank apart from it."""


@dataclass(frozen=True, eq=False)
class GramOrigin:
    """Gram matrices that were given.

    Parameters
    ----------
    n_points : int
        Number of points n.
    names : tuple of str
        Names of the M kernels.
    """

    n_points: int
    names: tuple[str, ...]

    def select(self, kernels: Ints) -> GramOrigin:
        """See :meth:`Origin.select`."""
        return replace(self, names=tuple(self.names[kernel] for kernel in kernels.tolist()))

    def table(self) -> pd.DataFrame:
        """See :meth:`Origin.table`."""
        import pandas as pd

        return pd.DataFrame({"name": list(self.names)})

    def groups(self) -> None:
        """Return None: each matrix is by itself."""

    def at(self, new: Any, view: BankView, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points, given by their kernel values, (M, n_new, n)."""
        refuse_grams(grams)
        between = _cross_grams(new, len(self.names), self.n_points)

        def values(kernels: Ints, points: slice, support: Ints | slice) -> Iterator[Floats]:
            for kernel in kernels.tolist():
                yield np.asarray(between[kernel][points][:, support], dtype=np.float64)

        return NewPoints(view, between.shape[1], values)

    def expansion(self, predictors: list[RawPredictor]) -> Expansion:
        """Refuse: matrices know no points."""
        raise no_points()


def no_points() -> GramError:
    """Return the error of decision functions that would need the points of Gram matrices."""
    return GramError("bank", "given Gram matrices", "kernels of features and of texts alone")


def refuse_grams(grams: Mapping[str, Any] | None) -> None:
    """Refuse kernel values by the names of views for a bank without such views."""
    if grams:
        raise GramError(
            "grams",
            f"matrices of {', '.join(map(repr, grams))}",
            "none: the bank has no kernel mkldist.kernels.Precomputed",
        )


def _cross_grams(given: Any, n_kernels: int, n_points: int) -> Array:
    """Return kernel values between new points and those of a bank, possibly memory-mapped."""
    expected = f"(M, n_new, n) = ({n_kernels}, n_new, {n_points})"
    if isinstance(given, np.ndarray) and given.dtype.kind in "fiub":
        grams: Array = given
    else:
        grams = real_array(given, "X_new", expected)
    if grams.ndim != 3 or (grams.shape[0], grams.shape[2]) != (n_kernels, n_points):
        raise GramError("X_new", f"shape {grams.shape}", expected)
    return grams


def default_names(n_kernels: int) -> tuple[str, ...]:
    """Return the names of given Gram matrices, as sweeps call them."""
    return tuple(f"gram[{m}]" for m in range(n_kernels))


def given_names(names: Sequence[str] | None, n_kernels: int) -> tuple[str, ...]:
    """Return the names that a user gives Gram matrices, or default ones for None.

    Raises
    ------
    mkldist.errors.GramError
        For another number of names than matrices.
    """
    if names is None:
        return default_names(n_kernels)
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise GramError("names", f"{names!r:.60}", "a list of names, one a matrix")
    if len(names) != n_kernels:
        raise GramError(
            "names",
            f"{counted(len(names), 'name')} for {counted(n_kernels, 'matrix', 'matrices')}",
            "one a matrix",
        )
    return tuple(map(str, names))


@dataclass(frozen=True, eq=False)
class FeatureOrigin:
    """Kernel functions on features.

    Parameters
    ----------
    features : Features
        The points.
    kernels : KernelList
        The M kernels.
    cosine : bool
        True if kernels are scaled to unit self-similarities.
    """

    features: Features
    kernels: KernelList
    cosine: bool

    @cached_property
    def source(self) -> FeatureSource | PlainSource:
        """Source of the values of the bank."""
        kind = PlainSource if is_sparse(self.features.points) else FeatureSource
        return kind(self.features.points, self.kernels, self.cosine)

    def select(self, kernels: Ints) -> FeatureOrigin:
        """See :meth:`Origin.select`."""
        return replace(self, kernels=self.kernels.select(kernels))

    def table(self) -> pd.DataFrame:
        """See :meth:`Origin.table`."""
        return function_table(self.kernels, self.features.names)

    def groups(self) -> Ints:
        """Return the feature subset of each kernel, (M,)."""
        return self.kernels.groups

    def at(self, new: Any, view: BankView, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points, given by the same features as those of the bank."""
        from mkldist.kernels.point_checks import check_points

        refuse_grams(grams)
        rows = self.features.like(new)
        check_points(self.kernels, rows, self.features.names, "X_new")

        def values(kernels: Ints, points: slice, support: Ints | slice) -> Iterator[Floats]:
            chosen, known = self.kernels.select(kernels), self.features.points[support]
            yield from evaluate(chosen, rows[points], known, cosine=self.cosine)

        return NewPoints(view, rows.shape[0], values)

    def expansion(self, predictors: list[RawPredictor]) -> Expansion:
        """See :meth:`Origin.expansion`."""
        from mkldist.fit.decision import Expansion

        return Expansion.of(self.kernels, self.cosine, self.features.points, predictors)


def function_table(kernels: KernelList, names: Sequence[str]) -> pd.DataFrame:
    """Return a description of kernel functions, one row a kernel.

    Parameters
    ----------
    kernels : KernelList
        The kernels.
    names : sequence of str
        Names of the features or of the columns of texts.
    """
    import pandas as pd

    ends = kernels.subset_indptr
    subsets = np.empty(len(ends) - 1, dtype=object)
    for s in range(len(subsets)):
        columns = kernels.subset_indices[ends[s] : ends[s + 1]]
        subsets[s] = tuple(names[column] for column in columns.tolist())
    missing = np.full(len(kernels), np.nan)
    usual = dict.fromkeys(("function", "width", "degree", "offset"), missing)
    return pd.DataFrame(
        {
            **(usual | kernels.columns()),
            "features": subsets[kernels.subset],
            "name": kernels.names(names),
        }
    )


def given_views(kernels: Any, features: Features) -> dict[str, GivenGrams]:
    """Return the Gram matrices among the kernels of a bank by the names of their views.

    Parameters
    ----------
    kernels : str or sequence of mappings and kernels
        The kernels as the user gave them.
    features : Features
        The points, which say whether they may lack a view.

    Raises
    ------
    mkldist.errors.SpecError
        For two views of one name.
    mkldist.errors.GramError
        For matrices of another number of points, and for such that are no Gram matrices.
    """
    found: dict[str, GivenGrams] = {}
    listed = [] if isinstance(kernels, str | Mapping) else list(kernels)
    for kernel in listed:
        if not isinstance(kernel, Precomputed):
            continue
        where = f"Precomputed {kernel.name!r}"
        if kernel.name in found or kernel.name in features.views:
            raise SpecError(where, "two views of this name", "a name for each", "Set name = …")
        found[kernel.name] = _checked(kernel.grams, features.n_points, features.gaps, where)
    return found


def _checked(given: Any, n_points: int, gaps: bool, where: str) -> GivenGrams:
    """Return matrices over n points, checked where the points have them."""
    stack = gram_stack(_stacked(given, where, "(n, n) or (M, n, n) numbers"), where)
    if stack.shape[1] != n_points:
        raise GramError(where, f"shape {stack.shape}", f"matrices of the {n_points} points of X")
    lacking = _lacking(stack, where) if gaps else np.zeros(n_points, dtype=bool)
    if lacking.any():
        known = ~lacking[:, None] & ~lacking
        if np.isfinite(stack[:, ~known]).any():
            row = int(np.flatnonzero(lacking)[0])
            raise GramError(
                where,
                f"{FROM_ZERO.of(row)} of NaN beside other values of that point",
                "NaN in the whole row and column of a point that lacks the view",
            )
        stack = np.where(known, stack, 0.0)
    inspection = Inspection.of("full", stack.dtype)
    passed = inspected_stack(stack, replace(inspection, where=where))
    return GivenGrams(np.asarray(passed, dtype=np.float64), ~lacking, "zero" if gaps else None)


def _stacked(given: Any, where: str, expected: str) -> Array:
    """Return one matrix or several as (M, r, c)."""
    array: Array = given if isinstance(given, np.ndarray) else real_array(given, where, expected)
    return array[None] if array.ndim == 2 else array


def _lacking(stack: Array, where: str) -> Bools:
    """Return which points have NaN in every entry of their row, in all of the matrices."""
    if stack.dtype.kind != "f":
        return np.zeros(stack.shape[1], dtype=bool)
    missing = np.isnan(stack).all(axis=2)
    if (missing.any(axis=0) != missing.all(axis=0)).any():
        raise GramError(
            where,
            "points that lack some of the matrices",
            "points that have all matrices of a view or none",
            "Give a Precomputed of its own for each matrix",
        )
    return np.asarray(missing.all(axis=0))


@dataclass(frozen=True, eq=False)
class MixedOrigin:
    """Kernel functions on features and on texts, and Gram matrices that were given.

    Parameters
    ----------
    own : FeatureOrigin or None
        The kernel functions on features, the first kernels; None without any.
    features : Features
        The points.
    kernels : BankKernels
        All kernels.
    dataset : Dataset
        The points and the matrices.
    index : (M,) intp
        The kernels of the bank among all.
    cosine : bool
        True if kernels are scaled to unit self-similarities.
    """

    own: FeatureOrigin | None
    features: Features
    kernels: BankKernels
    dataset: Dataset
    index: Ints
    cosine: bool = False

    @property
    def source(self) -> BankSource:
        """Source of the values of all kernels."""
        return self.kernels.source(self.dataset, self.features.points, None, cosine=self.cosine)

    def select(self, kernels: Ints) -> MixedOrigin:
        """See :meth:`mkldist.fit.bank.Origin.select`."""
        return replace(self, index=self.index[kernels])

    def table(self) -> pd.DataFrame:
        """See :meth:`mkldist.fit.bank.Origin.table`."""
        import pandas as pd

        given = pd.DataFrame(
            {
                "function": [PRECOMPUTED] * len(self.kernels.given),
                "features": [(kernel.view,) for kernel in self.kernels.given],
                "name": [kernel.name for kernel in self.kernels.given],
            }
        )
        tables = [] if self.own is None else [self.own.table()]
        if self.kernels.of_texts is not None:
            tables.append(function_table(self.kernels.of_texts, self.kernels.text_names))
        tables += [given] if len(given) else []
        return pd.concat(tables, ignore_index=True).iloc[self.index].reset_index(drop=True)

    def groups(self) -> Ints:
        """See :meth:`mkldist.fit.bank.Origin.groups`."""
        return self.kernels.groups[self.index]

    def at(self, new: Any, view: BankView, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points, given by features, texts and their kernel values of each view."""
        rows = self.features.like(new)
        between = self._between(grams or {}, rows.shape[0])
        texts = None if self.features.texts is None else self.features.texts_like(new)
        n_own = 0 if self.own is None else len(self.own.kernels)
        first = len(self.kernels) - len(self.kernels.given)

        def values(kernels: Ints, points: slice, support: Ints | slice) -> Iterator[Floats]:
            for kernel in self.index[kernels].tolist():
                if kernel < n_own and self.own is not None:
                    chosen = self.own.kernels.select([kernel])
                    known = self.features.points[support]
                    yield from evaluate(chosen, rows[points], known, cosine=self.cosine)
                elif kernel < first:
                    yield from self._of_texts(kernel - n_own, texts, points, support)
                else:
                    given = self.kernels.given[kernel - first]
                    yield between[given.view][given.number][points][:, support]

        return NewPoints(view, rows.shape[0], values)

    def expansion(self, predictors: list[RawPredictor]) -> Expansion:
        """See :meth:`mkldist.fit.bank.Origin.expansion`."""
        of_texts, texts = self.kernels.of_texts, self.features.texts
        if self.kernels.given or of_texts is None or texts is None:
            raise no_points()
        own = self.kernels.of_features or of_texts.select(np.zeros(0, dtype=np.intp))
        order = np.argsort(self.index[predictors[0].kernels])
        placed = [self._placed(predictor, order) for predictor in predictors]
        support = TextSupport(of_texts, texts.values)
        made = Expansion.of(own, self.cosine, self.features.points, placed, texts=support)
        return replace(made, index=predictors[0].kernels[order])

    def _placed(self, predictor: RawPredictor, order: Ints) -> RawPredictor:
        """Return a decision function whose kernels are places among all, in this order."""
        coefficients = predictor.coefficients
        return replace(
            predictor,
            kernels=self.index[predictor.kernels[order]],
            weights=predictor.weights[order],
            coefficients=coefficients if coefficients.ndim == 1 else coefficients[order],
        )

    def _of_texts(
        self, kernel: int, texts: Array | None, points: slice, support: Ints | slice
    ) -> Floats:
        """Return the values of a kernel of texts between new points and some of the bank's."""
        known = self.features.texts
        if self.kernels.of_texts is None or known is None or texts is None:
            raise ValueError("kernels of texts need texts")
        chosen = self.kernels.of_texts.select([kernel])
        return evaluate(chosen, texts[points], known.values[support], cosine=self.cosine)

    def _between(self, given: Mapping[str, Any], n_new: int) -> dict[str, Floats]:
        """Return the kernel values of each view between new points and those of the bank."""
        known = self.dataset.given
        for name in (*known, *given):
            if name not in given or name not in known:
                found = f"no matrices of {name!r}" if name in known else f"matrices of {name!r}"
                wanted = ", ".join(f"{view!r}: (n_new, n)" for view in known)
                raise DataError(
                    "grams",
                    found,
                    f"kernel values between new points and those of the bank, {{{wanted}}}",
                    nearest(name, given) or "Call bank.on(X_new, grams={name: values})",
                )
        return {name: self._checked_between(name, values, n_new) for name, values in given.items()}

    def _checked_between(self, name: str, values: Any, n_new: int) -> Floats:
        """Return (M, n_new, n) kernel values, zero for new points that lack the view."""
        one, where = self.dataset.given[name], f"grams[{name!r}]"
        shape = (len(one.grams), n_new, len(one.present))
        expected = f"(M, n_new, n) = {shape}"
        stack = np.asarray(_stacked(values, where, expected), dtype=np.float64)
        if stack.shape != shape:
            raise GramError(where, f"shape {stack.shape}", expected)
        stack = np.where(one.present, stack, 0.0)
        if one.missing == "zero":
            lacking = np.asarray(np.isnan(stack[:, :, one.present]).all(axis=(0, 2)))
            stack = np.where(lacking[:, None], 0.0, stack)
        if not np.isfinite(stack).all():
            raise GramError(where, "values that are not finite", "finite numbers")
        return stack


@dataclass(frozen=True, eq=False)
class BankContent:
    """Parts of a bank, which banks of some of its kernels share.

    Parameters
    ----------
    view : BankView
        The bank with the normalisation of its kernels.
    origin : Origin
        Source of the kernels.
    backend, normalisation : str
        Words for the user.
    temporary : TemporaryFolder or None
        Folder that is deleted when the last bank in it is gone.
    inspection : Inspection or None
        Checks of given matrices that follow a solution; None if there are none to come.
    passed : (M,) bool
        True for kernels that passed these checks.
    factored : FactoredKernels or None
        The kernels themselves beside their factors, where `view` is of factors.
    """

    view: BankView
    origin: Origin
    backend: str
    normalisation: str
    temporary: TemporaryFolder | None = None
    inspection: Inspection | None = None
    passed: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    factored: FactoredKernels | None = None


def normalised(bank: Bank, keeping: Keeping, presence: Presence | None = None) -> BankView:
    """Return a bank with its kernels normalised on all points; their source has made cosines."""
    [view] = make_views(bank, [None], keeping.of_views, presence=presence)
    return view


def bank_of_grams(
    grams: Any,
    keeping: Keeping,
    check: str,
    names: Sequence[str] | None,
    folder: str | Path | None,
) -> BankContent:
    """Return a bank of Gram matrices; see :meth:`mkldist.KernelBank.from_grams`."""
    keeping.check_one_process()
    stack = gram_stack(grams)
    keeping.check_given()
    inspection = Inspection.of(check, stack.dtype)
    origin = GramOrigin(stack.shape[1], given_names(names, len(stack)))
    size = BankSize(len(stack), stack.shape[1], keeping.stored_type)
    kept = backend_for(keeping.backend, size, "stream")
    temporary = None
    with threads_for(size.n_points):
        if kept == "memory":
            bank: Bank = packed_bank(stack, inspection, size.dtype)
        else:
            opened = _stored(stack, inspection, size, kept, folder)
            bank, temporary = opened.bank, opened.temporary
        view = normalised(bank, keeping)
    return BankContent(
        view,
        origin,
        kept,
        str(keeping),
        temporary,
        inspection if check == "active" else None,
        np.zeros(len(stack), dtype=bool),
    )


def _stored(
    stack: Array,
    inspection: Inspection,
    size: BankSize,
    backend: Backend,
    folder: str | Path | None,
) -> StoredBank:
    """Check matrices and store them in a folder, and open the bank there."""
    from mkldist.gram.sources import ArraySource

    passed = inspected_stack(stack, inspection)
    identity = content_id(grams=array_id(passed))
    return stored(lambda: ArraySource(passed), identity, size, backend, folder)


def bank_of_features(
    features: Features,
    spec: BankSpec,
    groups: Mapping[str, Sequence[int | str]],
    seed: int,
    folder: str | Path | None,
    given: dict[str, GivenGrams] | None = None,
    views: Mapping[str, Sequence[int | str]] | None = None,
) -> BankContent:
    """Return a bank of features and of matrices beside them; see :class:`mkldist.KernelBank`."""
    if spec.family == "precomputed":
        hint = "Or call KernelBank.from_grams for Gram matrices"
        raise SpecError("kernels", "'precomputed' for features", "another family", hint)
    keeping = Keeping.of(spec)
    keeping.check_one_process()
    kernels, dataset = kernels_on(features, spec, groups, seed, given or {}, views or {})
    if kernels.of_features is not None:
        check_points(kernels.of_features, features.points, features.names, "X")
        check_custom(kernels.of_features, features.points)
    if kernels.of_texts is not None and features.texts is not None:
        check_custom(kernels.of_texts, features.texts.values)
    origin = _origin(features, kernels, dataset, keeping)
    source = on_device(origin.source, spec.device, "device")
    if spec.backend == FACTORS:
        return _factored(origin, source, keeping, spec, seed, folder)
    size = BankSize(len(kernels), features.n_points, keeping.stored_type)
    kept = backend_for(keeping.backend, size, "recompute")
    if kept == "memory":
        opened = StoredBank(loaded(source, size.dtype), None)
    elif kept == "recompute":
        opened = StoredBank(recomputed(source), None)
    else:
        points = array_id(*_arrays(dataset))
        identity = content_id(points=points, kernels=kernels.fingerprint, cosine=keeping.cosine)
        opened = stored(lambda: origin.source, identity, size, kept, folder)
    view = normalised(opened.bank, keeping, origin.source.presence)
    return BankContent(view, origin, kept, str(keeping), opened.temporary)


def _factored(
    origin: FeatureOrigin | MixedOrigin,
    source: BankSource,
    keeping: Keeping,
    spec: BankSpec,
    seed: int,
    folder: str | Path | None,
) -> BankContent:
    """Return a bank of thin factors, with the normalisation that the kernels themselves have."""
    made = factored(source, spec, seed, folder)
    [view] = made.views([None], keeping.of_views)
    made = replace(made, scale=view.scale)
    return BankContent(made.view, origin, spec.backend, str(keeping), factored=made)


def _arrays(dataset: Dataset) -> list[Array | None]:
    """Return the arrays that decide the values of kernels."""
    own = [dataset.x] if dataset.sparse is None else [*sparse_parts(dataset.sparse)]
    given = (one.grams for one in dataset.given.values())
    return [*own, *given, *fingerprint_parts(dataset.texts)]


def _origin(
    features: Features, kernels: BankKernels, dataset: Dataset, keeping: Keeping
) -> FeatureOrigin | MixedOrigin:
    """Return the origin of kernels of features, and of others if there are any."""
    own = None
    if kernels.of_features is not None:
        own = FeatureOrigin(features, kernels.of_features, keeping.cosine)
        if not kernels.given and kernels.of_texts is None:
            return own
    if kernels.given:
        keeping.check_given()
    return MixedOrigin(own, features, kernels, dataset, np.arange(len(kernels)), keeping.cosine)


def some_kernels(content: BankContent, index: Ints) -> BankContent:
    """Return the parts of a bank of some kernels.

    Parameters
    ----------
    content : BankContent
        Parts of the bank of all kernels.
    index : (S,) intp
        The kernels, in any order.
    """
    whole = content.view
    origin = content.origin.select(index)
    factored = None if content.factored is None else content.factored.select(index)
    if factored is not None:
        part: Bank = factored.factors
    elif isinstance(whole.bank, RecomputedBank) and isinstance(origin, FeatureOrigin):
        part = recomputed(origin.source)
    else:
        part = PartBank(whole.bank, index)
    traces = None if whole.traces is None else whole.traces[index]
    return BankContent(
        BankView(part, None, whole.scale[index], whole.centred, traces=traces),
        origin,
        content.backend,
        content.normalisation,
        content.temporary,
        content.inspection,
        content.passed[index] if content.inspection else content.passed,
        factored,
    )


class KernelBank:
    """M kernels on n points: made, checked and packed once, then solved many times.

    ``KernelBank(X, kernels)`` evaluates kernel functions on features;
    :meth:`KernelBank.from_grams` takes Gram matrices.  ``mkldist.solve(method, bank, y)`` and
    ``mkldist.solve_path`` take the bank where they take Gram matrices.

    Features are taken as they are.  Unlike a sweep, a bank does not scale them (``zscore`` by
    default there), drop constant ones, fill missing values, or set points aside.  What is fitted
    is the normalisation: on X, and :meth:`on` applies it to new points.

    Parameters
    ----------
    X : (n, d) array-like, sparse array or DataFrame, or mapping of str to array-likes
        Features of the training points, finite; or views, blocks of features by name, which
        `features` of a kernel may use.  A feature ``a`` of a view ``v`` is called ``v.a``.  Sparse
        features stay sparse: Gaussian, polynomial and linear kernels come from sparse products.
    kernels : str or list of dict and kernels
        Name of a family, see ``mkldist list kernels``; or entries with the keys of
        ``[[banks.kernels]]`` in a sweep file (such as ``function``, ``widths`` and ``features``),
        objects such as ``mkldist.kernels.Gaussian(width=0.5)``, and functions of one's own, see
        ``mkldist.kernels.Custom``.  The columns of a DataFrame are features by name, those of an
        array are ``x0``, ``x1`` and so on.  ``mkldist.kernels.Precomputed(grams, name="strings")``
        puts Gram matrices beside them.
    normalisation : str or list of str
        As in a sweep file: ``"trace"``, ``"cosine"``, ``"centre"``, ``"variance"``, ``"none"``, or
        several in order.
    backend : {"auto", "memory", "mmap", "stream", "recompute", "factors"}
        As in a sweep file: loaded into memory; mapped from a file; read from files in every pass;
        or never stored and computed in every pass.  ``"auto"`` loads a bank that half of this
        machine's memory holds, and computes any other in every pass.  ``"factors"``, for many
        points, keeps of each kernel a thin factor G with ``G G' <= K``.  Some methods solve on
        these, which go on until :attr:`mkldist.Solution.exact_gap` reaches `tol`.
    dtype : {"auto", "float32", "float64"}
        Precision of stored kernels or factors; ``"auto"`` is float64.  Arithmetic is in float64.
    groups : mapping of str to list of str or int, optional
        Names for groups of features, which ``features`` of a kernel may use.
    views : mapping of str to list of str or int, optional
        Groups that are views: ``features="views"`` stands for each of them.  Those of `texts` may
        be among their columns, by name.
    missing : {"error", "zero"}
        What NaN means: a mistake, or a feature that the point lacks.  A kernel is zero between any
        point and one that lacks one of the kernel's features, here and at new points; so it is
        for texts.
    texts : list of str, optional
        Columns of a DataFrame `X` that are texts.  ``mkldist.kernels.Spectrum`` and functions of
        one's own name them by `features`; other kernels do not see them.
    seed : int
        Seed of random feature subsets and random widths.
    folder : str or Path, optional
        Folder for the files of ``"mmap"`` and ``"stream"``; the same kernels on the same points
        are found there again.  By default a temporary folder, deleted by :meth:`close`, at the end
        of a ``with`` block, or with the last bank that uses it.  Factors that memory does not hold
        lie in a file without a name there, by default in the node cache.
    rank : int, optional
        Most columns of a factor; by default as many as can be made in half of this machine's
        memory, which the factors share.  Factors begin with 100, and those that a solution is found
        to lack go on.
    tolerance : float, optional
        Share of a kernel's trace with which a factor ends before, by default 0.001.
    device : str
        What computes kernels in passes, and those of factors: ``"cpu"``, or a device of PyTorch
        such as ``"cuda"``, as in a sweep file.

    Raises
    ------
    mkldist.errors.SpecError
        For unknown families, keys, features or settings.
    mkldist.errors.DataError
        For features that cannot be used, and for a bank that does not fit where it is to be kept.

    Examples
    --------
    >>> import numpy as np, mkldist
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.sign(X[:, 0] * X[:, 1])
    >>> bank = mkldist.KernelBank(X[:40], [
    ...     {"function": "gaussian", "widths": [0.5, 1, 2], "features": ["all", "each"]},
    ...     {"function": "polynomial", "degrees": [2]},
    ... ])
    >>> len(bank), bank.kernels.function[3]
    (13, 'polynomial')
    >>> solution = mkldist.solve("level", bank, y[:40], C=10.0)
    >>> solution.decision_function(bank.on(X[40:])).shape
    (20,)
    """

    _content: BankContent
    __iter__ = None  # a bank is no sequence of kernels: bank[0] is refused

    def __init__(
        self,
        X: Any,
        kernels: str | Sequence[Mapping[str, Any] | Kernel | Callable[..., Any]],
        *,
        normalisation: str | Sequence[str] = "trace",
        backend: str = "auto",
        dtype: str = "auto",
        groups: Mapping[str, Sequence[int | str]] | None = None,
        views: Mapping[str, Sequence[int | str]] | None = None,
        missing: str = "error",
        texts: Sequence[str] = (),
        seed: int = 0,
        folder: str | Path | None = None,
        rank: int | None = None,
        tolerance: float | None = None,
        device: str = "cpu",
    ) -> None:
        from mkldist.fit.inputs import Features, text_names

        if missing not in ("error", "zero"):
            raise SpecError("missing", f"{missing!r}", "'error' or 'zero'")
        check_seed(seed)
        features = Features.of(X, gaps=missing == "zero", texts=text_names(texts)).apart_from(X)
        settings = {"normalisation": normalisation, "backend": backend, "dtype": dtype}
        spec = bank_spec(kernels, **settings, rank=rank, tolerance=tolerance, device=device)
        given = given_views(kernels, features)
        self._content = bank_of_features(
            features, spec, groups or {}, seed, folder, given, views or {}
        )

    @classmethod
    def from_grams(
        cls,
        grams: npt.ArrayLike,
        *,
        normalisation: str | Sequence[str] = "none",
        check: Literal["full", "active", "none"] = "full",
        backend: str = "auto",
        dtype: str = "auto",
        names: Sequence[str] | None = None,
        folder: str | Path | None = None,
    ) -> Self:
        """Return a bank of given Gram matrices, checked.

        Parameters
        ----------
        grams : (M, n, n) array-like
            Gram matrices, possibly memory-mapped; they are read one at a time.
        normalisation : str or list of str
            As in a sweep file, without ``"cosine"``; by default none.
        check : {"full", "active", "none"}
            ``"full"`` requires finite, symmetric and positive semi-definite matrices.  It takes
            one factorisation a matrix.  Eigenvalues from -1e-8 of the trace (-1e-6 in single
            precision) to 0 are set to zero; a matrix with smaller ones is refused.

            ``"active"`` checks what a certificate rests on.  At once it requires finite, symmetric
            matrices without negative entries on the diagonal.  After a solution it requires that
            every kernel of positive weight is positive semi-definite, and with these their sum.
            Nothing is said about the definiteness of kernels of weight zero.

            ``"none"`` requires finite entries alone.  The upper triangle counts.  A certificate
            then holds if the matrices are positive semi-definite.
        backend : {"auto", "memory", "mmap", "stream"}
            As for :class:`KernelBank`.  ``"auto"`` streams a bank that does not fit in memory.
        dtype, folder
            As for :class:`KernelBank`.
        names : sequence of str, optional
            Names of the M kernels.

        Raises
        ------
        mkldist.errors.GramError
            For matrices that fail the check; the message names the first such kernel.
        """
        keeping = Keeping.of_grams(normalisation, backend, dtype)
        bank = cls.__new__(cls)
        bank._content = bank_of_grams(grams, keeping, check, names, folder)
        return bank

    def __len__(self) -> int:
        return self.view.n_kernels

    def __repr__(self) -> str:
        """Return the sizes and settings in one line."""
        content, bank = self._content, self.view.bank
        size = "computed in every pass"
        if content.backend != "recompute":
            dtype = bank.dtype if self.factored is None else self.factored.factors.kept_type
            size = f"{bank.n_bytes / 2**20:.1f} MiB of {dtype.name}, {content.backend}"
        return (
            f"<KernelBank: {counted(len(self), 'kernel')} on {counted(self.n_points, 'point')}, "
            f"{size}, normalisation {content.normalisation}>"
        )

    def __getitem__(self, kernels: slice | Sequence[int] | npt.NDArray[Any]) -> KernelBank:
        """Return a bank of some kernels, which shares the memory of this one.

        Parameters
        ----------
        kernels : slice, sequence of int or (M,) bool
            The kernels, in any order.

        Raises
        ------
        IndexError
            For kernels that the bank has not, and for none.
        """
        made = KernelBank.__new__(KernelBank)
        made._content = some_kernels(self._content, _indices(kernels, len(self)))
        return made

    def __array__(self, *_: object, **__: object) -> npt.NDArray[Any]:
        """Refuse to be an array, which numpy would otherwise make of items."""
        expected = "an array, or the points bank.on(X)"
        raise GramError("grams", f"{self!r}", expected)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def n_points(self) -> int:
        """Number of training points n."""
        return self.view.n_points

    @property
    def view(self) -> BankView:
        """The bank as solvers see it."""
        return self._content.view

    @property
    def factored(self) -> FactoredKernels | None:
        """The kernels beside their factors, of a bank of factors; None for other banks."""
        return self._content.factored

    @cached_property
    def graph_arrays(self) -> KeptArrays:
        """What methods on a graph compute of kernels and graphs alone, up to 256 MiB."""
        return KeptArrays(kept_arrays_bytes(None))

    @property
    def has_rounded_factors(self) -> bool:
        """True for a bank of factors in float32."""
        return self.factored is not None and self.factored.factors.kept_type == np.float32

    @property
    def kernels(self) -> pd.DataFrame:
        """Description of the kernels, one row a kernel.

        The columns are function, width, degree, offset, other parameters that kernels have,
        features and name; for Gram matrices the name alone.
        """
        return self._content.origin.table()

    @property
    def groups(self) -> Ints | None:
        """Group of each kernel, (M,), for ``group_mkl``: kernels on the same features form one.

        It is None for Gram matrices.
        """
        return self._content.origin.groups()

    def on(self, X_new: Any, *, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points for :meth:`mkldist.Solution.decision_function`.

        Kernels are evaluated when a decision function is: only those of non-zero weight, and a few
        megabytes at a time.  The normalisation is that of the training points.

        Parameters
        ----------
        X_new : (n_new, d) array-like or DataFrame, or mapping of str to these
            Features in the units of the training points, the columns of a DataFrame and the views
            of a mapping by their names.  For a bank of Gram matrices (M, n_new, n): kernel values
            between new points and training points, without the normalisation.
        grams : mapping of str to (n_new, n) or (M, n_new, n) array-like, optional
            For each ``Precomputed`` of the bank, by its name, kernel values between new points and
            training points.  A row of NaN is that of a point which lacks the view, if points may.

        Raises
        ------
        mkldist.errors.DataError, mkldist.errors.GramError
            For other columns or another shape, and for features that are not finite.
        """
        return self._content.origin.at(X_new, self.view, grams)

    def expansion(self, solution: Solution) -> Expansion:
        """Return the decision functions of a solution apart from the bank.

        They hold the active kernels and the support points alone, so that they are small and can
        be pickled.

        Parameters
        ----------
        solution : Solution
            A solution on this bank.

        Raises
        ------
        mkldist.errors.GramError
            For a bank with given Gram matrices, which knows no points.
        """
        own = solution.kernel_coefficients
        coefficients = solution.coefficients if own is None else own
        predictors = raw_predictors(self.view, solution.kernel_weights, coefficients, solution.bias)
        return self._content.origin.expansion(predictors)

    def check_active(self, kernel_weights: npt.NDArray[np.float64]) -> None:
        """Check the kernels of positive weight, as ``check="active"`` asks after a solution.

        Each kernel is factorised once in the life of a bank.  Banks with another check do nothing.

        Parameters
        ----------
        kernel_weights : (M,) float64
            Weights of a solution.

        Raises
        ------
        mkldist.errors.GramError
            Naming the first kernel that is not positive semi-definite.
        """
        content, bank = self._content, self.view.bank
        if content.inspection is None:
            return
        for m in np.flatnonzero((kernel_weights > 0.0) & ~content.passed).tolist():
            [matrix] = answer(bank, [Combine(np.ones(1), np.array([m]))])
            content.inspection.require_semidefinite(matrix, m)
            content.passed[m] = True

    def close(self) -> None:
        """Give back memory and delete temporary files; the bank must not be used afterwards."""
        self.view.bank.close()
        if self._content.temporary is not None:
            self._content.temporary.delete()


def _indices(kernels: Any, n_kernels: int) -> Ints:
    """Return the kernels that a user names as indices from 0."""
    if isinstance(kernels, int | np.integer):
        raise IndexError(f"found kernel {kernels}; expected a list such as [{kernels}], or a slice")
    index: Ints = np.arange(n_kernels)[kernels]
    if index.ndim != 1 or not len(index):
        raise IndexError(f"found {index.size} kernels; expected at least one of {n_kernels}")
    return index
