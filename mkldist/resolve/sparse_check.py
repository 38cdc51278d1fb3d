"""Check that sparse features are not to be scaled in a way that would fill them."""

from __future__ import annotations

from mkldist.data.dataset import Dataset
from mkldist.errors import SpecError
from mkldist.memory import readable_bytes
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec

UNFILLED = ("none", "tfidf")


def check_unscaled(preprocessing: PreprocessingSpec, entry: DatasetSpec, dataset: Dataset) -> None:
    """Refuse to scale sparse features, but for counts of terms, whose zeros stay zero.

    Parameters
    ----------
    preprocessing : PreprocessingSpec
        Preprocessing of the data set.
    entry : DatasetSpec
        Its entry in the sweep file.
    dataset : Dataset
        The data set.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the place where the scaling stands.
    """
    if dataset.sparse is None or preprocessing.scale in UNFILLED:
        return
    own = entry.preprocessing is not None
    n_bytes = 8 * dataset.n_points * dataset.n_features
    raise SpecError(
        f"datasets.{entry.name}.preprocessing.scale" if own else "preprocessing.scale",
        f'"{preprocessing.scale}" for the sparse features of {dataset.name!r}, which would take '
        f"{readable_bytes(n_bytes)} as dense ones",
        '"none", or "tfidf" for counts of terms: they leave zeros as they are',
        'Set preprocessing = { scale = "none" } under the data set, or remove sparse = true',
    )
