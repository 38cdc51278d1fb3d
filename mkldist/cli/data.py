"""``mkldist init``, ``list`` and ``show``: a first sweep file, and what there is by name."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from mkldist.cli.options import (
    PATH,
    complete_shown,
    data_dir_option,
    files_of,
    json_option,
    overwrite_option,
    print_json,
)
from mkldist.core.arrays import LEARNT
from mkldist.core.durable import check_free, write_file, writing
from mkldist.core.terminal import command_line
from mkldist.errors import InputError, nearest
from mkldist.from_python.listings import KINDS, Known, described, known, known_of

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from mkldist.data.dataset import Dataset
    from mkldist.solvers.base import Method
    from mkldist.solvers.solver_params import SolverParams


@click.command("init")
@click.argument("data", type=PATH)
@click.option("--label", metavar="COLUMN", help="Label column.  [default: by its name, else asked]")
@click.option("--to", "file", type=PATH, help="Sweep file to write.  [default: NAME.toml here]")
@click.option(
    "--view",
    "views",
    multiple=True,
    metavar="NAME=FILE",
    help="Table of the same rows to join, e.g. expression=genes.csv; may be repeated.",
)
@click.option("--id", "id", metavar="COLUMN", help="Column that names the rows, and joins tables.")
@click.option("--groups", metavar="COLUMN", help="Column whose rows of equal value stay together.")
@click.option(
    "--header/--no-header",
    default=None,
    help="The first line of a text table names its columns, or not.  [default: by its look]",
)
@overwrite_option
@click.pass_context
def init_command(
    context: click.Context,
    /,
    data: Path,
    label: str | None,
    file: Path | None,
    views: tuple[str, ...],
    overwrite: bool,
    **given: Any,
) -> None:
    """Look at the file DATA, write a commented sweep for it, and print the plan of that sweep.

    Tables of the same rows, such as gene expression beside clinical data, are joined by --view.
    """
    from mkldist.cli.first_sweep import facts_of, first_sweep, sweep_name, told
    from mkldist.cli.schema import FILE, write_schema
    from mkldist.cli.sweeps import plan_command

    target, beside = file or Path(f"{sweep_name(data)}.toml"), files_of(views)
    check_free(target, overwrite=overwrite, inputs=[data, *beside.values()])
    facts = facts_of(data, label, beside, **given)
    text = first_sweep(data, target, facts)
    with writing(target):
        write_file(target, [text.encode()])
    write_schema(target.parent / FILE)
    for line in told(text):
        click.echo(line)
    click.echo(f"wrote {target}, and {FILE} by which editors check it; its plan:\n")
    context.invoke(plan_command, file=target, overrides=(), memory=None, data_dirs=(), workers=None)
    click.echo(f"\n{command_line('sweep', target)} runs it")


@click.group("list")
def list_command() -> None:
    """List data sets, kernels, methods or sweeps, each in a line; see also 'mkldist show NAME'."""


@list_command.command("datasets")
@data_dir_option("Folder of data sets; may be repeated.")
@json_option("datasets")
def datasets(data_dirs: tuple[Path, ...], as_json: bool) -> None:
    """List data sets: files, those of scikit-learn, synthetic ones."""
    from mkldist.data.catalogue import list_datasets

    rows = [
        {"name": one.name, "kind": one.kind, "description": one.description}
        for one in list_datasets(data_dirs)
    ]
    _print_rows("datasets", rows, as_json)


@list_command.command("kernels")
@json_option("kernels", "families")
def kernels(as_json: bool) -> None:
    """List kernel functions and named families."""
    from mkldist.kernel_functions import FUNCTIONS

    parameters = {name: function.keys for name, function in FUNCTIONS.items()}
    functions = known_of("kernel")
    families = [{"name": one.name, "kernels": one.line} for one in known_of("family")]
    if as_json:
        rows = [
            {"name": one.name, "formula": one.line, "parameters": parameters.get(one.name)}
            for one in functions
        ]
        print_json({"kernels": rows, "families": families})
        return
    _print_table(
        ("function", "k(x, z)", "parameters"),
        (
            (one.name, one.line, ", ".join(parameters.get(one.name, ["parameters"])))
            for one in functions
        ),
    )
    click.echo()
    _print_table(("family", "kernels"), (tuple(one.values()) for one in families))


@list_command.command("methods")
@json_option("methods")
def methods(as_json: bool) -> None:
    """List all methods in a line each; 'mkldist show NAME' describes one in full."""
    rows = [{"name": one.name, "finds": one.line} for one in known_of("method")]
    _print_rows("methods", rows, as_json)
    if not as_json:
        click.echo("\nmkldist show NAME describes one in full")


@list_command.command("sweeps")
@click.argument("folders", nargs=-1, type=PATH)
@json_option("sweeps")
def sweeps(folders: tuple[Path, ...], as_json: bool) -> None:
    """List the sweep files in FOLDERS; by default those in sweeps/ and those of mkldist.

    'mkldist sweep NAME' runs a sweep that comes with mkldist, in any folder.
    """
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
    rows = [{"name": name, "file": file, "description": described(file)}
            for name, file in files.items()]  # fmt: skip
    if as_json:
        print_json({"sweeps": rows})
        return
    _print_table(("sweep", "description"), ((str(r["name"]), str(r["description"])) for r in rows))
    if not folders and shipped:
        click.echo("\nmkldist sweep NAME runs one. To change it: mkldist show NAME > mine.toml")


def _print_rows(noun: str, rows: Sequence[dict[str, str]], as_json: bool) -> None:
    """Print rows of the same keys as a table or as JSON."""
    if as_json:
        print_json({noun: rows})
    else:
        _print_table(tuple(rows[0]), (tuple(row.values()) for row in rows))


def _print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table without shortening a cell, so that it can be searched and piped."""
    table = [tuple(headings), *(tuple(row) for row in rows)]
    widths = [max(len(row[j]) for row in table) for j in range(len(headings))]
    for i, row in enumerate(table):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(click.style("  ".join(cells).rstrip(), bold=i == 0))


WIDTH = 80
_INDENT = 15
_COLUMN = 30
_GLUE = "\0"  # stands for a blank at which no line may break


def method_card(method: Method) -> Iterator[str]:
    """Yield the lines that describe a method, on one screen of 80 columns."""
    from mkldist.solvers.solver_params import SolverParams

    yield from _entry("problem", method.problem)
    yield from _entry("loss", method.loss)
    yield from _entry("regularizer", method.regularizer)
    yield from _entry("labels", _learnt_labels(method.params))
    if method.needs_laplacian:
        yield from _entry("graph", "needs its Laplacian")
    if method.joint_classes:
        yield from _entry("classes", 'may share weights: kernel_weights = "shared"')
    if method.weighs_points:
        yield from _entry("points", "may have weights, which multiply their losses")
    yield from _entry("reference", method.reference)
    fields = method.params.model_fields
    common = [name for name in SolverParams.model_fields if name in fields]
    own = [name for name in fields if name not in common]
    first = [name for name in method.hyperparameters if name in fields]
    if first:
        yield from _entry("parameters", f"* is a dimension of the results: {', '.join(first)}")
    for name in (*first, *(name for name in own if name not in first)):
        yield from _parameter(name, fields[name], marked=name in first)
    for name in common:
        yield from _parameter(name, fields[name], marked=False)


def _parameter(name: str, field: FieldInfo, *, marked: bool) -> Iterator[str]:
    from mkldist.solvers.base import choices

    head = f"  {'*' if marked else ' '} {name} = {_default(field)}"
    text, words = field.description or "", choices(field.annotation)
    if not all(word in text for word in words):
        text += f" ({', '.join(words)})"
    bounds = _bounds(field)
    if bounds:
        text += f" ({bounds})"
    lines = [line.replace(_GLUE, " ") for line in textwrap.wrap(text, WIDTH - _COLUMN)]
    if len(head) < _COLUMN:
        yield f"{head:{_COLUMN}}{lines.pop(0) if lines else ''}".rstrip()
    else:
        yield head
    for line in lines:
        yield " " * _COLUMN + line


def _bounds(field: FieldInfo) -> str:
    """Return the bounds of a number."""
    signs = (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
    given = {
        name: getattr(limit, name)
        for limit in field.metadata
        for name, _ in signs
        if hasattr(limit, name)
    }
    return ", ".join(f"{sign}{_GLUE}{given[name]:g}" for name, sign in signs if name in given)


def _entry(name: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"  {name:{_INDENT - 2}}",
        subsequent_indent=" " * _INDENT,
        break_on_hyphens=False,
    )


def _learnt_labels(params: type[SolverParams]) -> str:
    """Return the kinds of labels that a method learns, with the losses for each."""
    from mkldist.solvers.base import losses_by_target

    parts = []
    for target, losses in losses_by_target(params).items():
        parts.append(LEARNT[target] + (f" ({', '.join(losses)})" if losses else ""))
    return "; ".join(parts)


def _default(field: FieldInfo) -> str:
    """Return a default as a sweep file spells it."""
    from mkldist.spec.kinds import spelled

    return "..." if field.is_required() else spelled(field.get_default(call_default_factory=True))


FEATURES_SHOWN = 12
_WORDS = {"kernel": "kernel function", "dataset": "data set"} | {
    kind: kind for kind in ("method", "family", "sweep")
}


@click.command("show")
@click.argument("name", shell_complete=complete_shown)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    help="Show what has this name among these alone.  [default: among all]",
)
@data_dir_option()
@json_option("found")
def show_command(name: str, kind: str | None, data_dirs: tuple[Path, ...], as_json: bool) -> None:
    """Describe what is called NAME: a method, kernel function, family, data set or sweep.

    Of a sweep the file is printed, so that 'mkldist show quickstart --kind sweep > mine.toml'
    makes a copy to change.
    """
    kinds = KINDS if kind is None else (kind,)
    found = _called(name, kinds, data_dirs)
    if as_json:
        rows = [
            {"kind": one.kind, "name": one.name, "line": one.line,
             "text": click.unstyle("\n".join(_known_lines(one, data_dirs)))}
            for one in found
        ]  # fmt: skip
        print_json({"found": rows})
        return
    for number, one in enumerate(found):
        if len(found) > 1:
            click.echo(click.style(f"{'' if not number else chr(10)}# {one.kind}", bold=True))
        for line in _known_lines(one, data_dirs):
            click.echo(line)


def _called(name: str, kinds: Sequence[str], data_dirs: Sequence[Path]) -> list[Known]:
    """Return what has a name; raise an InputError if nothing has it."""
    everything = [one for one in known(data_dirs) if one.kind in kinds]
    found = [one for one in everything if one.name == name]
    if not found:
        raise InputError(
            name,
            "nothing of this name",
            f"a {' or '.join(_WORDS[kind] for kind in kinds)}",
            nearest(name, [one.name for one in everything])
            or "'mkldist list' with methods, kernels, datasets or sweeps prints all names",
        )
    return found


def _known_lines(one: Known, data_dirs: Sequence[Path]) -> Iterator[str]:
    match one.kind:
        case "method":
            yield from method_lines(one.name)
        case "kernel":
            yield from _function_lines(one.name)
        case "family":
            yield from _family_lines(one)
        case "dataset":
            yield from _dataset_lines(one, data_dirs)
        case "sweep":
            from mkldist.spec.load import shipped_sweeps

            yield shipped_sweeps()[one.name].read_text(encoding="utf-8").rstrip()


def method_lines(name: str) -> Iterator[str]:
    """Yield the description of a method."""
    from mkldist.methods.registry import METHODS

    yield click.style(name, bold=True) + f"  {METHODS[name].title}"
    yield from method_card(METHODS[name])


def _function_lines(name: str) -> Iterator[str]:
    """Yield formula, points, parameters and an example of a kernel function."""
    from mkldist.kernel_functions import FUNCTIONS
    from mkldist.kernel_functions.definition import RELATIVE, Takes
    from mkldist.spec.banks import KernelSpec

    if name not in FUNCTIONS:
        yield from _installed_lines(name)
        return
    function = FUNCTIONS[name]
    yield click.style(name, bold=True) + f"  k(x, z) = {function.formula}"
    yield from _paragraph("x, z", f"{function.takes.value}. {function.note}".rstrip())
    for parameter in function.parameters:
        yield from _paragraph(parameter.key, parameter.words.replace("`", ""))
    for key in ([RELATIVE] if function.norm else []) + ["features"]:
        text = KernelSpec.model_fields[key].description or ""
        yield from _paragraph(key, text.replace("`", ""))
    examples = "".join(f"{one.key} = {one.example}\n" for one in function.parameters)
    yield (
        f'\n[[banks]]\nname = "mine"\n[[banks.kernels]]\nfunction = "{name}"\n'
        f'{examples}features = ["all", "each"]'
    )
    if function.takes is Takes.TEXTS:
        yield '# of a data set with texts = ["column"]'
        yield "\nIn Python: mkldist.kernels.spectrum_gram(texts, length=3)"


def _installed_lines(name: str) -> Iterator[str]:
    """Yield where the function of an entry point comes from, which is not imported."""
    from mkldist.kernel_functions.custom import entry_points

    entry = entry_points()[name]
    source = f", of {entry.dist.name} {entry.dist.version}" if entry.dist else ""
    yield click.style(name, bold=True) + f"  {entry.value}{source}"
    yield "  code of an installed package: sweeps run it with --allow-code"
    yield f'\n[[banks]]\nname = "mine"\n[[banks.kernels]]\nfunction = "{name}"'


def _paragraph(key: str, text: str) -> list[str]:
    """Return wrapped lines of a text behind a key."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {key:9} ", subsequent_indent=" " * 12)


def _family_lines(one: Known) -> Iterator[str]:
    """Yield the kernels of a family, as entries of a sweep file."""
    from mkldist.kernels.families import MOST_ADDED, NAMED_FAMILIES
    from mkldist.spec.banks import DEFAULT
    from mkldist.spec.kinds import spelled

    yield click.style(one.name, bold=True) + f"  {one.line}"
    if one.name not in NAMED_FAMILIES:
        return
    yield f'\n[[banks]]\nfamily = "{one.name}"\n'
    data = f" for up to {MOST_ADDED} features and no views" if one.name == DEFAULT else ""
    yield f'# the same{data}, written out:\n[[banks]]\nname = "mine"'
    for entry in NAMED_FAMILIES[one.name]():
        yield "[[banks.kernels]]"
        for key, value in entry.model_dump(exclude_defaults=True).items():
            yield f"{key} = {spelled(value, None)}"


def _dataset_lines(one: Known, data_dirs: Sequence[Path]) -> Iterator[str]:
    """Yield size, classes and features of a data set."""
    from mkldist.data.catalogue import load_dataset
    from mkldist.spec.datasets import DatasetSpec

    data = load_dataset(DatasetSpec(name=one.name), data_dirs, Path(), seed=0)
    yield click.style(one.name, bold=True) + f"  {one.line}"
    yield f"  from      {data.origin}"
    yield f"  rows      {data.n_points}"
    yield f"  labels    {_label_line(data)}"
    names = ", ".join(data.feature_names[:FEATURES_SHOWN])
    more = data.n_features - FEATURES_SHOWN
    text = f"{data.n_features}: {names}{f', and {more} more' if more > 0 else ''}"
    yield from textwrap.wrap(text, WIDTH, initial_indent="  features  ", subsequent_indent=" " * 12)


def _label_line(data: Dataset) -> str:
    """Return the classes with their counts, or the range of real values."""
    if data.classes is None:
        return f"real values from {np.nanmin(data.y):g} to {np.nanmax(data.y):g}"
    pairs = zip(data.classes, data.class_counts, strict=True)
    words = ", ".join(f"{n} {name}" for name, n in pairs)
    positive = "" if data.multiclass else f"; {data.classes[-1]} is +1"
    return f"{len(data.classes)} classes: {words}{positive}"
