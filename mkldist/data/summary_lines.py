"""A data set in words: what was taken, how its label was chosen, what was filled or left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mkldist.core.wording import pluralize, truncate
from mkldist.data.dataset import Dataset
from mkldist.data.row_weights import ClassWeight, class_weights
from mkldist.spec.datasets import PreprocessingSpec

SHOWN = 10
FILLERS = {"median": "median", "mean": "mean", "most_frequent": "most frequent value"}


def summary_lines(
    dataset: Dataset, preprocessing: PreprocessingSpec, class_weight: ClassWeight | None = None
) -> list[str]:
    """Return lines about a data set, for the user to check before a sweep.

    Parameters
    ----------
    dataset : Dataset
        The data set, with its summary.
    preprocessing : PreprocessingSpec
        Its preprocessing, whose rows missing values are filled from.
    class_weight : "balanced", mapping of str to float, or None
        Weights of its classes.
    """
    summary = dataset.summary
    of_all = f" of {summary.n_rows}" if summary.n_rows > dataset.n_points else ""
    features = pluralize(dataset.n_features, "feature")
    if dataset.grams is not None:
        features = pluralize(len(dataset.grams), "Gram matrix", "Gram matrices")
    lines = [f"{dataset.name}: {dataset.n_points}{of_all} rows, {features}, {dataset.task}"]
    details = _details(dataset, preprocessing, class_weight)
    lines += [f"  {key + ':':<11}{said}" for key, said in details if said]
    return lines


def _details(
    dataset: Dataset, preprocessing: PreprocessingSpec, class_weight: ClassWeight | None
) -> Iterator[tuple[str, str]]:
    """Yield a key and its words for each line after the first; the words may be empty."""
    summary = dataset.summary
    yield "label", summary.label
    if dataset.classes is None:
        yield "values", f"from {dataset.y.min():g} to {dataset.y.max():g}"
    else:
        yield "classes", _classes(dataset)
    if class_weight is not None:
        names, numbers = dataset.classes or (), dataset.class_numbers[dataset.weighing]
        own = None if dataset.weights is None else dataset.weights[dataset.weighing]
        weights = class_weights(class_weight, names, numbers, own).tolist()
        each = [f"{name} {weight:.3g}" for name, weight in zip(names, weights, strict=True)]
        of_each = " on all rows, computed anew on each training part"
        said = truncate(each, SHOWN) + of_each * (class_weight == "balanced")
        yield "weights", f"of classes: {said}"
    if dataset.weights is not None:
        low, high, n = dataset.weights.min(), dataset.weights.max(), (~dataset.weighing).sum()
        without = f"; {pluralize(int(n), 'row')} of weight 0 in no training part" if n else ""
        yield "weights", f"of rows: from {low:g} to {high:g}{without}"
    yield "left out", truncate(summary.left_out, SHOWN)
    yield "constant", truncate([repr(name) for name in summary.constant], SHOWN)
    yield "features", summary.sparse
    for view in summary.views:
        yield "view", view
    for texts in summary.texts:
        yield "texts", texts
    yield "encoded", truncate(summary.encoded, SHOWN)
    if dataset.row_groups is not None:
        yield "groups", f"{len(np.unique(dataset.row_groups))}, whose rows stay in one part"
    if dataset.impute is not None:
        rows, columns = summary.missing
        of = "all rows" if preprocessing.fit == "all" else "each training part"
        yield (
            "missing",
            f"{rows} of {dataset.n_points} rows miss values in {columns} "
            f"column{'s' * (columns > 1)}: filled with the {FILLERS[dataset.impute]} of {of}",
        )
    for note in summary.notes:
        yield "note", note


def _classes(dataset: Dataset) -> str:
    """Return the classes and their numbers of rows, and which of two is +1."""
    names = dataset.classes or ()
    counts = np.bincount(dataset.class_numbers, minlength=len(names)).tolist()
    said = [
        f"{name} ({pluralize(count, 'row')})" for name, count in zip(names, counts, strict=True)
    ]
    if dataset.multiclass:
        return truncate(said, SHOWN)
    negative, positive = said
    return f"{negative} is -1, {positive} is +1"
