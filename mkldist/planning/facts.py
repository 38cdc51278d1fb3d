"""Facts on which a plan depends: sizes and content hashes of data sets and banks, no arrays.

A plan made of facts is a pure function of them, which tests call with made-up data.  The settings
of a method come as they are, as a :class:`mkldist.solvers.parameters.MethodGrid`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mkldist.spec.datasets import GraphTable


@dataclass(frozen=True)
class DatasetFacts:
    """Facts of a data set and its splits.

    Parameters
    ----------
    fingerprint : str
        Content hash of features and labels.
    n_points : int
        Number of rows.
    split_fingerprints : tuple of str
        Content hash of each split's index arrays.
    known_fingerprints : tuple of str
        Content hash of each split's training and unlabelled rows.
    known_sizes : tuple of int
        Number of training and unlabelled rows of each split.
    precomputed : bool
        True if nothing is fitted on rows: Gram matrices, and sparse features that are not scaled.
    target : str
        Preprocessing of the values of regression; ``"none"`` if they stay as they are.
    graph : GraphTable or None
        Graph over the known rows of each split, for methods that need one.
    class_weight : "balanced", dict of str to float, or None
        Weights of the classes.
    n_problems : int
        Number of classes that are learnt against the rest; 1 for two classes and for regression.
    inner_folds : tuple of int
        Number of inner folds of each split, by which hyperparameters are selected; empty without
        a selection.
    train_sizes : tuple of int
        Number of training rows of each split, which are labelled; empty if all known rows are.
    n_smaller : int
        How many of the splits, the last ones, repeat others with fewer training rows, for a search.
    row_bytes : int
        Bytes of the features of a row; 0 without features that are dense.
    """

    fingerprint: str
    n_points: int
    split_fingerprints: tuple[str, ...]
    known_fingerprints: tuple[str, ...]
    known_sizes: tuple[int, ...]
    precomputed: bool = False
    target: str = "none"
    graph: GraphTable | None = None
    class_weight: Literal["balanced"] | dict[str, float] | None = None
    n_problems: int = 1
    inner_folds: tuple[int, ...] = ()
    train_sizes: tuple[int, ...] = ()
    n_smaller: int = 0
    row_bytes: int = 0

    @property
    def n_splits(self) -> int:
        """Number of the splits that the sweep asks for."""
        return len(self.split_fingerprints) - self.n_smaller


@dataclass(frozen=True)
class BankFacts:
    """Facts of a bank on a data set.

    Parameters
    ----------
    n_kernels : int
        Number of kernels.
    fingerprint : str
        Content hash of the kernels.
    on_factors : bool
        True if thin factors stand for the kernels.
    """

    n_kernels: int
    fingerprint: str
    on_factors: bool = False
