"""The output folder of a sweep: its place, its parts, its owner, the process that writes to it."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.core.checksums import json_value, parsed, write_checked
from mkldist.core.durable import (
    discard,
    is_alive,
    is_temporary,
    leads_to_nothing,
    machine_id,
    make_folder,
    remove_temporaries,
    write_file,
    writing,
)
from mkldist.core.terminal import command_line
from mkldist.core.wording import pluralize, truncate
from mkldist.errors import OutputError, StoreError, nearest
from mkldist.results.journal import JOURNAL, Journal

if TYPE_CHECKING:
    from mkldist.spec.model import SweepSpec

LOCK, OWNER = ".lock", ".owner"


@dataclass(frozen=True)
class OutputFolder:
    """Paths of the parts of a sweep's output."""

    path: Path  # The folder itself

    @property
    def manifest(self) -> Path:
        """File that names the sweep that owns the folder."""
        return self.path / MANIFEST

    @property
    def records(self) -> Path:
        """File of records, see :mod:`mkldist.results.journal`."""
        return self.path / JOURNAL

    @property
    def snapshots(self) -> Path:
        """Folder of the data sets and splits that workers read."""
        return self.path / "snapshots"

    @property
    def data(self) -> Path:
        """Folder of the data sets that were given in Python."""
        return self.path / "data"

    @property
    def sweep_file(self) -> Path:
        """The sweep file of a sweep that was given in Python."""
        return self.path / "sweep.toml"


@dataclass(frozen=True)
class Claim:
    """Note of the process that claimed an output folder."""

    pid: int  # Id of the process
    host: str  # Name of its machine, for people
    # Id of its machine or container, see `core.durable.machine_id`; empty if the note has
    # none
    machine: str = ""

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host}"

    @property
    def is_live(self) -> bool | None:
        """True if the process lives, False if it has ended, None on another machine."""
        return is_alive(self.pid) if self.machine == machine_id() else None


def claim_on(path: Path) -> Claim | None:
    """Return the claim on an output folder, or None if there is none that can be read."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        note = json_value((path / OWNER).read_text())
        return Claim(int(note["pid"]), str(note["host"]), str(note.get("machine", "")))
    return None


@contextmanager
def claimed(
    path: Path, sweep_name: str, file: Path | None = None, spec: str = ""
) -> Iterator[OutputFolder]:
    """Claim the output folder of a sweep while the context lasts.

    The operating system holds the lock and releases it when the process ends, even by a kill.
    """
    from filelock import FileLock, Timeout

    folder = OutputFolder(path)
    check_owner(folder, sweep_name)
    with writing(path):
        _make(path)
        lock = FileLock(path / LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            claim = claim_on(path)
            raise OutputError(
                str(path),
                f"another mkldist process{f' ({claim})' if claim else ''} that uses it",
                "one process per output folder",
                "Wait for it to end, or choose another folder with --output",
            ) from error
    try:
        with writing(path):
            check_owner(folder, sweep_name)
            remove_temporaries(path)
            claim = Claim(os.getpid(), socket.gethostname(), machine_id())
            write_file(path / OWNER, [json.dumps(asdict(claim)).encode()])
            write_manifest(path, sweep_name, file, spec)
        yield folder
    finally:
        with suppress(OSError):
            (path / OWNER).unlink()
        lock.release()


def _make(path: Path) -> None:
    """Make a folder and its parents, or raise OutputError."""
    try:
        make_folder(path)
    except FileNotFoundError as error:  # the answer of file systems such as /proc
        raise OutputError(
            str(path),
            "a folder that cannot be made",
            "a place where folders can be made",
            "Choose another with --output",
        ) from error


def check_owner(folder: OutputFolder, sweep_name: str) -> None:
    """Refuse a folder that is neither empty nor owned by this sweep."""
    path = folder.path
    if leads_to_nothing(path):
        hint = "Remove the link or make its target, or choose another folder with --output"
        raise OutputError(str(path), "a symbolic link to nothing", "a folder", hint)
    if not path.exists():
        return
    if not path.is_dir():
        raise OutputError(str(path), "a file", "a folder", "Choose another one with --output")
    with writing(path):  # a damaged manifest, or records alone, are of a sweep too
        is_of_a_sweep = os.path.lexists(folder.manifest) or bool(Journal(folder.records).states())
    if not is_of_a_sweep:
        _refuse_others(path)
        return
    name = owner(path)
    if name not in (sweep_name, None):
        raise OutputError(
            str(path),
            f"the folder of sweep '{name}'",
            f"an empty folder or that of sweep '{sweep_name}'",
            "Choose another one with --output",
        )


def _refuse_others(path: Path) -> None:
    """Refuse a folder that is not empty."""
    with writing(path):
        names = {entry.name for entry in path.iterdir()} - {LOCK, OWNER}
    others = sorted(name for name in names if not is_temporary(name))
    if others:
        raise OutputError(
            str(path),
            f"a folder that holds other files ({', '.join(others[:3])})",
            "an empty folder or that of the same sweep",
            "Choose another one with --output",
        )


def no_folder(path: Path) -> str:
    """Return the fault of a path that should be a folder."""
    if leads_to_nothing(path):
        return "a symbolic link to nothing"
    return "a file, not a folder" if path.is_file() else "no such folder"


MANIFEST = "sweep.json"
FORMAT = 2
_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, StoreError)


@dataclass(frozen=True)
class Manifest:
    """The sweep that owns a folder."""

    sweep: str  # Its name
    file: Path | None = None  # The file that it was last made from; None if it is not known
    spec: str = ""  # Its specification as JSON, overrides included; empty if it is not known


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of an output folder."""
    try:
        return _read(path)
    except IsADirectoryError as error:
        raise OutputError(
            str(path / MANIFEST),
            "a folder",
            "the manifest of a sweep, a file",
            "Move that folder away, then repeat the sweep's command: the manifest is made anew",
        ) from error
    except _DAMAGE as error:
        raise OutputError(
            str(path / MANIFEST),
            f"a manifest that cannot be read ({type(error).__name__})",
            "the manifest of a sweep",
            "Repeat the sweep's command: it is made anew",
        ) from error


def restored_manifest(path: Path) -> Manifest:
    """Return the manifest of an output folder; if it is damaged, what the layout says.

    Where that is damaged as well, the name is that of the folder.
    """
    with suppress(*_DAMAGE):
        return _read(path)
    name, spec = path.absolute().name, ""
    with suppress(*_DAMAGE):
        attributes = _layout_attributes(path)
        name, spec = str(attributes["sweep"]), str(attributes["spec"])
    file = OutputFolder(path).sweep_file
    return Manifest(name, file if file.is_file() else None, spec)


def owner(path: Path) -> str | None:
    """Return the name of the sweep that owns a folder; None if only damaged files tell."""
    with suppress(*_DAMAGE):
        return _read(path).sweep
    with suppress(*_DAMAGE):
        return str(_layout_attributes(path)["sweep"])
    return None


def write_manifest(path: Path, sweep: str, file: Path | None, spec: str = "") -> None:
    """Write whose folder it is, unless that is written there already."""
    known = None
    with suppress(*_DAMAGE):
        known = _read(path)
    before = restored_manifest(path)
    wanted = Manifest(sweep, before.file if file is None else file.absolute(), spec or before.spec)
    if known == wanted:
        return
    fields: dict[str, Any] = {"format": FORMAT, "sweep": sweep}
    if wanted.file is not None:
        fields["file"] = str(wanted.file)
    if wanted.spec:
        fields["spec"] = wanted.spec
    write_checked(path / MANIFEST, fields)


def _read(path: Path) -> Manifest:
    document = parsed((path / MANIFEST).read_bytes())
    if document["format"] != FORMAT:
        raise ValueError("a manifest of another format")
    file = document.get("file")
    return Manifest(
        str(document["sweep"]), None if file is None else Path(file), document.get("spec", "")
    )


def _layout_attributes(path: Path) -> dict[str, Any]:
    """Return the attributes of the results in a folder, which name their sweep."""
    from mkldist.results.layout import read_layout  # seldom

    return read_layout(path).attributes


DATA_NOTE = ".data.json"

Stamp = tuple[int, int]
"""Bytes of a file, and when it was written, in nanoseconds since the epoch."""


@dataclass(frozen=True)
class ReadData:
    """What a sweep read as a data set."""

    fingerprint: str  # Content hash of the data set
    # The state of its files, by their absolute paths, just before they were read
    files: Mapping[str, Stamp]
    # When that was, in seconds since the epoch
    read: float = field(default_factory=time.time, compare=False)

    @property
    def when(self) -> str:
        """When it was read, in local time."""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.read))

    def changed(self, stamps: Mapping[str, Stamp]) -> list[str]:
        """Return the files that have another state now; no others than both name."""
        return [file for file, stamp in self.files.items() if stamps.get(file, stamp) != stamp]


def stamps_of(files: Iterable[Path]) -> dict[str, Stamp]:
    """Return the state of files by their absolute paths, without those that cannot be found."""
    found: dict[str, Stamp] = {}
    for file in files:
        with suppress(OSError):
            stat = file.stat()
            found[str(file.absolute())] = stat.st_size, stat.st_mtime_ns
    return found


def read_data_note(folder: Path) -> dict[str, ReadData]:
    """Return what the sweep of an output folder read last, by data set; nothing without a note."""
    with suppress(*_DAMAGE):
        noted = parsed((folder / DATA_NOTE).read_bytes())
        return {
            name: ReadData(
                str(one["fingerprint"]),
                {file: (int(size), int(written)) for file, (size, written) in one["files"].items()},
                float(one["read"]),
            )
            for name, one in noted.items()
        }
    return {}


def note_data(folder: Path, data: Mapping[str, ReadData]) -> None:
    """Write what a sweep read, unless the note says so already or the folder refuses it."""
    before = read_data_note(folder)
    if {**before, **data} == before:
        return
    with suppress(OSError):
        write_checked(
            folder / DATA_NOTE, {name: asdict(one) for name, one in {**before, **data}.items()}
        )


def changed_data(folder: Path, data: Mapping[str, ReadData]) -> Iterator[str]:
    """Yield words on the files that changed the data since the sweep of a folder read them."""
    noted = read_data_note(folder)
    for name, now in data.items():
        before = noted.get(name)
        if before is not None and before.fingerprint != now.fingerprint:
            for file in before.changed(now.files):
                yield f"{file} changed since this sweep read it on {before.when}"


def inputs_of(path: Path) -> list[Path]:
    """Return what commands read of the results in a folder: they, the sweep's file and its data."""
    folder = OutputFolder(path)
    own = [found for ending in ("json", "journal", "layout") for found in path.glob(f"*.{ending}")]
    data = [Path(file) for one in read_data_note(path).values() for file in one.files]
    file = restored_manifest(path).file
    return [*own, folder.sweep_file, folder.snapshots, folder.data, *filter(None, [file]), *data]


def rewritten_files(folder: Path) -> Iterator[str]:
    """Yield words on the files that were written since the sweep of a folder read them.

    Their content is not read, so that it may be the same; files that are not here count as
    unchanged, as those of results from another machine.
    """
    for before in read_data_note(folder).values():
        for file in before.changed(stamps_of(map(Path, before.files))):
            yield f"{file} was written after this sweep read it on {before.when}"


BANK_NOTE = "banks.json"


def note_banks(path: Path, root: str, banks: Collection[str]) -> None:
    """Add banks to the note in an output folder; write a damaged note anew, with these alone."""
    noted = noted_banks(path)
    ids = sorted({*noted.get(root, ()), *banks})
    if ids != noted.get(root):
        if (path / BANK_NOTE).is_dir():
            discard(path / BANK_NOTE)
        write_checked(path / BANK_NOTE, {**noted, root: ids})


def drop_damaged_note(path: Path) -> None:
    """Remove the note in an output folder if it is damaged; what is no file is moved away."""
    if is_note_damaged(path):
        discard(path / BANK_NOTE)


def is_note_damaged(path: Path) -> bool:
    """Return True if something stands in the place of the note that is no whole note."""
    return os.path.lexists(path / BANK_NOTE) and whole_note(path) is None


def checked_note(path: Path) -> Mapping[str, list[str]]:
    """Return the banks of a sweep by their folder or URL; nothing if there is no note."""
    if is_note_damaged(path):
        raise StoreError(
            str(path / BANK_NOTE),
            "a damaged note of the Gram matrices that the sweep stored",
            "a whole note",
            "Repeat the sweep's command: it is made anew",
        )
    return noted_banks(path)


_BANK_ID = re.compile(r"\w+")


def noted_banks(path: Path) -> Mapping[str, list[str]]:
    """Return the banks of a sweep by their folder or URL; nothing if there is no whole note."""
    return whole_note(path) or {}


def whole_note(path: Path) -> Mapping[str, list[str]] | None:
    """Return the banks of a sweep by their folder or URL, None if the note is damaged or absent."""
    try:
        noted = parsed((path / BANK_NOTE).read_bytes())
    except (OSError, ValueError):
        return None
    for banks in noted.values():
        # A name such as .. would lead out of the folder of the banks.
        if not (isinstance(banks, list) and all(_BANK_ID.fullmatch(str(one)) for one in banks)):
            return None
    return noted


WORK_NOTE = ".work.json"


@dataclass(frozen=True)
class AtWork:
    """Runs of one method, or blocks of one bank, that workers are at work on."""

    place: str  # Node of the runs in the results, or data set and bank
    doing: str  # What is being done, such as `"solving"`
    since: float  # When it began, in seconds since the epoch
    n_runs: int = 0  # Number of runs; 0 for a bank


def write_work_note(folder: Path, at_work: Iterable[AtWork]) -> None:
    """Write the note of an output folder, unless the folder refuses it: nothing depends on it."""
    with suppress(OSError):
        text = json.dumps([asdict(one) for one in at_work])
        write_file(folder / WORK_NOTE, [text.encode()], durable=False)


def remove_work_note(folder: Path) -> None:
    """Remove the note of an output folder."""
    with suppress(OSError):
        (folder / WORK_NOTE).unlink(missing_ok=True)


def read_work_note(folder: Path) -> list[AtWork]:
    """Return what a sweep was at work on when it last said so, by place and stage."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        note = json_value((folder / WORK_NOTE).read_bytes())
        return put_together(AtWork(**one) for one in note)
    return []


def put_together(at_work: Iterable[AtWork]) -> list[AtWork]:
    """Return one entry for each place and stage."""
    together: dict[tuple[str, str], AtWork] = {}
    for one in at_work:
        key = one.place, one.doing
        other = together.get(key, AtWork(*key, one.since))
        since = min(one.since, other.since)
        together[key] = AtWork(*key, since, one.n_runs + other.n_runs)
    return sorted(together.values(), key=lambda one: (one.n_runs == 0, one.place, one.doing))


RESULTS = Path("results")
BANKS = "banks"
SHOWN = 8


def output_path(spec: SweepSpec, output: Path | None = None) -> Path:
    """Return the output folder: `output`, else ``outputs.path``, else ``results/<name>``."""
    return output or Path(spec.outputs.path or RESULTS / spec.name)


def banks_root(spec: SweepSpec, output: Path) -> str:
    """Return the folder or URL of the sweep's banks; a relative path becomes absolute.

    A sweep has its banks in its own output.  Sweeps that keep their banks, and whose outputs lie
    side by side, share them.
    """
    parent = output.parent if spec.outputs.keep_banks else output
    given = spec.outputs.banks or str(parent / BANKS)
    return given if "://" in given else str(Path(given).absolute())


def results_of(given: Path, *, several: bool = False) -> Path:
    """Return the output folder of a sweep."""
    for folder in (given, RESULTS / given):
        if os.path.lexists(OutputFolder(folder).manifest):
            return folder
    if given.is_dir():
        if not several:
            _refuse_folder_of_sweeps(given)
        return given
    from mkldist.spec.load import load_sweep, sweep_file  # not for those who name a folder

    file = sweep_file(given)
    if file.is_file():
        folder = output_path(load_sweep(file))
        if not folder.exists():
            raise StoreError(
                str(folder),
                "no such folder",
                "the output folder of a sweep",
                f"Run the sweep first: {command_line('sweep', given)}",
            )
        return folder
    known = [path.parent.name for path in RESULTS.glob(f"*/{OutputFolder(RESULTS).manifest.name}")]
    raise StoreError(
        str(given),
        "no such folder, sweep file or name",
        "the results of a sweep, its file or its name",
        nearest(given.name, known) or f"The results here: {', '.join(sorted(known)) or 'none'}",
    )


def _refuse_folder_of_sweeps(given: Path) -> None:
    """Refuse a folder that holds results of sweeps, and is none itself; name them."""
    manifest = OutputFolder(given).manifest.name
    inside = [given / name for name in ("", RESULTS)]
    found = sorted(path.parent for one in inside for path in one.glob(f"*/{manifest}"))
    if found:
        raise StoreError(
            str(given),
            f"a folder with the results of {pluralize(len(found), 'sweep')}",
            "the results of one",
            f"Name it: {truncate([str(path) for path in found], SHOWN)}",
        )


def sweep_file_of(given: Path) -> Path:
    """Return the sweep file that a path or name means."""
    from mkldist.spec.load import sweep_file

    file = sweep_file(given)
    if file.is_file():
        return file
    for folder in (given, RESULTS / given):
        if os.path.lexists(OutputFolder(folder).manifest):
            return read_manifest(folder).file or given
    return given
