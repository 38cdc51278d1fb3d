"""Sweeps from Python: :func:`sweep` does what the command does."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from mkldist.core.terminal import command_line, standard_error
from mkldist.data.inputs import SUFFIX, InputData, input_data
from mkldist.errors import FailedRunsWarning, InputError, MkldistError, SpecError, nearest
from mkldist.kernels.families import plain
from mkldist.methods.components import Component, written
from mkldist.results.folder import OutputFolder, output_path, sweep_file_of
from mkldist.results.status import sweep_status
from mkldist.results.tree import open_results
from mkldist.run.cluster import ConnectOptions
from mkldist.run.saved_inputs import FROM_FILES, SavedInputs, data_files, file_name
from mkldist.spec.kinds import as_path, check_flags, spelled, toml_text
from mkldist.spec.load import apply_override, document_of, item_at, load_sweep, name_of, naming
from mkldist.spec.model import SweepSpec

if TYPE_CHECKING:
    import xarray as xr

    from mkldist.run.sweep import SweepOutcome

SOURCES = ("source", "file", "grams")
KINDS = {"groups": ("holdout", "kfold", "leave-one-group-out"), "order": ("time",)}
"""Kinds of splits that use a column of this name."""


P = ParamSpec("P")
R = TypeVar("R")
DEBUG_VARIABLE = "MKLDIST_DEBUG"


def with_short_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Raise mistakes of the user and interrupts from the call itself.

    Their message says all that a user can act on.  The environment variable ``MKLDIST_DEBUG``
    keeps the calls within mkldist.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (MkldistError, KeyboardInterrupt) as error:
            if os.environ.get(DEBUG_VARIABLE):
                raise
            raise error.with_traceback(None) from None

    return call


def worker_choice(
    workers: int | None,
    threads: int,
    scheduler: str | None,
    cluster: str | Path | None,
    tls: str | Path | None = None,
    *,
    allow_unencrypted: bool = False,
) -> ConnectOptions:
    """Return the choice of workers that some arguments make."""
    check_flags(allow_unencrypted=allow_unencrypted)
    if scheduler is not None and not isinstance(scheduler, str):
        raise SpecError("scheduler", f"{scheduler!r:.60}", 'an address such as "tcp://host:8786"')
    check_count("workers", workers, 0)
    check_count("threads_per_worker", threads, 1)
    options = ConnectOptions(
        scheduler,
        None if cluster is None else as_path("cluster", cluster),
        workers or None,
        threads,
        tls=None if tls is None else as_path("tls", tls),
        allow_unencrypted=allow_unencrypted,
    )
    options = replace(options, in_this_process=True) if workers == 0 else options
    options.check()
    return options


@with_short_errors
def sweep(
    spec: str | Path | Mapping[str, Any] | SweepSpec,
    data: Mapping[str, Any] | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
    data_dirs: str | Path | Sequence[str | Path] = (),
    workers: int | None = None,
    threads_per_worker: int = 1,
    scheduler: str | None = None,
    cluster: str | Path | None = None,
    retry_failed: bool = False,
    progress: bool = True,
    allow_code: bool = False,
    tls: str | Path | None = None,
    allow_unencrypted: bool = False,
) -> xr.DataTree:
    """Do all runs of a sweep that are not recorded yet, and return its results.

    After any interruption the same call resumes: a run that is recorded in the output folder is
    never repeated.  The folder keeps the words and data of a sweep that did not come from a file,
    so that the commands (``mkldist status``, ``mkldist sweep``) read and resume it too.

    Parameters
    ----------
    spec : str, Path or mapping
        A sweep file, the name of a sweep or the folder of its results; or a mapping with the keys
        of a sweep file, whose lists of kernels may hold ``mkldist.kernels.Gaussian(...)``.
    data : mapping of str to data, optional
        Data sets by name: ``(X, y)``, ``(X, y, groups)``, a DataFrame that holds the label column,
        or a mapping with ``x`` (n, d) or ``grams`` (M, n, n), ``y`` (n,), and perhaps ``groups``,
        ``order``, ``feature_names``, ``train``, ``test`` and ``unlabelled``.  Parts whose indexes
        of pandas differ are refused; a plain range counts rows and names none.  The sweep needs no
        entry in ``datasets`` for them, unless it sets other keys such as ``task``.
    changes : mapping of str to object, optional
        Values that replace those of the sweep, as ``--set`` does: ``{"methods.level.C": [1, 10]}``.
    output : str or Path, optional
        Folder of the results; by default ``results/NAME``.
    data_dirs : str or Path, or sequence of them
        Folders in which to look up data sets.
    workers : int, optional
        Worker processes; by default one for each processor.  0 has a thread of this process do
        everything, as a small sweep does by itself.
    threads_per_worker : int
        Tasks that each worker does at the same time.
    scheduler : str, optional
        Address of a running Dask scheduler to join.
    cluster : str or Path, optional
        YAML file of a cluster to start.
    retry_failed : bool
        True to repeat runs that are recorded as failed.
    progress : bool
        True to show the progress on standard error, or below the cell of a notebook.
    allow_code : bool
        True if kernel functions that the sweep names as ``"module:function"``, and what it writes
        of regularisers, may be imported and called.
    tls : str or Path, optional
        Folder of certificates for the scheduler and its workers.
    allow_unencrypted : bool
        True if a scheduler on another machine needs no encryption.

    Returns
    -------
    xarray.DataTree
        As :func:`mkldist.open_results` returns it.

    Warns
    -----
    mkldist.errors.FailedRunsWarning
        If runs failed; their error is in the results and in ``mkldist status``.

    Raises
    ------
    mkldist.errors.InputError
        For words, data or an output folder that cannot be used.
    mkldist.errors.ClusterError
        When workers cannot be started or the scheduler is lost.
    KeyboardInterrupt
        After Ctrl-C or the interruption of a cell; it says how to resume.

    Examples
    --------
    >>> import mkldist
    >>> from sklearn.datasets import load_wine
    >>> spec = {
    ...     "name": "wines",
    ...     "banks": [{"family": "default"}],
    ...     "methods": [{"name": "level", "C": [0.3, 1, 3]}],
    ... }
    >>> data = {"wine": load_wine(return_X_y=True)}  # doctest: +SKIP
    >>> tree = mkldist.sweep(spec, data, progress=False)  # doctest: +SKIP
    >>> tree["wine/level"].test_error.mean("split").round(2).to_series().to_dict()  # doctest: +SKIP
    {0.3: 0.0, 1.0: 0.01, 3.0: 0.01}
    """
    from mkldist.run.sweep import run_sweep  # with Dask, which a plan does without

    check_flags(retry_failed=retry_failed, progress=progress, allow_code=allow_code)
    given = SweepInputs.of(spec, data, changes, output)
    options = worker_choice(
        workers, threads_per_worker, scheduler, cluster, tls, allow_unencrypted=allow_unencrypted
    )
    of_file = None
    if changes:
        with suppress(InputError):  # of words that are wrong without the changes
            of_file = SweepInputs.of(spec, data, None, output).spec
    with given.naming():
        outcome = run_sweep(
            given.spec,
            origin=given.origin,
            data_dirs=given_folders("data_dirs", data_dirs),
            output=given.output,
            connect_options=options,
            retry_failed=retry_failed,
            console=standard_error if progress else None,
            resume_command="the same call of mkldist.sweep, or "
            + command_line("sweep", given.output),
            saved=given.saved,
            allow_code=allow_code,
            of_file=of_file,
        )
    tree = open_results(outcome.path)
    _warn_of_failures(outcome)
    return tree


def _warn_of_failures(outcome: SweepOutcome) -> None:
    """Warn if runs failed or have lost their records."""
    if outcome.failed:
        first = sweep_status(outcome.path).failed[0]
        warnings.warn(
            f"{outcome.failed} of {len(outcome.plan.runs)} runs failed, such as {first.node}, "
            f"split {first.split}: {first.error}. retry_failed=True repeats them.",
            FailedRunsWarning,
            stacklevel=4,
        )
    if outcome.waiting:
        warnings.warn(
            f"{outcome.waiting} runs have no record that can be read. Repeat the call.",
            FailedRunsWarning,
            stacklevel=4,
        )


@dataclass(frozen=True)
class SweepInputs:
    """A sweep that was given in Python."""

    spec: SweepSpec
    origin: Path
    output: Path
    words: Path | Mapping[str, Any]
    saved: SavedInputs

    @classmethod
    def of(
        cls,
        spec: Any,
        data: Any = None,
        changes: Mapping[str, Any] | None = None,
        output: str | Path | None = None,
    ) -> SweepInputs:
        """Understand the arguments of :func:`mkldist.sweep` and :func:`mkldist.plan`."""
        file, results = _file_of(spec)
        place = results if output is None else as_path("output", output)
        if file is not None and data is None and not changes:
            model = load_sweep(file)
            return cls(model, file, output_path(model, place), file, FROM_FILES)
        document = document_of(file) if file is not None else _document(spec)
        base = file.absolute().parent if file is not None else Path.cwd()
        for table, key in data_files(document):  # the words may move to another folder
            if (base / table[key]).exists():
                table[key] = str((base / table[key]).absolute())
        if isinstance(methods := document.get("methods"), list):
            document["methods"] = [_as_text(one, f"methods.{name_of(one)}") for one in methods]
        _change(document, changes or {})
        given = _given(data)
        if "datasets" not in document:
            document["datasets"] = [{"name": name} for name in given] or _missing()
        for name, one in given.items():
            _name_in(document, name, one)
        if output is not None and isinstance(document.setdefault("outputs", {}), dict):
            document["outputs"]["path"] = str(Path(output).absolute())  # for the kept sweep file
        model = load_sweep(document)
        path = output_path(model, place)
        return cls(
            model,
            OutputFolder(path).sweep_file,
            path,
            document,
            SavedInputs(toml_text(document), given),
        )

    def naming(self) -> Any:
        """Return the context in which errors name the place in the words of the sweep."""
        return naming(self.words)


def check_count(name: str, value: object, least: int, most: float = math.inf) -> None:
    """Refuse anything but None and whole numbers of at least `least` and at most `most`."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        limits = f"at least {least}" + (f" and at most {most}" if math.isfinite(most) else "")
        raise SpecError(name, f"{value!r:.60}", f"a whole number of {limits}")


def given_folders(name: str, value: object) -> list[Path]:
    """Return the folders that an argument gives: a path, or several."""
    if isinstance(value, str | os.PathLike):
        return [as_path(name, value)]
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise SpecError(name, f"{value!r:.60}", 'folders, such as ["data", "/srv/data"]')
    return [as_path(name, one) for one in value]


def check_speed(name: str, value: object) -> None:
    """Refuse anything but None and finite numbers above zero, such as 1e9 bytes a second."""
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and 0 < float(value) < math.inf):  # type: ignore[arg-type]  # a number
        raise SpecError(name, f"{value!r:.60}", "a finite number of bytes a second above 0")


def _file_of(spec: Any) -> tuple[Path | None, Path | None]:
    """Return the sweep file that is meant, and the folder of results if that was given."""
    if not isinstance(spec, str | Path):
        return None, None
    given = as_path("spec", spec)
    file = sweep_file_of(given)
    return file, given if given.is_dir() and file != given else None


def _document(spec: Any) -> dict[str, Any]:
    """Return the content of a sweep file that says the same."""
    if isinstance(spec, SweepSpec):
        document: dict[str, Any] = json.loads(spec.model_dump_json(exclude_defaults=True))
        return document
    if not isinstance(spec, Mapping):
        expected = "a sweep file, the name of a sweep, or a mapping with the keys of a sweep file"
        raise SpecError("spec", f"{type(spec).__name__}", expected)
    words: dict[str, Any] = _without_none(plain(deepcopy(dict(spec))))
    return words


def _without_none(value: Any) -> Any:
    """Return words without keys whose value is None: a key that a sweep file leaves out."""
    if isinstance(value, dict):
        return {str(key): _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _as_text(value: Any, where: str) -> Any:
    """Return a value whose regularisers are text."""
    if isinstance(value, dict):
        return {key: _as_text(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item, where) for item in value]
    return written(value, where) if isinstance(value, Component) else value


def _change(document: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Replace values, as ``--set`` does."""
    if not isinstance(changes, Mapping):
        hint = 'Write changes={"splits.repeats": 2}'
        raise SpecError("changes", f"{changes!r:.60}", "a mapping of keys to values", hint)
    for key, given in changes.items():
        where = f"changes[{key!r}]"
        value = plain(given)
        text = _as_text(value, where)
        try:
            location = apply_override(document, f"{key}={spelled(text, None)}")
        except SpecError as error:
            raise SpecError(where, error.found, error.expected, error.hint) from None
        if text != value:
            item_at(document, location[:-1])[location[-1]] = text  # of an object at hand


def _given(data: Any) -> dict[str, InputData]:
    """Return the data sets of a call by name."""
    if data is None:
        return {}
    if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
        raise SpecError(
            "data", f"{type(data).__name__}", 'data sets by name, as in {"mine": (X, y)}'
        )
    return {name: input_data(one, f"data[{name!r}]") for name, one in data.items()}


def _name_in(document: dict[str, Any], name: str, data: InputData) -> None:
    """Let the entry of a data set name the file that keeps it, and the columns of its splits."""
    entry = _entry(document, name)
    there = [key for key in SOURCES if key in entry]
    if there and not str(entry[there[0]]).endswith(SUFFIX):
        place = f"datasets.{name}"
        hint = f"Remove {there[0]}, or give the data another name"
        raise SpecError(place, f"{there[0]}, beside data[{name!r}]", "one source of data", hint)
    entry["file"] = f"data/{file_name(name, data)}"
    if data.weighs_rows:
        entry.setdefault("weights", "weights")
    for column in data.of_splits:
        _divide_by(document, entry, column)
    if "train" in data.arrays and "splits" not in document and "splits" not in entry:
        entry["splits"] = {"kind": "predefined"}


def _entry(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the entry of a data set."""
    entries = document["datasets"]
    tables = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    for entry in tables:
        if entry.get("name") == name:
            return entry
    names = [str(entry.get("name")) for entry in tables]
    found = "a name that no data set of the sweep has"
    hint = nearest(name, names) or f'Add {{"name": "{name}"}} to datasets'
    raise SpecError(f"data[{name!r}]", found, f"one of {', '.join(names)}", hint)


def _divide_by(document: dict[str, Any], entry: dict[str, Any], column: str) -> None:
    """Let the splits of a data set use a column that was given for that."""
    splits = entry.get("splits") or document.get("splits") or {}
    if not isinstance(splits, dict) or column in splits:
        return
    kind = splits.get("kind", "holdout")
    if kind not in KINDS[column]:
        place = f"data[{entry['name']!r}]"
        found = f'{column}, but splits.kind = "{kind}"'
        expected = f"splits that use it: {' or '.join(KINDS[column])}"
        raise SpecError(place, found, expected, f"Omit {column}, or set splits.kind")
    entry["splits"] = {**splits, column: column}


def _missing() -> NoReturn:
    hint = 'Give data={"mine": (X, y)}, or an entry such as {"name": "wdbc"}'
    raise SpecError("datasets", "none", "at least one data set", hint)
