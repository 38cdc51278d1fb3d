"""The part of the output folder that keeps a sweep given in Python: its words and its data.

With these files the same commands read, resume and change the sweep as if it had come from a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mkldist.data.given_files import SUFFIX, GivenData
from mkldist.durable import make_folder, remove_temporaries, write_file, writing
from mkldist.results.output import OutputFolder
from mkldist.run.sealed_words import sealed_words


def file_name(dataset: str, data: GivenData) -> str:
    """Return the name of the file that keeps a data set."""
    return f"{dataset}-{data.id}{SUFFIX}"


@dataclass(frozen=True)
class KeptSweep:
    """Words and data of a sweep that are to be kept in its output folder.

    Parameters
    ----------
    text : str
        Its sweep file; empty for a sweep that has one elsewhere, of which nothing is kept.
    data : mapping of str to GivenData
        Data sets by name.
    """

    text: str = ""
    data: Mapping[str, GivenData] = field(default_factory=dict)

    def write(self, folder: OutputFolder) -> list[str]:
        """Write what the folder lacks; return a line for each data set that has changed.

        Files of data sets that are not given any more are removed.

        Raises
        ------
        mkldist.errors.OutputError
            If the folder cannot be written.
        """
        if not self.text:
            return []
        wanted = {file_name(name, data): name for name, data in self.data.items()}
        with writing(folder.path):
            make_folder(folder.data)
            remove_temporaries(folder.data)
            there = {path.name for path in folder.data.glob(f"*{SUFFIX}")}
            for file in wanted.keys() - there:
                self.data[wanted[file]].save(folder.data / file)
            # The sweep file names the data, so that it is written after them.
            words = sealed_words(self.text)
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


def _dataset(file: str) -> str:
    """Return the name of the data set that a file keeps."""
    return file.removesuffix(SUFFIX).rpartition("-")[0]


FROM_FILES = KeptSweep()
