"""What several commands share: options, names that the shell completes, and JSON documents."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click
from click import Context, Parameter
from click.shell_completion import CompletionItem

from mkldist.errors import InputError, SpecError

if TYPE_CHECKING:
    from mkldist.spec.model import SweepSpec

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
PATH = click.Path(path_type=Path)


def together(*options: Decorator) -> Decorator:
    """Return one decorator that adds some options in the order of the help."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def finite(context: Context, option: Parameter, value: float | None) -> float | None:
    """Refuse NaN and infinite numbers, which the ranges of click let through."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.", context, option)
    return value


def complete_sweeps(context: Context, parameter: Parameter, typed: str) -> list[CompletionItem]:
    """Return sweeps by name and the sweep files here; paths are left to the shell."""
    from mkldist.spec.load import shipped_sweeps

    return _or_paths(typed, [*shipped_sweeps(), *(str(file) for file in Path().glob("*.toml"))])


def complete_results(context: Context, parameter: Parameter, typed: str) -> list[CompletionItem]:
    """Return the sweeps that have results here; paths are left to the shell."""
    return _or_paths(typed, [path.parent.name for path in Path("results").glob("*/sweep.json")])


def complete_compared(context: Context, parameter: Parameter, typed: str) -> list[CompletionItem]:
    """Return the sweeps that have results here and the names of methods."""
    if not context.params.get(str(parameter.name)):
        return complete_results(context, parameter, typed)
    from mkldist.methods.registry import METHODS

    known = [path.parent.name for path in Path("results").glob("*/sweep.json")]
    return _or_paths(typed, [*known, *METHODS])


def complete_methods(context: Context, parameter: Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of methods."""
    from mkldist.methods.registry import METHODS

    return _beginning(typed, METHODS)


def complete_shown(context: Context, parameter: Parameter, typed: str) -> list[CompletionItem]:
    """Return the names that ``mkldist show`` knows."""
    from mkldist.from_python.listings import known

    return _beginning(typed, (one.name for one in known()))


def _beginning(typed: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in dict.fromkeys(names) if name.startswith(typed)]


def _or_paths(typed: str, names: Iterable[str]) -> list[CompletionItem]:
    return _beginning(typed, sorted(names)) or [CompletionItem(typed, type="file")]


overwrite_option = click.option("--overwrite", is_flag=True, help="Replace files that are there.")
allow_code_option = click.option(
    "--allow-code",
    is_flag=True,
    help="Run kernel functions that are not mkldist's own, such as mymodule:my_kernel.",
)
part_options = together(
    click.option("--dataset", help="Data set.  [default: all, or the only one]"),
    click.option("--bank", help="Bank of kernels.  [default: any]"),
    click.option(
        "--method",
        help="Method, by its name in the results.  [default: the best]",
        shell_complete=complete_methods,
    ),
)


def data_dir_option(
    text: str = "Folder in which to look up data sets; may be repeated.",
) -> Decorator:
    """Return the decorator that adds ``--data-dir``, passed on as ``data_dirs``."""
    return click.option(
        "--data-dir",
        "data_dirs",
        multiple=True,
        type=PATH,
        envvar="MKLDIST_DATA",
        help=f"{text} [env: MKLDIST_DATA]",
    )


def results_argument(*, several: bool = False) -> Decorator:
    """Return the decorator that adds the folder of results, given by it, its file or its name."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_results(*args: Any, results: Path, **others: Any) -> Any:
            from mkldist.results.folder import results_of

            return function(*args, results=results_of(results, several=several), **others)

        return click.argument("results", type=PATH, shell_complete=complete_results)(with_results)

    return add


def files_of(views: Sequence[str]) -> dict[str, Path]:
    """Return the files of ``NAME=FILE`` by the names of their views."""
    found: dict[str, Path] = {}
    for text in views:
        name, equals, file = text.partition("=")
        if not equals or not name.strip() or not file.strip():
            found_here, expected = "no name and file", "NAME=FILE, such as expression=new.csv"
            raise InputError(f"--view {text}", found_here, expected)
        if name.strip() in found:
            raise InputError(f"--view {text}", f"a second file of {name.strip()!r}", "one")
        found[name.strip()] = Path(file.strip())
    return found


def threads_option(text: str, **more: Any) -> Decorator:
    """Return the decorator that adds ``--threads-per-worker``, for short ``--threads``."""
    names = ("--threads-per-worker", "--threads", "threads_per_worker")
    return click.option(*names, type=click.IntRange(min=1), help=text, **more)


def json_option(*keys: str) -> Decorator:
    """Return the decorator that adds ``--json``, passed on as ``as_json``."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        help=f"Print one JSON document in place of text, with the keys {', '.join(keys)}.",
    )


@dataclass(frozen=True)
class SweepInputs:
    """The sweep file of a command, and the options that change it."""

    file: Path
    overrides: tuple[str, ...]
    memory: str | None
    data_dirs: tuple[Path, ...]
    allow_code: bool
    results: Path | None = None  # the folder, if the command was given that in place of the file

    def load(self) -> SweepSpec:
        """Read the file and apply the options; say whose code is about to run."""
        from mkldist.spec.load import load_sweep

        spec = load_sweep(self.file, self.overrides, self.memory)
        if self.allow_code:
            from mkldist.planning.checks import code_lines

            for line in code_lines(spec):
                click.echo(line, err=True)
        return spec

    @property
    def of_file(self) -> SweepSpec | None:
        """The file without ``--set``; None without such options, or if it is wrong without."""
        from mkldist.spec.load import load_sweep

        with suppress(SpecError):
            return load_sweep(self.file) if self.overrides else None
        return None

    def naming(self) -> AbstractContextManager[None]:
        """Add the file or the option to errors raised in this context; see ``spec.load.naming``."""
        from mkldist.spec.load import naming

        return naming(self.file, self.overrides, self.memory)


def sweep_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the sweep file, its overrides and the data folders; pass them on as ``sweep``."""

    @wraps(function)
    def with_sweep(*args: Any, file: Path, **others: Any) -> Any:
        from mkldist.results.folder import sweep_file_of

        made_from = sweep_file_of(file)
        results = file if file.is_dir() and made_from != file else None
        names = ("overrides", "memory", "data_dirs", "allow_code")
        given = {name: others.pop(name) for name in names}
        sweep = SweepInputs(made_from, results=results, **given)
        return function(*args, sweep=sweep, **others)

    return together(
        click.argument("file", type=PATH, shell_complete=complete_sweeps),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            help="Replace a value of the file, e.g. methods.level.C=[1,10]; may be repeated.",
        ),
        data_dir_option(),
        click.option(
            "--memory", metavar="BYTES", help="Memory that each worker may use, e.g. 2GiB."
        ),
        allow_code_option,
    )(with_sweep)


encryption_options = together(
    click.option(
        "--tls",
        metavar="FOLDER",
        type=PATH,
        envvar="MKLDIST_TLS",
        help="Folder of certificates for the scheduler and its workers.  [env: MKLDIST_TLS]",
    ),
    click.option(
        "--allow-unencrypted",
        is_flag=True,
        help="Let other machines be reached without encryption: only where all are trusted.",
    ),
)


def output_option(folder: str = "results/NAME") -> Decorator:
    """Return the option of the folder of the results."""
    words = f"Folder of the results.  [default: {folder}]"
    return click.option("-o", "--output", type=PATH, help=words)


def cluster_options(folder: str = "results/NAME") -> Decorator:
    """Return the decorator that adds the cluster, as ``connect_options``, and ``output``."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_cluster(*args: Any, **others: Any) -> Any:
            from mkldist.run.cluster import ConnectOptions

            names = (
                "scheduler", "cluster_file", "n_workers", "threads_per_worker", "tls",
                "allow_unencrypted",
            )  # fmt: skip
            options = ConnectOptions(**{name: others.pop(name) for name in names})
            options.check()
            return function(*args, connect_options=options, **others)

        return options(with_cluster)

    options = together(
        output_option(folder),
        click.option(
            "--workers",
            "n_workers",
            type=click.IntRange(min=1),
            help="Worker processes.  [default: one per processor]",
        ),
        threads_option(
            "Tasks that each worker runs at the same time.", default=1, show_default=True
        ),
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Join the Dask scheduler at this address: tcp://...",
        ),
        click.option(
            "--cluster",
            "cluster_file",
            type=PATH,
            help="Start the cluster that this YAML file describes.",
        ),
        encryption_options,
    )
    return add


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document of values as :func:`plain` takes them."""
    click.echo(json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value as JSON knows it: finite numbers, text, truth values, null, lists, objects.

    Data classes and named tuples become objects, arrays lists, paths and members of enumerations
    text; NaN and infinite numbers become null.

    Examples
    --------
    >>> plain({"gap": float("nan"), "splits": (0, 1)})
    {'gap': None, 'splits': [0, 1]}
    """
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, PurePath):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return plain(value.tolist())
    if isinstance(value, list | tuple | Set):
        return [plain(one) for one in value]
    return str(value)


def note_basis(*results: Path) -> None:
    """Note recorded runs that the results of a folder leave out, and files of data that changed."""
    from mkldist.results.folder import rewritten_files
    from mkldist.results.status import others_words
    from mkldist.results.tree import Snapshot

    for path in dict.fromkeys(results):
        if words := others_words(Snapshot.of(path).n_others):
            click.echo(f"{path}: {words}", err=True)
        for words in rewritten_files(path):
            click.echo(f"{path}: {words}; what follows is of the data as they were", err=True)
