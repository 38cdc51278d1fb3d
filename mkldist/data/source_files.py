"""The files that a data set is read from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mkldist.data.catalogue import file_named, located
from mkldist.spec.datasets import DatasetSpec


def source_files(spec: DatasetSpec, data_dirs: Sequence[Path], base: Path) -> list[Path]:
    """Return the files that the entry of a data set names, views and groups of features included.

    Parameters
    ----------
    spec : DatasetSpec
        The entry.
    data_dirs, base
        As for :func:`mkldist.data.catalogue.load_dataset`.

    Raises
    ------
    mkldist.errors.DataError
        If several files have the name of the data set.
    """
    named = [spec.file, spec.grams, spec.labels, spec.group_file]
    for view in spec.views:
        named += [view.file, view.grams, view.group_file]
    found = [located(file, data_dirs, base) for file in named if file is not None]
    if spec.file is None and spec.openml is None and spec.grams is None and not spec.options:
        name = spec.source or spec.name
        own = file_named(name, data_dirs, f"data set {spec.series!r}")
        found += [] if own is None else [own]
    return found
