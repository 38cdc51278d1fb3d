"""The part of the output folder that keeps a sweep given in Python: its words and its data.

With these files the same commands read, resume and change the sweep as if it had come from a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mkldist.core.checksums import crc32c
from mkldist.core.durable import make_folder, remove_temporaries, write_file, writing
from mkldist.data.given import SUFFIX, GivenData, is_sound
from mkldist.results.output import OutputFolder
from mkldist.spec.load import PATHS

_FIRST = "# checksum of the lines below: crc32c:"


def with_checksum_header(text: str) -> bytes:
    """Return the text of a sweep file, which begins with no comment, behind its checksum.

    Examples
    --------
    >>> print(with_checksum_header('name = "mine"').decode())
    # checksum of the lines below: crc32c:8b61b201
    name = "mine"
    """
    content = text.encode()
    return f"{_FIRST}{crc32c([content]).hex()}\n".encode() + content


def fits_checksum_header(content: bytes) -> bool | None:
    """Return True if a file fits its checksum, False if not, None for one that has no checksum.

    A file of a version without checksums, or one of the user, begins with no comment.
    """
    if not content.startswith(b"#"):
        return None if content else False
    first, _, below = content.partition(b"\n")
    return first == f"{_FIRST}{crc32c([below]).hex()}".encode()


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
        """Write what the folder lacks or has damaged; return a line for each changed data set.

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
            sound = {file for file in wanted.keys() & there if is_sound(folder.data / file)}
            for file in wanted.keys() - sound:
                self.data[wanted[file]].save(folder.data / file)
            # The sweep file names the data, so that it is written after them.
            words = with_checksum_header(self.text)
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


def make_absolute(document: Any, base: Path) -> None:
    """Let the paths of data files start at the root, since the words may move to another folder.

    Parameters
    ----------
    document : object
        Content of a sweep file, perhaps a wrong one; its paths are replaced.
    base : Path
        Folder where relative paths begin.
    """
    for table, key in data_files(document):
        if (base / table[key]).exists():
            table[key] = str((base / table[key]).absolute())


def data_files(document: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each table of a data set with the key of a file."""
    for table in _tables(document.get("datasets") if isinstance(document, dict) else None):
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


FROM_FILES = KeptSweep()
