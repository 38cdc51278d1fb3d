"""A list of kernels as arrays, so that a million kernels take tens of megabytes and pickle fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Array
from mkldist.identity import array_id
from mkldist.kernels.functions import KernelFunction

NAMED_FEATURES = 3


@dataclass(frozen=True, eq=False)
class KernelList:
    """M kernels, each a function with a parameter on a subset of the features.

    Parameters
    ----------
    function : (M,) uint8
        Codes of :class:`~mkldist.kernels.functions.KernelFunction`.
    parameter : (M,) float64
        Width (gaussian, laplacian-rbf) or degree (polynomial); 1 for linear.
    offset : (M,) float64
        Offset of polynomial kernels; 0 for the others.
    subset : (M,) int32
        Feature subset of each kernel.
    subset_indptr : (S + 1,) int64
        Feature subset s is ``subset_indices[subset_indptr[s]:subset_indptr[s + 1]]``.
    subset_indices : (nnz,) int32
        Columns of the feature matrix.
    subset_labels : mapping of int to str
        Names of some subsets, such as ``all`` or a feature group.  They occur in the names of
        kernels and are no part of the fingerprint.
    """

    function: npt.NDArray[np.uint8]
    parameter: npt.NDArray[np.float64]
    offset: npt.NDArray[np.float64]
    subset: npt.NDArray[np.int32]
    subset_indptr: npt.NDArray[np.int64]
    subset_indices: npt.NDArray[np.int32]
    subset_labels: Mapping[int, str] = field(default_factory=dict)

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

    def __len__(self) -> int:
        return len(self.function)

    @cached_property
    def fingerprint(self) -> str:
        """Content hash of the kernels; subset labels are no part of it."""
        return array_id(
            self.function,
            self.parameter,
            self.offset,
            self.subset,
            self.subset_indptr,
            self.subset_indices,
        )

    def features_of(self, kernel: int) -> npt.NDArray[np.int32]:
        """Return the columns of one kernel's feature subset."""
        return self._columns(int(self.subset[kernel]))

    def function_of(self, kernel: int) -> KernelFunction:
        """Return the function of one kernel."""
        return KernelFunction(int(self.function[kernel]))

    def columns(self) -> dict[str, Array]:
        """Return the function and every parameter as arrays over kernels, by name.

        ``function`` holds names.  A parameter is an array of float64, NaN where a kernel has none.
        """
        labels = np.array([function.label for function in KernelFunction], dtype=object)
        polynomial = self.function == KernelFunction.POLYNOMIAL
        with_width = ~polynomial & (self.function != KernelFunction.LINEAR)
        columns = {
            "width": np.where(with_width, self.parameter, np.nan),
            "degree": np.where(polynomial, self.parameter, np.nan),
            "offset": np.where(polynomial, self.offset, np.nan),
        }
        found = {name: c for name, c in columns.items() if not np.isnan(c).all()}
        return {"function": labels[self.function], **found}

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
        )

    def names(self, feature_names: Sequence[str] | None = None) -> list[str]:
        """Return one unique, readable name per kernel, such as ``gaussian(0.5)[all]``.

        A subset of more than three features without a label appears as ``12 features #7`` if it is
        subset 7.  Repetitions of a name end in ``~2``, ``~3`` and so on.

        Parameters
        ----------
        feature_names : sequence of str, optional
            d names; default ``x0``, ``x1`` and so on.
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
                heads[key] = _head(*key)
            names.append(_unique(f"{heads[key]}[{places[key_and_subset[3]]}]", seen))
        return names

    def subset_names(self, feature_names: Sequence[str] | None = None) -> list[str]:
        """Return the name of every feature subset, as it stands in the names of kernels.

        Parameters
        ----------
        feature_names : sequence of str, optional
            d names; default ``x0``, ``x1`` and so on.
        """
        return [self._place(s, feature_names) for s in range(len(self.subset_indptr) - 1)]

    def _columns(self, subset: int) -> npt.NDArray[np.int32]:
        return self.subset_indices[self.subset_indptr[subset] : self.subset_indptr[subset + 1]]

    def _place(self, subset: int, feature_names: Sequence[str] | None) -> str:
        if subset in self.subset_labels:
            return self.subset_labels[subset]
        columns = self._columns(subset)
        if len(columns) > NAMED_FEATURES:
            return f"{len(columns)} features #{subset}"
        return "+".join(f"x{j}" if feature_names is None else feature_names[j] for j in columns)


def _head(function: int, parameter: float, offset: float) -> str:
    """Return the function and the parameters of a kernel as text."""
    kind = KernelFunction(function)
    if kind is KernelFunction.LINEAR:
        return kind.label
    if kind is KernelFunction.POLYNOMIAL and offset != 1.0:
        return f"{kind.label}({parameter:.6g}, offset={offset:.6g})"
    return f"{kind.label}({parameter:.6g})"


def _unique(name: str, seen: Counter[str]) -> str:
    """Return `name`, numbered if it was seen before, and add it to `seen`."""
    candidate = name
    while candidate in seen:
        seen[name] += 1
        candidate = f"{name}~{seen[name]}"
    seen[candidate] += 1
    return candidate
