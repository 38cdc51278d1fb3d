"""``mkldist list``: data sets, kernels, methods and sweeps by the names that sweep files use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from mkldist.cli.completion import complete_methods
from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.options import data_dir_option


@click.group("list")
def command() -> None:
    """List data sets, kernels, methods or sweeps, each in a line; see also 'mkldist show NAME'."""


@command.command("datasets")
@click.argument("names", nargs=-1)
@data_dir_option("Folder of data sets; may be repeated.")
@json_option("datasets", "found")
def datasets(names: tuple[str, ...], data_dirs: tuple[Path, ...], as_json: bool) -> None:
    """List data sets: files, those of scikit-learn, synthetic ones; or describe NAMES."""
    from mkldist.data.catalogue import list_datasets

    entries = list_datasets(data_dirs)
    if as_json:
        rows = [
            {"name": one.name, "kind": one.kind, "description": one.description} for one in entries
        ]
        found = _found(names, "dataset", data_dirs=data_dirs)
        print_json({"datasets": _named(rows, names), "found": found})
        return
    if names:
        _describe(names, "dataset", data_dirs=data_dirs)
        return
    _print(("name", "kind", "description"), ((e.name, e.kind, e.description) for e in entries))


@command.command("kernels")
@click.argument("names", nargs=-1)
@json_option("kernels", "families", "found")
def kernels(names: tuple[str, ...], as_json: bool) -> None:
    """List kernel functions and named families, or describe NAMES."""
    from mkldist.from_python.listings import known_of
    from mkldist.kernel_functions.registry import FUNCTIONS

    if names and not as_json:
        _describe(names, "kernel", "family")
        return
    parameters = {name: function.keys for name, function in FUNCTIONS.items()}
    functions = known_of("kernel")
    if as_json:
        rows = [
            {"name": one.name, "formula": one.line, "parameters": parameters.get(one.name)}
            for one in functions
        ]
        families = [{"name": one.name, "kernels": one.line} for one in known_of("family")]
        print_json(
            {
                "kernels": _named(rows, names),
                "families": _named(families, names),
                "found": _found(names, "kernel", "family"),
            }
        )
        return
    _print(
        ("function", "k(x, z)", "parameters"),
        (
            (one.name, one.line, ", ".join(parameters.get(one.name, ["parameters"])))
            for one in functions
        ),
    )
    click.echo()
    _print(("family", "kernels"), ((one.name, one.line) for one in known_of("family")))


@command.command("methods")
@click.argument("names", nargs=-1, shell_complete=complete_methods)
@json_option("methods", "found")
def methods(names: tuple[str, ...], as_json: bool) -> None:
    """List all methods in a line each, or describe NAMES as 'mkldist show' does."""
    from mkldist.from_python.listings import known_of

    if as_json:
        rows = [{"name": one.name, "finds": one.line} for one in known_of("method")]
        print_json({"methods": _named(rows, names), "found": _found(names, "method")})
        return
    if names:
        _describe(names, "method")
        return
    _print(("method", "finds"), ((one.name, one.line) for one in known_of("method")))
    click.echo("\nmkldist show NAME describes one in full")


@command.command("sweeps")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@json_option("sweeps")
def sweeps(folders: tuple[Path, ...], as_json: bool) -> None:
    """List the sweep files in FOLDERS; by default those in sweeps/ and those of mkldist.

    'mkldist sweep NAME' runs a sweep that comes with mkldist, in any folder.
    """
    from mkldist.errors import InputError
    from mkldist.from_python.listings import described
    from mkldist.spec.load import shipped_sweeps

    files: dict[str, Path] = {}
    for folder in folders or (Path("sweeps"),):
        if not folder.is_dir() and folders:
            raise InputError(str(folder), "no such folder", "a folder of sweep files")
        files |= {str(file): file for file in sorted(folder.glob("*.toml"))}
    if not folders:
        there = {file.resolve() for file in files.values()}
        shipped = shipped_sweeps()
        files |= {name: file for name, file in shipped.items() if file.resolve() not in there}
    if as_json:
        print_json(
            {
                "sweeps": [
                    {"name": name, "file": file, "description": described(file)}
                    for name, file in files.items()
                ]
            }
        )
        return
    _print(("sweep", "description"), ((name, described(files[name])) for name in files))
    if not folders and shipped:
        click.echo("\nmkldist sweep NAME runs one. To change it: mkldist show NAME > mine.toml")


def _describe(names: Sequence[str], *kinds: str, data_dirs: Sequence[Path] = ()) -> None:
    """Print what 'mkldist show' prints of each name."""
    from mkldist.cli.show import describe

    for name in names:
        describe(name, kinds, data_dirs)
        click.echo()


def _found(
    names: Sequence[str], *kinds: str, data_dirs: Sequence[Path] = ()
) -> list[dict[str, str]]:
    """Return what 'mkldist show --json' has of each name, empty without names."""
    from mkldist.cli.show import described

    return [one for name in names for one in described(name, kinds, data_dirs)]


def _named(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of some names, in their order; all rows without names."""
    if not names:
        return [*rows]
    return [row for name in names for row in rows if row["name"] == name]


def _print(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table without shortening a cell, so that it can be searched and piped."""
    table = [tuple(headings), *(tuple(row) for row in rows)]
    widths = [max(len(row[j]) for row in table) for j in range(len(headings))]
    for i, row in enumerate(table):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(click.style("  ".join(cells).rstrip(), bold=i == 0))
