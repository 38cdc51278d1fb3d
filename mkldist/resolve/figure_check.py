"""Check that the figures of a sweep can be drawn of its data."""

from __future__ import annotations

from mkldist.data.dataset import Dataset
from mkldist.errors import SpecError
from mkldist.spec.model import OutputsSpec

BOUNDARY = "decision-boundary"


def check_figures(outputs: OutputsSpec, dataset: Dataset) -> None:
    """Refuse figures of decision boundaries unless the points lie in a plane.

    Parameters
    ----------
    outputs : OutputsSpec
        The ``[outputs]`` of the sweep.
    dataset : Dataset
        One of its data sets.

    Raises
    ------
    mkldist.errors.SpecError
        For a data set with other than two features, Gram matrices without features, or values of
        regression.
    """
    if BOUNDARY not in outputs.figures:
        return
    if dataset.x is None:
        found = f"{dataset.name!r}, which holds Gram matrices"
    elif dataset.classes is None:
        found = f"{dataset.name!r}, a data set of regression"
    elif dataset.n_features != 2:
        found = f"{dataset.name!r}, which has {dataset.n_features} features"
    else:
        return
    raise SpecError(
        "outputs.figures",
        f'"{BOUNDARY}" of {found}',
        "classes and two features in every data set",
        "Remove it, or the data set",
    )
