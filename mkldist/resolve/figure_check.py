"""Check that the figures of a sweep can be drawn, and of its data."""

from __future__ import annotations

from importlib.util import find_spec

from mkldist.data.dataset import Dataset
from mkldist.errors import SpecError
from mkldist.spec.model import OutputsSpec

BOUNDARY = "decision-boundary"


def check_figures(outputs: OutputsSpec, dataset: Dataset) -> None:
    """Refuse figures without matplotlib, and decision boundaries unless points lie in a plane.

    Parameters
    ----------
    outputs : OutputsSpec
        The ``[outputs]`` of the sweep.
    dataset : Dataset
        One of its data sets.

    Raises
    ------
    mkldist.errors.SpecError
        If matplotlib is not installed; for a data set with other than two features, Gram matrices
        without features, or values of regression.
    """
    if BOUNDARY not in outputs.figures:
        return
    if find_spec("matplotlib") is None:
        raise SpecError(
            "outputs.figures",
            f'"{BOUNDARY}" without matplotlib',
            "the package matplotlib",
            "pip install 'mkldist[figures]' installs it",
        )
    if dataset.x is None:
        kind = "Gram matrices" if dataset.sparse is None else "sparse features"
        found = f"{dataset.name!r}, which holds {kind}"
    elif dataset.classes is None:
        found = f"{dataset.name!r}, a data set of regression"
    elif dataset.n_features != 2:
        found = f"{dataset.name!r}, which has {dataset.n_features} features"
    elif dataset.given or dataset.texts is not None or dataset.absent is not None:
        found = f"{dataset.name!r}, which has more than two features for each point"
    else:
        return
    raise SpecError(
        "outputs.figures",
        f'"{BOUNDARY}" of {found}',
        "classes and two features in every data set",
        "Remove it, or the data set",
    )
