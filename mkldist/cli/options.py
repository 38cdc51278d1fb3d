"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from mkldist.cli.completion import complete_sweeps

if TYPE_CHECKING:
    from mkldist.spec.model import SweepSpec

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class SweepInputs:
    """The sweep file of a command, and the options that change it.

    Parameters
    ----------
    file : Path
        The sweep file.
    overrides : tuple of str
        Values of ``--set``.
    memory : str or None
        Value of ``--memory``.
    data_dirs : tuple of Path
        Folders in which data sets are looked up by name.
    results : Path or None
        The folder of results, if the command was given that in place of the file.
    allow_code : bool
        True with ``--allow-code``.
    """

    file: Path
    overrides: tuple[str, ...]
    memory: str | None
    data_dirs: tuple[Path, ...]
    results: Path | None = None
    allow_code: bool = False

    def load(self) -> SweepSpec:
        """Read the file and apply the options; say whose code is about to run."""
        from mkldist.spec.load import load_sweep

        spec = load_sweep(self.file, self.overrides, self.memory)
        if self.allow_code:
            from mkldist.planning.spec_checks import code_lines

            for line in code_lines(spec):
                click.echo(line, err=True)
        return spec

    @property
    def of_file(self) -> SweepSpec | None:
        """The file without ``--set``; None without such options, or if it is wrong without."""
        from mkldist.errors import SpecError
        from mkldist.spec.load import load_sweep

        with suppress(SpecError):
            return load_sweep(self.file) if self.overrides else None
        return None

    def naming(self) -> AbstractContextManager[None]:
        """Add the file or the option to errors raised in this context; see ``spec.load.naming``."""
        from mkldist.spec.load import naming

        return naming(self.file, self.overrides, self.memory)


def sweep_options(function: Command) -> Command:
    """Add the sweep file, its overrides and the data folders; pass them on as ``sweep``."""

    @wraps(function)
    def with_sweep(
        *args: Any,
        file: Path,
        overrides: tuple[str, ...],
        memory: str | None,
        data_dirs: tuple[Path, ...],
        allow_code: bool,
        **others: Any,
    ) -> Any:
        from mkldist.run.paths import sweep_file_of

        made_from = sweep_file_of(file)
        results = file if file.is_dir() and made_from != file else None
        given = SweepInputs(made_from, overrides, memory, data_dirs, results, allow_code)
        return function(*args, sweep=given, **others)

    decorated: Any = with_sweep
    for decorate in (
        click.option(
            "--allow-code",
            is_flag=True,
            help="Run kernel functions that are not mkldist's own, such as mymodule:my_kernel.",
        ),
        click.option(
            "--memory", metavar="BYTES", help="Memory that each worker may use, e.g. 2GiB."
        ),
        data_dir_option(),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            help="Replace a value of the file, e.g. methods.level.C=[1,10]; may be repeated.",
        ),
        click.argument(
            "file",
            type=click.Path(path_type=Path),
            shell_complete=complete_sweeps,
        ),
    ):
        decorated = decorate(decorated)
    return cast("Command", decorated)


def data_dir_option(
    text: str = "Folder in which to look up data sets; may be repeated.",
) -> Callable[[Command], Command]:
    """Return the decorator that adds ``--data-dir``, passed on as ``data_dirs``."""
    return click.option(
        "--data-dir",
        "data_dirs",
        multiple=True,
        type=click.Path(path_type=Path),
        envvar="MKLDIST_DATA",
        help=f"{text} [env: MKLDIST_DATA]",
    )


def encryption_options(function: Command) -> Command:
    """Add ``--tls`` and ``--allow-unencrypted``, passed on under these names."""
    decorated: Any = function
    for decorate in (
        click.option(
            "--allow-unencrypted",
            is_flag=True,
            help="Let other machines be reached without encryption: only where all are trusted.",
        ),
        click.option(
            "--tls",
            metavar="FOLDER",
            type=click.Path(path_type=Path),
            envvar="MKLDIST_TLS",
            help="Folder of certificates for the scheduler and its workers.  [env: MKLDIST_TLS]",
        ),
    ):
        decorated = decorate(decorated)
    return cast("Command", decorated)


def threads_option(text: str, **more: Any) -> Callable[[Command], Command]:
    """Return the decorator that adds ``--threads-per-worker``, for short ``--threads``.

    It is passed on as ``threads_per_worker``.
    """
    names = ("--threads-per-worker", "--threads", "threads_per_worker")
    return click.option(*names, type=click.IntRange(min=1), help=text, **more)


WORKERS = (
    click.option(
        "--dashboard-port",
        type=click.IntRange(0, 65535),
        help="Port of Dask's dashboard on this machine.  [default: one that is free]",
    ),
    click.option(
        "--cluster",
        "cluster_file",
        type=click.Path(path_type=Path),
        help="Start the cluster that this YAML file describes.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Join the Dask scheduler at this address: tcp://...",
    ),
    threads_option("Tasks that each worker runs at the same time.", default=1, show_default=True),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Worker processes.  [default: one per processor]",
    ),
)
"""Options of the commands that do runs, the last of the help first."""


def cluster_options(folder: str = "results/NAME") -> Callable[[Command], Command]:
    """Return the decorator that adds the cluster and the output folder.

    They are passed on as ``connect_options`` and ``output``.

    Parameters
    ----------
    folder : str
        The output folder by default, as the help names it.
    """
    output = click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        help=f"Folder of the results.  [default: {folder}]",
    )
    return lambda function: output(_with_cluster(function))


def _with_cluster(function: Command) -> Command:
    """Add the options of the cluster; pass them on as ``connect_options``."""

    @wraps(function)
    def with_cluster(
        *args: Any,
        scheduler: str | None,
        cluster_file: Path | None,
        workers: int | None,
        threads_per_worker: int,
        dashboard_port: int | None,
        tls: Path | None,
        allow_unencrypted: bool,
        **others: Any,
    ) -> Any:
        from mkldist.run.cluster import ConnectOptions

        options = ConnectOptions(
            scheduler,
            cluster_file,
            workers,
            threads_per_worker,
            dashboard_port,
            tls=tls,
            allow_unencrypted=allow_unencrypted,
        )
        options.check()
        return function(*args, connect_options=options, **others)

    decorated: Any = encryption_options(with_cluster)
    for decorate in WORKERS:
        decorated = decorate(decorated)
    return cast("Command", decorated)
