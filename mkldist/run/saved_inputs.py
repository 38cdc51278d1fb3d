"""What the output folder saves of a sweep's inputs: words, data from Python, states of files.

With the words and data of a sweep that came from Python, the same commands read, resume and change
the sweep as if it had come from a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mkldist.core.durable import make_folder, remove_temporaries, write_file, writing
from mkldist.data.catalogue import file_named, located
from mkldist.data.inputs import SUFFIX, InputData, is_sound
from mkldist.planning.resolved import Resolved
from mkldist.results.folder import OutputFolder, ReadData, Stamp, changed_data, note_data, stamps_of
from mkldist.spec.datasets import DatasetSpec, GraphTable
from mkldist.spec.load import PATHS
from mkldist.spec.model import SweepSpec


def file_name(dataset: str, data: InputData) -> str:
    """Return the name of the file that keeps a data set."""
    return f"{dataset}-{data.id}{SUFFIX}"


@dataclass(frozen=True)
class SavedInputs:
    """Words and data of a sweep that are to be kept in its output folder."""

    # Its sweep file; empty for a sweep that has one elsewhere, of which nothing is kept
    text: str = ""
    data: Mapping[str, InputData] = field(default_factory=dict)  # data sets by name

    def write(self, folder: OutputFolder) -> list[str]:
        """Write what the folder lacks or has damaged; return a line for each changed data set.

        Files of data sets that are not given any more are removed.
        """
        if not self.text:
            return []
        wanted = {file_name(name, data): name for name, data in self.data.items()}
        with writing(folder.path):
            make_folder(folder.data)
            remove_temporaries(folder.data)
            there = {path.name for path in folder.data.glob(f"*{SUFFIX}")}
            sound = {file for file in wanted.keys() & there if is_sound(folder.data / file)}
            for file in wanted.keys() - sound:
                self.data[wanted[file]].save(folder.data / file)
            # The sweep file names the data, so that it is written after them.
            words = self.text.encode()
            if not folder.sweep_file.exists() or folder.sweep_file.read_bytes() != words:
                write_file(folder.sweep_file, [words])
            for file in there - wanted.keys():
                (folder.data / file).unlink(missing_ok=True)
        before = {_dataset(file) for file in there - wanted.keys()}
        return [
            f"{wanted[file]}: these data differ from those of the last call, so that runs on the "
            "old data do not count; their records are kept"
            for file in sorted(wanted.keys() - there)
            if wanted[file] in before
        ]


def data_files(document: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each table of a data set with the key of a file."""
    for place in ("datasets", "graph") if isinstance(document, dict) else ():
        for table in _tables(document.get(place)):
            yield from ((table, key) for key in PATHS if isinstance(table.get(key), str))


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the tables of a list, or a table and the tables within it."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from _tables(item)


def _dataset(file: str) -> str:
    """Return the name of the data set that a file keeps."""
    return file.removesuffix(SUFFIX).rpartition("-")[0]


FROM_FILES = SavedInputs()


def source_files(
    spec: DatasetSpec, data_dirs: Sequence[Path], base: Path, graph: GraphTable | None = None
) -> list[Path]:
    """Return the files that the entry of a data set and its graph name, with views and groups."""
    named = [spec.file, spec.grams, spec.labels, spec.group_file]
    named += [] if graph is None else [graph.distances]
    for view in spec.views:
        named += [view.file, view.grams, view.group_file]
        named += [one.distances for one in view.graphs or ()]
    found = [located(file, data_dirs, base) for file in named if file is not None]
    if spec.file is None and spec.grams is None and not spec.options:
        name = spec.source or spec.name
        own = file_named(name, data_dirs, f"data set {spec.series!r}")
        found += [] if own is None else [own]
    return found


@dataclass(frozen=True)
class FilesBefore:
    """The state of the files of each data set before they are read."""

    # State of the files by data set; none for data that come from Python or another place
    stamps: Mapping[str, Mapping[str, Stamp]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, spec: SweepSpec, data_dirs: Sequence[Path], base: Path, given: Collection[str] = ()
    ) -> FilesBefore:
        """Return the state of the files of a sweep."""
        read = [entry for entry in spec.datasets if entry.name not in given]
        files = {one.name: source_files(one, data_dirs, base, spec.graph_of(one)) for one in read}
        return cls({name: stamps_of(own) for name, own in files.items()})

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
    """Return a line on each file that changed: what becomes of the old runs, and what to do."""
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
