"""A list of kernels as arrays, so that a million kernels take tens of megabytes and pickle fast.

:meth:`KernelList.describe` gives each kernel as plain words and numbers, for results and models.
:func:`first_drawn` takes the first kernels of lists in a random order, so that smaller banks lie
within larger ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Array
from mkldist.core.checksums import array_id, content_id
from mkldist.errors import SpecError
from mkldist.kernel_functions import BY_CODE
from mkldist.kernel_functions.custom import CUSTOM_CODE, Argument, CustomKernel
from mkldist.kernel_functions.definition import KernelFunction
from mkldist.kernel_functions.radial import ADDITIVE

NAMED_FEATURES = 3


@dataclass(frozen=True, eq=False)
class KernelList:
    """M kernels, each a function with a parameter on a subset of the features.

    Subset labels and relative widths are no part of the fingerprint.
    """

    function: npt.NDArray[np.uint8]  # (M,), codes of the registry of kernel functions
    parameter: npt.NDArray[np.float64]
    """First parameter of each function, such as a width or a degree; 1 if it has none.  Of a
    function of the user, the place of the kernel in `custom`."""
    offset: npt.NDArray[np.float64]  # (M,), second parameter, such as an offset; 0 for none
    subset: npt.NDArray[np.int32]  # (M,), feature subset of each kernel
    subset_indptr: npt.NDArray[np.int64]
    """(S + 1,), subset s is ``subset_indices[subset_indptr[s]:subset_indptr[s + 1]]``."""
    subset_indices: npt.NDArray[np.int32]  # (nnz,), columns of the feature matrix
    subset_labels: Mapping[int, str] = field(default_factory=dict)
    """Names of some subsets in those of kernels, such as ``all`` or a feature group."""
    custom: tuple[CustomKernel, ...] = ()  # functions of the user with their parameters
    relative: npt.NDArray[np.float64] | None = None
    """(M,), widths as multiples of the spread of their features where they were given so, NaN for
    other kernels."""

    def __post_init__(self) -> None:
        for name, dtype in (
            ("function", np.uint8),
            ("parameter", np.float64),
            ("offset", np.float64),
            ("subset", np.int32),
            ("subset_indptr", np.int64),
            ("subset_indices", np.int32),
        ):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=dtype))
        lengths = {len(self.function), len(self.parameter), len(self.offset), len(self.subset)}
        if len(lengths) != 1:
            raise ValueError(f"found arrays of {sorted(lengths)} kernels; expected one length")

    @classmethod
    def empty(cls) -> KernelList:
        """Return a list without kernels."""
        nothing = np.zeros(0)
        return cls(nothing, nothing, nothing, nothing, np.zeros(1), nothing)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.function)

    @cached_property
    def fingerprint(self) -> str:
        """Content hash of the kernels; subset labels are no part of it.

        It contains the code of functions of the user.
        """
        arrays = array_id(
            self.function,
            self.parameter,
            self.offset,
            self.subset,
            self.subset_indptr,
            self.subset_indices,
        )
        if not self.custom:
            return arrays
        return content_id(arrays=arrays, custom=[kernel.identity for kernel in self.custom])

    @property
    def groups(self) -> npt.NDArray[np.intp]:
        """Group of each kernel, (M,): the kernels on one feature subset, such as a view, form one.

        Subsets of one label form one group.
        """
        first: dict[str, int] = {}
        merged = np.arange(len(self.subset_indptr) - 1)
        for subset, label in self.subset_labels.items():
            merged[subset] = first.setdefault(label, subset)
        return merged[self.subset]

    def features_of(self, kernel: int) -> npt.NDArray[np.int32]:
        """Return the columns of one kernel's feature subset."""
        return self._columns(int(self.subset[kernel]))

    def function_of(self, kernel: int) -> KernelFunction:
        """Return the function of one kernel."""
        own = self.custom_of(kernel)
        return BY_CODE[int(self.function[kernel])] if own is None else own.definition

    def custom_of(self, kernel: int) -> CustomKernel | None:
        """Return the function of the user that one kernel is, None if it is another."""
        if self.function[kernel] != CUSTOM_CODE:
            return None
        return self.custom[int(self.parameter[kernel])]

    def settings_of(self, kernel: int) -> dict[str, Argument]:
        """Return the parameters of one kernel by name, such as ``{"width": 0.5}``."""
        own = self.custom_of(kernel)
        if own is not None:
            return dict(own.arguments)
        values = float(self.parameter[kernel]), float(self.offset[kernel])
        settings = self.function_of(kernel).settings(*values)
        return {parameter.name: value for parameter, value in settings}

    def of_single_features(self) -> tuple[KernelList, npt.NDArray[np.intp]]:
        """Return the list with every additive kernel as one on each of its features.

        An additive kernel is their mean.  The array has the place in this list of the kernel that
        each of the new ones comes from.
        """
        sizes = np.diff(self.subset_indptr)[self.subset]
        apart = (self.function == ADDITIVE.code) & (sizes > 1)
        origin = np.repeat(np.arange(len(self)), np.where(apart, sizes, 1))
        columns = [self.features_of(m) for m in np.flatnonzero(apart).tolist()]
        single = np.concatenate(columns) if columns else np.zeros(0, dtype=np.int32)
        n_subsets, end = len(self.subset_indptr) - 1, self.subset_indptr[-1]
        subset = self.subset[origin]
        subset[apart[origin]] = n_subsets + np.arange(len(single))
        return replace(
            self,
            function=self.function[origin],
            parameter=self.parameter[origin],
            offset=self.offset[origin],
            subset=subset,
            subset_indptr=np.append(self.subset_indptr, end + 1 + np.arange(len(single))),
            subset_indices=np.append(self.subset_indices, single),
            relative=None if self.relative is None else self.relative[origin],
        ), origin

    def describe(
        self, kernel: int, feature_names: Sequence[str] | None = None
    ) -> dict[str, str | dict[str, Argument] | list[str] | None]:
        """Return one kernel as plain words and numbers, which JSON can hold.

        These are ``function``, its name; ``parameters`` by name; ``features``, their names, by
        default ``x0``, ``x1`` and so on; and ``group``, the name of the subset if it has one.
        """
        columns = self.features_of(kernel).tolist()
        return {
            "function": self.function_of(kernel).label,
            "parameters": self.settings_of(kernel),
            "features": [_feature(j, feature_names) for j in columns],
            "group": self.subset_labels.get(int(self.subset[kernel])),
        }

    def columns(self) -> dict[str, Array]:
        """Return the function and every parameter as arrays over kernels, by name.

        ``function`` holds names.  A parameter is an array of float64, NaN where a kernel has none;
        if functions of the user take other values for it, an array of objects, None there.
        ``relative_width`` is there if some widths were given in that way.
        """
        functions = np.empty(len(self), dtype=object)
        columns: dict[str, Array] = {"function": functions}
        keys = np.stack([self.function, self.parameter * (self.function == CUSTOM_CODE)], axis=-1)
        for own in np.unique(keys, axis=0).tolist() if len(self) else ():
            where = (keys == own).all(axis=1)
            first = int(np.flatnonzero(where)[0])
            functions[where] = self.function_of(first).label
            values = [self.parameter[where], self.offset[where]]
            for place, (name, value) in enumerate(self.settings_of(first).items()):
                found = value if own[0] == CUSTOM_CODE else values[place]
                columns[name] = _with_values(columns.get(name), where, found)
        if self.relative is not None and not np.isnan(self.relative).all():
            columns["relative_width"] = self.relative
        return columns

    def runs(self) -> Iterator[slice]:
        """Yield the slices of adjacent kernels with the same feature subset."""
        starts = np.flatnonzero(np.diff(self.subset, prepend=-1)).tolist()
        for start, stop in zip(starts, [*starts[1:], len(self)], strict=False):
            yield slice(start, stop)

    def select(self, indices: npt.NDArray[np.integer] | Sequence[int] | slice) -> KernelList:
        """Return the kernels at `indices`, in that order, without the subsets of others."""
        subset = self.subset[indices]
        used, renumbered = np.unique(subset, return_inverse=True)
        sizes = np.diff(self.subset_indptr)[used]
        columns = [self._columns(s) for s in used.tolist()]
        return KernelList(
            function=self.function[indices],
            parameter=self.parameter[indices],
            offset=self.offset[indices],
            subset=renumbered.astype(np.int32).reshape(subset.shape),
            subset_indptr=np.concatenate([[0], np.cumsum(sizes)]),
            subset_indices=np.concatenate([np.empty(0, np.int32), *columns]),
            subset_labels={
                new: self.subset_labels[old]
                for new, old in enumerate(used.tolist())
                if old in self.subset_labels
            },
            custom=self.custom,
            relative=None if self.relative is None else self.relative[indices],
        )

    def names(self, feature_names: Sequence[str] | None = None) -> list[str]:
        """Return one unique, readable name per kernel, such as ``gaussian(0.5)[all]``.

        A subset of more than three features without a label appears as ``12 features #7`` if it is
        subset 7.  Repetitions of a name end in ``~2``, ``~3`` and so on.
        """
        places = self.subset_names(feature_names)
        heads: dict[tuple[int, float, float], str] = {}
        names = []
        seen: Counter[str] = Counter()
        for key_and_subset in zip(
            self.function.tolist(),
            self.parameter.tolist(),
            self.offset.tolist(),
            self.subset.tolist(),
            strict=True,
        ):
            key = key_and_subset[:3]
            if key not in heads:
                heads[key] = self._head(*key)
            names.append(_unique(f"{heads[key]}[{places[key_and_subset[3]]}]", seen))
        return names

    def subset_names(self, feature_names: Sequence[str] | None = None) -> list[str]:
        """Return the name of every feature subset, as it stands in the names of kernels."""
        return [self._place(s, feature_names) for s in range(len(self.subset_indptr) - 1)]

    def _columns(self, subset: int) -> npt.NDArray[np.int32]:
        return self.subset_indices[self.subset_indptr[subset] : self.subset_indptr[subset + 1]]

    def _place(self, subset: int, feature_names: Sequence[str] | None) -> str:
        if subset in self.subset_labels:
            return self.subset_labels[subset]
        columns = self._columns(subset)
        if len(columns) > NAMED_FEATURES:
            return f"{len(columns)} features #{subset}"
        return "+".join(_feature(j, feature_names) for j in columns)

    def _head(self, function: int, parameter: float, offset: float) -> str:
        """Return the function and the parameters of a kernel as text."""
        if function == CUSTOM_CODE:
            return self.custom[int(parameter)].head
        return BY_CODE[function].head(parameter, offset)


def _feature(column: int, names: Sequence[str] | None) -> str:
    return f"x{column}" if names is None else names[column]


def _with_values(column: Array | None, where: Array, values: Any) -> Array:
    """Return a column over kernels with the values of some; a new one without a column."""
    numbers = not isinstance(values, str | bool)
    if column is None:
        column = np.full(len(where), np.nan) if numbers else np.full(len(where), None)
    if not numbers and column.dtype != object:
        missing, column = np.isnan(column), column.astype(object)
        column[missing] = None
    column[where] = values
    return column


def _unique(name: str, seen: Counter[str]) -> str:
    """Return `name`, numbered if it was seen before, and add it to `seen`."""
    candidate = name
    while candidate in seen:
        seen[name] += 1
        candidate = f"{name}~{seen[name]}"
    seen[candidate] += 1
    return candidate


ORDER_STREAM = 3  # after the streams of feature subsets


def first_drawn(
    lists: Sequence[KernelList | None], size: int, seed: int, place: str
) -> list[KernelList | None]:
    """Return the first kernels of lists in an order that the seed determines; None for no kernels.

    One order mixes the kernels of all lists: of features, of texts.  In each list, those of a
    larger size begin with those of a smaller one, and with the same names.  A SpecError, at the
    bank's `place` in the sweep file, tells of fewer kernels.
    """
    counts = [0 if kernels is None else len(kernels) for kernels in lists]
    total = sum(counts)
    if size > total:
        expected = f"at most {total}, all kernels that the bank lists"
        hint = "Lower it, or list more: features = {count = ...} draws as many feature subsets as "
        hint += "are asked for, each with every value of the parameters"
        raise SpecError(f"{place}.n_kernels", f"{size}", expected, hint)
    order = np.random.default_rng([seed, ORDER_STREAM]).permutation(total)[:size]
    found: list[KernelList | None] = []
    start = 0
    for kernels, count in zip(lists, counts, strict=True):
        own = order[(order >= start) & (order < start + count)] - start
        start += count
        if kernels is None or not len(own):
            found.append(None)
        else:
            found.append(_numbered_by_use(kernels.select(own)))
    return found


def _numbered_by_use(kernels: KernelList) -> KernelList:
    """Return the same kernels, their feature subsets numbered as they first occur.

    The names of kernels hold these numbers, which therefore must not depend on later kernels.
    """
    _, first = np.unique(kernels.subset, return_index=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    sizes = np.diff(kernels.subset_indptr)
    starts = kernels.subset_indptr[:-1]
    indptr = np.concatenate([[0], np.cumsum(sizes[order])])
    places = np.repeat(starts[order] - indptr[:-1], sizes[order]) + np.arange(indptr[-1])
    return replace(
        kernels,
        subset=rank[kernels.subset],
        subset_indptr=indptr,
        subset_indices=kernels.subset_indices[places],
        subset_labels={int(rank[old]): label for old, label in kernels.subset_labels.items()},
    )
