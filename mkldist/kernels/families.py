"""Turn the banks of a sweep file, the families of papers among them, into lists of kernels.

Kernels are ordered by feature subset: all features, single features, named groups, random subsets.
Within a subset they have the order of the entries.  Because kernels of one subset are adjacent, a
build computes the distances of a subset once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from mkldist.core.arrays import Floats
from mkldist.errors import SpecError, nearest
from mkldist.kernel_functions import FUNCTIONS, PARAMETERS
from mkldist.kernel_functions.custom import CUSTOM_CODE, CustomFunction, CustomKernel
from mkldist.kernel_functions.definition import (
    RELATIVE,
    WIDTH,
    KernelFunction,
    Parameter,
    kernel_words,
)
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.objects import Kernel
from mkldist.spec.banks import PRECOMPUTED, Features, KernelChoice, KernelSpec, RandomSubsets, Range
from mkldist.spec.kinds import check_fits

# Sizes, columns and widths are drawn from separate streams, subset by subset, so that a larger
# number of random subsets begins with the same ones.
SIZE_STREAM, COLUMN_STREAM, WIDTH_STREAM = 0, 1, 2
COLUMN_DRAWS_AT_ONCE = 4_000_000  # of 8 bytes each
COLUMN_BYTES = 8  # of a column of a subset: once while it is drawn, once in the list of all
SUBSET_BYTES = 32  # of a subset besides
SHOWN = 8


@dataclass(frozen=True)
class FeatureSubsets:
    """S feature subsets that one word of a sweep file stands for."""

    rank: int  # place of the word among the kinds of words: all, each, named, random
    key: str  # distinguishes words of the same rank
    indptr: npt.NDArray[np.int64]  # (S + 1,), subset s is ``indices[indptr[s]:indptr[s + 1]]``
    indices: npt.NDArray[np.int32]  # (nnz,), columns of the feature matrix
    label: str | None = None  # name of a single subset in the names of kernels
    random: bool = False  # True if the subsets are random

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def spreads(self, deviations: Floats, norm: float) -> Floats:
        """Return the norm of the standard deviations of each subset's features, (S,); 1 for 0."""
        own, first = deviations[self.indices], self.indptr[:-1]
        if math.isinf(norm):
            found = np.maximum.reduceat(own, first)
        else:
            found = np.add.reduceat(own**norm, first) ** (1.0 / norm)
        return np.where(found > 0.0, found, 1.0)


@dataclass(frozen=True)
class SubsetWords:
    """The features and groups of a data set, by which words for feature sets are resolved."""

    n_features: int  # d, number of features
    names: tuple[str, ...]
    groups: Mapping[str, tuple[int, ...]]  # column indices of the named groups
    seed: int  # seed of random subsets
    views: tuple[str, ...] = ()  # the groups that are views

    def feature_sets(self, entry: KernelSpec, place: str) -> list[str | RandomSubsets]:
        """Return the words for feature sets of an entry, from nested lists, without repeats.

        ``"views"`` and ``"groups"`` stand for the name of each view and of each other group, unless
        a group or a feature is called so.
        """
        flat: dict[str | RandomSubsets, None] = {}
        given = entry.features
        pending: Sequence[Features | str] = given if isinstance(given, list) else [given]
        for item in pending:
            for word in item if isinstance(item, list) else [item]:
                flat |= dict.fromkeys(self._named(word, place))
        return list(flat)

    def _named(self, word: str | RandomSubsets, place: str) -> Sequence[str | RandomSubsets]:
        """Return the names that a word stands for, by default itself."""
        if word not in ("views", "groups") or word in self.groups or word in self.names:
            return [word]
        found = self.views
        if word == "groups":
            found = tuple(name for name in self.groups if name not in self.views)
        if not found:
            what = "[[datasets.views]]" if word == "views" else "groups = { name = [features] }"
            raise SpecError(
                f"{place}.features", f"{word!r} of data without {word}", f"{what} of the data set"
            )
        return found

    def _names_known(self) -> str:
        """Return a hint that lists the first groups and features."""
        known = [*self.groups, *self.names]
        rest = f", … {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        return f"Choose from {', '.join(known[:SHOWN])}{rest}" if known else ""

    def resolve(self, features: str | RandomSubsets, place: str) -> FeatureSubsets:
        """Return the subsets that a word stands for.

        A SpecError tells of an unknown word, an empty group, random subsets of more than d
        features, or more of them than memory holds.
        """
        d = self.n_features
        if isinstance(features, RandomSubsets):
            return self._random(features, place)
        if features == "all":
            return FeatureSubsets(
                0, "", np.array([0, d]), np.arange(d, dtype=np.int32), label="all"
            )
        if features == "each":
            return FeatureSubsets(1, "", np.arange(d + 1), np.arange(d, dtype=np.int32))
        if features in self.groups:
            chosen = np.array(self.groups[features], dtype=np.int32)
        elif features in self.names:
            chosen = np.array([self.names.index(features)], dtype=np.int32)
        else:
            known = ["all", "each", "views", "groups", *self.groups, *self.names]
            raise SpecError(
                f"{place}.features",
                f"{features!r}",
                "'all', 'each', 'views', 'groups', {count = …}, or the name of a group or feature",
                nearest(features, known) or self._names_known(),
            )
        if not len(chosen):
            raise SpecError(
                f"{place}.features", f"group {features!r} of no features", "at least one"
            )
        return FeatureSubsets(2, features, np.array([0, len(chosen)]), chosen, label=features)

    def _random(self, wanted: RandomSubsets, place: str) -> FeatureSubsets:
        """Draw random subsets; their sizes are uniform on 1, …, d unless given.

        The columns of a subset of k features are those of the k smallest among d random keys.
        """
        d, count = self.n_features, wanted.count
        if wanted.size is not None and wanted.size > d:
            raise SpecError(f"{place}.features.size", f"{wanted.size}", f"at most {d} features")
        n_columns = (d + 1) / 2 if wanted.size is None else wanted.size
        n_bytes = SUBSET_BYTES + COLUMN_BYTES * n_columns
        check_fits(count, n_bytes, f"{place}.features.count", "subsets", "Draw fewer")
        sizes = np.random.default_rng([self.seed, SIZE_STREAM]).integers(1, d + 1, count)
        if wanted.size is not None:
            sizes[:] = wanted.size
        rng = np.random.default_rng([self.seed, COLUMN_STREAM])
        chosen = []
        step = max(1, COLUMN_DRAWS_AT_ONCE // d)
        for start in range(0, count, step):
            part = sizes[start : start + step]
            keys = rng.random((len(part), d))
            bound = np.take_along_axis(np.sort(keys, axis=1), part[:, None] - 1, axis=1)
            chosen.append(np.nonzero(keys <= bound)[1].astype(np.int32))
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        key = f"{count} {wanted.size}"
        return FeatureSubsets(3, key, indptr, np.concatenate(chosen), random=True)


EXAMPLE = '[{"function": "gaussian", "widths": [0.5, 1, 2]}]'
PAIR_BYTES = 160  # of two numbers of Python in a tuple, and of an array of both


@dataclass(frozen=True)
class Templates:
    """P kernels on every subset."""

    code: int
    # (P,) or (S, 1), first parameters on every subset, or one random parameter for each of S
    # subsets
    first: Floats
    second: Floats  # (P,), second parameters
    # (S, 1), spread of each of S subsets, of which the first parameters are multiples
    spread: Floats | None = None

    def on(self, n_subsets: int) -> Floats:
        """Return the first parameters (S, P); multiples of spreads with the 6 digits of names."""
        if self.spread is None:
            return np.broadcast_to(self.first, (n_subsets, self.first.shape[-1]))
        products = self.first * self.spread
        return np.array([float(f"{v:.6g}") for v in products.ravel()]).reshape(products.shape)

    def relative(self, n_subsets: int) -> Floats:
        """Return the multiples of spreads (S, P), NaN where the first parameters are none."""
        found = np.full(self.first.shape[-1], np.nan) if self.spread is None else self.first
        return np.broadcast_to(found, (n_subsets, self.first.shape[-1]))


def check_entry(entry: KernelSpec, place: str) -> None:
    """Raise SpecError for parameters that an entry's function does not take, or missing ones."""
    function = FUNCTIONS.get(entry.function) if isinstance(entry.function, str) else None
    keys = ["parameters"] if function is None else function.keys
    words = kernel_words(entry.label)
    for key in (*PARAMETERS, RELATIVE, "parameters"):
        if getattr(entry, key) is not None and key not in keys:
            wanted = f"{', '.join(keys)} alone" if keys else "none"
            raise SpecError(f"{place}.{key}", f"{key} of {words}", wanted)
    for parameter in function.parameters if function else ():
        given = getattr(entry, parameter.key) is not None
        if parameter is WIDTH and entry.relative_widths is not None:
            if given:
                raise SpecError(place, f"{WIDTH.key} and {RELATIVE}", "one of them")
        elif parameter.default is None and not given:
            other = f" or {RELATIVE} = …" if parameter is WIDTH and RELATIVE in keys else ""
            wanted = f"{parameter.key} = …{other}"
            raise SpecError(place, f"{words} without {parameter.key}", wanted)


def templates(
    entry: KernelSpec,
    subsets: FeatureSubsets,
    place: str,
    seed: tuple[int, int],
    custom: list[CustomKernel],
    deviations: Callable[[], Floats],
) -> Templates:
    """Return the kernels that an entry, which is checked, puts on each of the subsets.

    `seed` is that of the sweep and the number of the entry, for random widths; functions of the
    user are added to `custom`; `deviations` returns the features' standard deviations, (d,).
    """
    if not isinstance(entry.function, str) or entry.function not in FUNCTIONS:
        return _of_user(entry, place, custom)
    function = FUNCTIONS[entry.function]
    if any(getattr(entry, parameter.key) == "chi2" for parameter in function.parameters):
        widths = _random_widths(subsets, place, seed)
        seconds = _grids(function, entry, place)[1]
        if len(seconds) > 1:
            key = function.parameters[1].key
            raise SpecError(f"{place}.{key}", f"{len(seconds)} with widths = 'chi2'", "one")
        return Templates(function.code, widths, seconds)
    grids = _grids(function, entry, place)
    n_pairs = math.prod(map(len, grids))
    check_fits(n_pairs, PAIR_BYTES, place, "pairs of parameters", "Give fewer values")
    pairs = list(itertools.product(*grids))
    first, second = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    if entry.relative_widths is None:
        return Templates(function.code, first, second)
    spread = subsets.spreads(deviations(), function.norm)
    ends = np.array([first.min() * spread.min(), first.max() * spread.max()])
    if not ((ends >= WIDTH.smallest) & (ends <= WIDTH.largest)).all():
        found = f"widths from {ends[0]:g} to {ends[1]:g} by the spread of the features"
        wanted = f"widths from {WIDTH.smallest:g} to {WIDTH.largest:g}"
        raise SpecError(f"{place}.{RELATIVE}", found, wanted)
    return Templates(function.code, first, second, spread[:, None])


def _grids(function: KernelFunction, entry: KernelSpec, place: str) -> list[Floats]:
    """Return the values of the first and of the second parameter; 1 and 0 stand for none."""
    grids = [_values(parameter, entry, place) for parameter in function.parameters]
    return [*grids, *[np.ones(1), np.zeros(1)][len(grids) :]]


def _values(parameter: Parameter, entry: KernelSpec, place: str) -> Floats:
    """Return the values of a parameter, (P,)."""
    key = parameter.key
    if parameter is WIDTH and entry.relative_widths is not None:
        key = RELATIVE
    given = getattr(entry, key)
    if given == "chi2":
        return np.ones(1)
    if given is None:
        given = parameter.default
    values = np.atleast_1d(np.asarray(given.values() if isinstance(given, Range) else given, float))
    least, most = parameter.smallest, parameter.largest
    if not ((values >= least) & (values <= most) & (values < np.inf)).all():
        limits = f", at most {most:g}" if most < np.inf else ""
        if least > 0.0:
            limits = f", from {least:g} to {most:g}"
        wanted = f"numbers above 0{limits}"
        raise SpecError(f"{place}.{key}", f"{values.tolist()}", wanted)
    return values


def _random_widths(subsets: FeatureSubsets, place: str, seed: tuple[int, int]) -> Floats:
    """Draw one width per subset, (S, 1): ``σ² = 5 χ² + 0.1`` with χ² of one degree of freedom."""
    if not subsets.random:
        expected = "numbers, or features = {count = …} for one random width per random subset"
        raise SpecError(f"{place}.widths", "'chi2' on feature sets that are not random", expected)
    rng = np.random.default_rng([seed[0], WIDTH_STREAM, seed[1]])
    return np.sqrt(5.0 * rng.chisquare(1, len(subsets)) + 0.1)[:, None]


def _of_user(entry: KernelSpec, place: str, custom: list[CustomKernel]) -> Templates:
    """Return the kernels of a function of the user, one for each combination of its parameters."""
    if isinstance(entry.function, str):
        function = CustomFunction.named(entry.function, f"{place}.function")
    else:
        function = CustomFunction.of(entry.function)
    given: dict[str, Any] = entry.parameters or {}
    lists = [value if isinstance(value, list) else [value] for value in given.values()]
    start = len(custom)
    for values in itertools.product(*lists):
        kernel = CustomKernel(function, tuple(zip(given, values, strict=True)))
        kernel.check(place)
        custom.append(kernel)
    places = np.arange(start, len(custom), dtype=np.float64)
    return Templates(CUSTOM_CODE, places, np.zeros(len(places)))


KERNEL_BYTES = 100  # of a kernel in a list, while it is made


def _gaussian(widths: Sequence[float], features: tuple[str, ...]) -> KernelSpec:
    return _entry("gaussian", features, widths=list(widths))


def _polynomial(degrees: Sequence[int], features: tuple[str, ...]) -> KernelSpec:
    return _entry("polynomial", features, degrees=list(degrees))


def _entry(function: str, features: Sequence[str], **parameters: object) -> KernelSpec:
    words = {"function": function, "features": list(features), **parameters}
    return KernelSpec.model_validate(words)


def _xu2008() -> tuple[KernelSpec, ...]:
    where = ("all", "each")
    return (_gaussian([2.0**e for e in range(-3, 7)], where), _polynomial(range(1, 4), where))


def _suzuki2011() -> tuple[KernelSpec, ...]:
    where = ("all", "each")
    return (
        _gaussian([0.1, 0.25, 0.5, 0.75, *range(1, 21)], where),
        _polynomial(range(1, 4), where),
    )


def _hao2012() -> tuple[KernelSpec, ...]:
    widths = [base**e for base in (1.1, 1.5, 2.0) for e in range(-5, 6)]
    return (_gaussian(widths, ("all",)),)


def _hao2012_polynomial() -> tuple[KernelSpec, ...]:
    return (*_hao2012(), _polynomial(range(1, 11), ("all",)))


def _do2009() -> tuple[KernelSpec, ...]:
    return (_polynomial(range(1, 4), ("all",)), _of_variances(range(1, 18)))


def _do2009_gaussian() -> tuple[KernelSpec, ...]:
    return (_of_variances(range(1, 21)),)


def _of_variances(variances: Sequence[float]) -> KernelSpec:
    """Return Gaussians whose squared widths are the bandwidths that the paper prints."""
    return _gaussian([math.sqrt(one) for one in variances], ("all",))


def _guo2011() -> tuple[KernelSpec, ...]:
    widths = [0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8]
    return (
        KernelSpec(function="linear", features="all"),
        _polynomial(range(2, 7), ("all",)),
        _gaussian(widths, ("all",)),
    )


RELATIVE_WIDTHS = [0.5, 1.0, 2.0, 4.0]  # of Gaussians, of which the widest are nearly linear
ADDITIVE_WIDTHS = [0.5, 1.0, 2.0]
MOST_ADDED = 250  # features, with each of which an additive kernel takes longer
LENGTHS = [1, 2, 3]  # of substrings of texts


def default_family(
    sizes: Mapping[str, int] = MappingProxyType({"all": 1}),
    *,
    sparse: bool = False,
    texts: bool = False,
    given: Sequence[str] = (),
) -> tuple[KernelSpec, ...]:
    """Return the default kernels of data: few, so that none of many crowds out the others.

    On each set of features there are Gaussians of four widths, which see them together, and
    additive kernels, each of which sums up functions of single features.  So a method chooses
    between the two by a weight for each, not by one against hundreds.  In place of an additive
    kernel of many or of sparse features there is a linear one; texts get spectrum kernels of short
    substrings.  `sizes` are numbers of features by the names of their sets: of all, or of each
    view; `given` names views that are Gram matrices.
    """
    found = []
    for name, size in sizes.items():
        found.append(_entry("gaussian", [name], relative_widths=RELATIVE_WIDTHS))
        if sparse or size > MOST_ADDED:
            found.append(_entry("linear", [name]))
        else:
            found.append(_entry("additive", [name], relative_widths=ADDITIVE_WIDTHS))
    if texts:
        found.append(_entry("spectrum", ["each"], length=LENGTHS))
    if given:
        found.append(_entry(PRECOMPUTED, given))
    return tuple(found)


NAMED_FAMILIES: dict[str, Callable[[], tuple[KernelSpec, ...]]] = {
    "default": default_family,
    "xu2008": _xu2008,
    "suzuki2011": _suzuki2011,
    "hao2012": _hao2012,
    "hao2012-polynomial": _hao2012_polynomial,
    "do2009": _do2009,
    "do2009-gaussian": _do2009_gaussian,
    "guo2011": _guo2011,
}
"""The default kernels, and those of papers.  All three series of hao2012 contain width 1."""


def kernel_choice(kernels: Any) -> KernelChoice:
    """Return the kernels that a user gives :class:`mkldist.KernelBank`, checked by their models."""
    if isinstance(kernels, str):
        document: dict[str, Any] = {"family": kernels}
    elif isinstance(kernels, Mapping) or not isinstance(kernels, Sequence) or not len(kernels):
        empty = isinstance(kernels, list | tuple) and not kernels
        found = "an empty list" if empty else f"{kernels!r:.60}"
        known = f"the name of a family, such as {next(iter(NAMED_FAMILIES))!r}"
        raise SpecError("kernels", found, f"{known}, or {EXAMPLE}")
    else:
        entries = [{"function": one} if callable(one) else plain(one) for one in kernels]
        document = {"kernels": entries}
    try:
        return KernelChoice.model_validate(document)
    except ValidationError as error:
        from mkldist.spec.load import location_of, most_telling, spec_error, spelled_location

        first = most_telling(error.errors())
        where = spelled_location(location_of(first), document)
        raise spec_error(first, "kernels" if where == "family" else where, KernelChoice) from None


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


def kernel_list(
    choice: KernelChoice,
    n_features: int,
    feature_names: Sequence[str],
    groups: Mapping[str, tuple[int, ...]],
    seed: int,
    views: Collection[str] = (),
    left_out: Collection[int] = (),
    deviations: Callable[[], Floats] | None = None,
) -> KernelList:
    """Return all kernels that a bank lists over a data set's features, or its texts.

    `seed` draws random subsets and widths: a larger number of them begins with the same ones, and
    entries with the same number and size of random subsets share them.  `groups` are named feature
    groups, of which `views` are views; `left_out` are numbers of entries that are not meant, such
    as those of texts.  `deviations` returns the standard deviations of the features as kernels see
    them, (d,), which relative widths are multiples of; by default 1.
    """
    where = choice.where
    if n_features < 1:
        found = "kernels of features for data without features"
        raise SpecError(where, found, "family = 'precomputed', or kernels of what there is")
    if choice.family == "precomputed":
        found = "family 'precomputed' for data with features"
        raise SpecError(where, found, f"one of {', '.join(NAMED_FAMILIES)} or [[banks.kernels]]")
    entries = choice.kernels if choice.family is None else NAMED_FAMILIES[choice.family]()
    words = SubsetWords(n_features, tuple(feature_names), groups, seed, tuple(views))
    parts: dict[tuple[int, str], _Part] = {}
    custom: list[CustomKernel] = []
    deviations = cache(deviations or (lambda: np.ones(n_features)))
    for i, entry in enumerate(entries):
        if entry.function == PRECOMPUTED or i in left_out:
            continue
        place = choice.place(i)
        check_entry(entry, place)
        for feature_set in words.feature_sets(entry, place):
            subsets = words.resolve(feature_set, place)
            part = parts.setdefault((subsets.rank, subsets.key), _Part(subsets, []))
            drawn = seed, i
            part.templates.append(templates(entry, subsets, place, drawn, custom, deviations))
    n_kernels = sum(
        len(p.subsets) * sum(len(t.second) for t in p.templates) for p in parts.values()
    )
    check_fits(n_kernels, KERNEL_BYTES, where, "kernels", "List fewer")
    return _assembled([parts[key] for key in sorted(parts, key=lambda k: k[0])], custom)


@dataclass(frozen=True)
class _Part:
    """Subsets, and the kernels of all entries on them."""

    subsets: FeatureSubsets
    templates: list[Templates]


def _assembled(parts: Sequence[_Part], custom: Sequence[CustomKernel]) -> KernelList:
    """Return the kernels of all parts, subset by subset."""
    functions, parameters, offsets, subsets, relative = [], [], [], [], []
    indptr, indices = [np.zeros(1, dtype=np.int64)], []
    labels: dict[int, str] = {}
    n_subsets = 0
    for part in parts:
        count = len(part.subsets)
        grid = np.hstack([t.on(count) for t in part.templates])
        counts = [len(t.second) for t in part.templates]
        parameters.append(grid.ravel())
        relative.append(np.hstack([t.relative(count) for t in part.templates]).ravel())
        functions.append(np.tile(np.repeat([t.code for t in part.templates], counts), count))
        offsets.append(np.tile(np.concatenate([t.second for t in part.templates]), count))
        subsets.append(np.repeat(np.arange(n_subsets, n_subsets + count), grid.shape[1]))
        indptr.append(part.subsets.indptr[1:] + indptr[-1][-1])
        indices.append(part.subsets.indices)
        if part.subsets.label is not None:
            labels[n_subsets] = part.subsets.label
        n_subsets += count
    return KernelList(
        function=np.concatenate(functions),
        parameter=np.concatenate(parameters),
        offset=np.concatenate(offsets),
        subset=np.concatenate(subsets),
        subset_indptr=np.concatenate(indptr),
        subset_indices=np.concatenate(indices),
        subset_labels=labels,
        custom=tuple(custom),
        relative=np.concatenate(relative),
    )
