"""Check that sparse features are not to be scaled, which would fill them."""

from __future__ import annotations

from mkldist.data.dataset import Dataset
from mkldist.errors import SpecError
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec


def check_unscaled(preprocessing: PreprocessingSpec, entry: DatasetSpec, dataset: Dataset) -> None:
    """Refuse to scale sparse features.

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
    if dataset.sparse is None or preprocessing.scale == "none":
        return
    own = entry.preprocessing is not None
    n_bytes = 8 * dataset.n_points * dataset.n_features
    raise SpecError(
        f"datasets.{entry.name}.preprocessing.scale" if own else "preprocessing.scale",
        f'"{preprocessing.scale}" for the sparse features of {dataset.name!r}, which would take '
        f"{n_bytes / 2**20:.1f} MiB",
        '"none"',
        'Set preprocessing = { scale = "none" } under the data set, or remove sparse = true',
    )
