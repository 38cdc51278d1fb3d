"""What a sweep reads: the state of its files before, and the fingerprints of its data after."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mkldist.data.catalogue import file_named, located
from mkldist.planning.resolved import Resolved
from mkldist.results.notes import ReadData, Stamp, changed_data, note_data, stamps_of
from mkldist.spec.datasets import DatasetSpec
from mkldist.spec.model import SweepSpec


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


@dataclass(frozen=True)
class FilesBefore:
    """The state of the files of each data set before they are read.

    Parameters
    ----------
    stamps : mapping of str to mapping of str to Stamp
        State of the files by data set; none for data that come from Python or another place.
    """

    stamps: Mapping[str, Mapping[str, Stamp]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, spec: SweepSpec, data_dirs: Sequence[Path], base: Path, given: Collection[str] = ()
    ) -> FilesBefore:
        """Return the state of the files of a sweep.

        Parameters
        ----------
        spec : SweepSpec
            The sweep.
        data_dirs, base
            As for :func:`mkldist.data.catalogue.load_dataset`.
        given : collection of str
            Data sets that are in memory.
        """
        read = [entry for entry in spec.datasets if entry.name not in given]
        return cls({one.name: stamps_of(source_files(one, data_dirs, base)) for one in read})

    def read(self, spec: SweepSpec, resolved: Resolved) -> dict[str, ReadData]:
        """Return what was read since, by data set."""
        return {
            entry.name: ReadData(
                resolved.facts[spec.sizes_of(entry)[0].name].fingerprint, self.stamps[entry.name]
            )
            for entry in spec.datasets
            if self.stamps.get(entry.name)
        }


def changed_lines(folder: Path, data: Mapping[str, ReadData]) -> list[str]:
    """Return a line on each file that changed: what becomes of the old runs, and what to do.

    Parameters
    ----------
    folder : Path
        The output folder, which may be missing.
    data : mapping of str to ReadData
        The data as they are now, by data set.
    """
    return [
        f"{words}: runs on the old data do not count and are to be done anew; their records are "
        "kept, and count again if the old file comes back. To keep both results, rename the sweep"
        for words in changed_data(folder, data)
    ]


def noted_changes(folder: Path, data: Mapping[str, ReadData]) -> list[str]:
    """Return the lines of :func:`changed_lines`, and note the data as they are now."""
    lines = changed_lines(folder, data)
    note_data(folder, data)
    return lines
