"""What planning knows of data sets, banks and methods, so that it needs none of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mkldist.solvers.base import Path, usual_passes
from mkldist.spec.graph import GraphTable


@dataclass(frozen=True)
class DatasetFacts:
    """What planning knows of a data set.

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
        Training and unlabelled rows of each split.
    precomputed : bool
        Whether the data are Gram matrices.
    target : str
        How the values of regression are preprocessed; ``"none"`` if they are not.
    graph : GraphTable or None
        Graph over the known rows of each split, for methods that need one.
    n_problems : int
        Classes that are learnt against the rest; 1 for two classes and for regression.
    inner_folds : tuple of int
        Folds of each split by which hyperparameters are selected; empty if they are not.
    """

    fingerprint: str
    n_points: int
    split_fingerprints: tuple[str, ...]
    known_fingerprints: tuple[str, ...]
    known_sizes: tuple[int, ...]
    precomputed: bool = False
    target: str = "none"
    graph: GraphTable | None = None
    n_problems: int = 1
    inner_folds: tuple[int, ...] = ()


@dataclass(frozen=True)
class BankFacts:
    """What planning knows of a bank on a data set: its kernels' number and content hash."""

    n_kernels: int
    fingerprint: str


@dataclass(frozen=True)
class GridFacts:
    """What planning knows of a method.

    Parameters
    ----------
    method : str
        Its name.
    points : tuple of dict
        The parameters of each point of its grid.
    needs_laplacian : bool
        Whether it is given the Laplacian of a graph.
    shared_weights : bool
        Whether more than two classes share their kernel weights.
    path : Path, optional
        Along which of its parameters a solver can start from the last one.
    typical_passes : callable
        Passes that a solver typically takes over a bank of so many kernels.
    """

    method: str
    points: tuple[dict[str, Any], ...]
    needs_laplacian: bool = False
    shared_weights: bool = False
    path: Path | None = None
    typical_passes: Callable[[int], int] = usual_passes
