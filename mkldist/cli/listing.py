"""``mkldist list``: data sets, kernels, methods and sweeps by the names that sweep files use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mkldist.spec.banks import KernelSpec


@click.group("list")
def command() -> None:
    """List data sets, kernels, methods or sweeps."""


@command.command("datasets")
@click.option(
    "--data-dir",
    "data_dirs",
    multiple=True,
    type=click.Path(path_type=Path),
    envvar="MKLDIST_DATA",
    help="Folder of data sets; may be repeated. [env: MKLDIST_DATA]",
)
def datasets(data_dirs: tuple[Path, ...]) -> None:
    """List data sets by name: files, data sets of scikit-learn, and synthetic ones."""
    from mkldist.data.catalogue import list_datasets

    entries = list_datasets(data_dirs)
    _print(("name", "kind", "description"), ((e.name, e.kind, e.description) for e in entries))


@command.command("kernels")
def kernels() -> None:
    """List kernel functions and named families."""
    from mkldist.kernels.families import NAMED_FAMILIES

    functions = (
        ("gaussian", "exp(-|x-z|^2 / (2 s^2))", "widths"),
        ("polynomial", "(offset + x'z)^k", "degrees, offset"),
        ("linear", "x'z", ""),
        ("laplacian-rbf", "exp(-|x-z|_1 / s)", "widths"),
    )
    _print(("function", "k(x, z)", "parameters"), functions)
    click.echo()
    rows = []
    for name, build in NAMED_FAMILIES.items():
        rows.append((name, _family(build())))
    rows.append(("precomputed", "the Gram matrices of a data set with grams = FILE"))
    _print(("family", "kernels"), rows)


@command.command("methods")
@click.argument("names", nargs=-1)
def methods(names: tuple[str, ...]) -> None:
    """List all methods, or NAMES, with problem, loss, labels, parameters and paper."""
    from mkldist.cli.method_card import method_card
    from mkldist.errors import SpecError, nearest
    from mkldist.methods.registry import METHODS

    for name in names:
        if name not in METHODS:
            wanted = f"one of {', '.join(METHODS)}"
            raise SpecError("list methods", f"found {name!r}", wanted, nearest(name, METHODS))
    for name in names or METHODS:
        click.echo(click.style(name, bold=True) + f"  {METHODS[name].title}")
        for line in method_card(METHODS[name], brief=not names):
            click.echo(line)
        click.echo()


@command.command("sweeps")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
def sweeps(folders: tuple[Path, ...]) -> None:
    """List the sweep files in FOLDERS; by default those in sweeps/ and those of mkldist.

    'mkldist sweep NAME' runs a sweep that comes with mkldist, in any folder.
    """
    from mkldist.errors import SpecError
    from mkldist.spec.shipped import shipped_sweeps

    files: dict[str, Path] = {}
    for folder in folders or (Path("sweeps"),):
        if not folder.is_dir() and folders:
            raise SpecError(str(folder), "no such folder", "a folder of sweep files")
        files |= {str(file): file for file in sorted(folder.glob("*.toml"))}
    if not folders:
        there = {file.resolve() for file in files.values()}
        shipped = shipped_sweeps()
        files |= {name: file for name, file in shipped.items() if file.resolve() not in there}
    _print(("sweep", "description"), ((name, _described(files[name])) for name in files))
    if not folders and shipped:
        folder = next(iter(shipped.values())).parent
        click.echo(f"\nmkldist sweep NAME runs one. To change it, copy NAME.toml from {folder}")


def _described(file: Path) -> str:
    """Return the description in a sweep file, or the reason why it cannot be read."""
    from mkldist.errors import SpecError
    from mkldist.spec.load import load_sweep

    try:
        return load_sweep(file).description
    except SpecError as error:
        return f"cannot be read: {error}"


def _family(entries: Sequence[KernelSpec]) -> str:
    """Return the kernels of a family in words: how many on which features."""
    words: dict[str, list[str]] = {}
    for entry in entries:
        values = entry.widths if entry.function == "gaussian" else entry.degrees
        count = len(values) if isinstance(values, list) else 1
        words.setdefault(_spelled(entry.features), []).append(f"{count} {entry.function}")
    return "; ".join(f"{', '.join(kinds)} on {features}" for features, kinds in words.items())


def _spelled(features: object) -> str:
    """Return the feature sets of a kernel entry in words."""
    sets = features if isinstance(features, list | tuple) else [features]
    words = {"all": "all features", "each": "each feature"}
    return " and ".join(words.get(str(one), str(one)) for one in sets)


def _print(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table without shortening a cell, so that it can be searched and piped."""
    table = [tuple(headings), *(tuple(row) for row in rows)]
    widths = [max(len(row[j]) for row in table) for j in range(len(headings))]
    for i, row in enumerate(table):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(click.style("  ".join(cells).rstrip(), bold=i == 0))
