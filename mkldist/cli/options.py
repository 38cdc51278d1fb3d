"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from mkldist.errors import SpecError

Command = TypeVar("Command", bound=Callable[..., Any])


def sweep_options(function: Command) -> Command:
    """Add the sweep file, its overrides and the data folders."""
    for decorate in (
        click.option(
            "--data-dir",
            "data_dirs",
            multiple=True,
            type=click.Path(path_type=Path),
            envvar="MKLDIST_DATA",
            help="Folder searched for data sets by name; may be repeated. [env: MKLDIST_DATA]",
        ),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            help="Override a value of the file, e.g. methods.level.C=[1,10]; may be repeated.",
        ),
        click.argument("file", type=click.Path(path_type=Path), callback=_sweep_file),
    ):
        function = decorate(function)
    return function


def _sweep_file(context: click.Context, parameter: click.Parameter, given: Path) -> Path:
    """Return the file that a path, or the name of a sweep that comes with mkldist, stands for."""
    from mkldist.spec.shipped import sweep_file

    return sweep_file(given)


def cluster_options(function: Command) -> Command:
    """Add where to run."""
    for decorate in (
        click.option("--memory", metavar="BYTES", help="Memory a worker may take, e.g. 2GiB."),
        click.option(
            "--cluster",
            "cluster_file",
            type=click.Path(path_type=Path),
            help="YAML description of a cluster to start.",
        ),
        click.option("--scheduler", metavar="ADDRESS", help="Join a Dask scheduler: tcp://..."),
        click.option(
            "--threads-per-worker",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help="Tasks that a worker does at the same time.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            help="Worker processes.  [default: one per processor]",
        ),
        click.option(
            "--output",
            type=click.Path(path_type=Path),
            help="Folder of the results.  [default: results/NAME]",
        ),
    ):
        function = decorate(function)
    return function


def existing_folders(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the data folders.

    Raises
    ------
    mkldist.errors.SpecError
        For one that is not a folder.
    """
    for folder in folders:
        if not folder.is_dir():
            found = "a file" if folder.exists() else "nothing there"
            raise SpecError(f"--data-dir {folder}", found, "a folder of data sets")
    return folders
