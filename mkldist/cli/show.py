"""``mkldist show``: a method, kernel function, family, data set or sweep in full."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.completion import complete_shown
from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.options import data_dir_option
from mkldist.from_python.listings import KINDS, Known

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from mkldist.data.dataset import Dataset
    from mkldist.solvers.base import Method
    from mkldist.solvers.solver_params import SolverParams


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
    from mkldist.core.arrays import LEARNT
    from mkldist.solvers.base import losses_by_target

    parts = []
    for target, losses in losses_by_target(params).items():
        parts.append(LEARNT[target] + (f" ({', '.join(losses)})" if losses else ""))
    return "; ".join(parts)


def _default(field: FieldInfo) -> str:
    """Return a default as a sweep file spells it."""
    from mkldist.spec.toml_texts import spelled

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
def command(name: str, kind: str | None, data_dirs: tuple[Path, ...], as_json: bool) -> None:
    """Describe what is called NAME: a method, kernel function, family, data set or sweep.

    Of a sweep the file is printed, so that 'mkldist show quickstart --kind sweep > mine.toml'
    makes a copy to change.
    """
    kinds = KINDS if kind is None else (kind,)
    if as_json:
        print_json({"found": described(name, kinds, data_dirs)})
        return
    describe(name, kinds, data_dirs)


def described(
    name: str, kinds: Sequence[str], data_dirs: Sequence[Path] = ()
) -> list[dict[str, str]]:
    """Return kind, name, a line and the whole text of what has a name, for ``--json``."""
    return [
        {"kind": one.kind, "name": one.name, "line": one.line,
         "text": click.unstyle("\n".join(_lines(one, data_dirs)))}
        for one in _called(name, kinds, data_dirs)
    ]  # fmt: skip


def describe(name: str, kinds: Sequence[str], data_dirs: Sequence[Path] = ()) -> None:
    """Print what has a name, of each of the kinds that know it.

    Raises
    ------
    mkldist.errors.InputError
        If none does.
    """
    found = _called(name, kinds, data_dirs)
    for number, one in enumerate(found):
        if len(found) > 1:
            click.echo(click.style(f"{'' if not number else chr(10)}# {one.kind}", bold=True))
        for line in _lines(one, data_dirs):
            click.echo(line)


def _called(name: str, kinds: Sequence[str], data_dirs: Sequence[Path]) -> list[Known]:
    """Return what has a name; raise an InputError if nothing has it."""
    from mkldist.errors import InputError, nearest
    from mkldist.from_python.listings import known

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


def _lines(one: Known, data_dirs: Sequence[Path]) -> Iterator[str]:
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
    from mkldist.kernel_functions.definition import RELATIVE, Takes
    from mkldist.kernel_functions.registry import FUNCTIONS
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
    from mkldist.spec.toml_texts import spelled

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
    yield f"  labels    {_labels(data)}"
    names = ", ".join(data.feature_names[:FEATURES_SHOWN])
    more = data.n_features - FEATURES_SHOWN
    text = f"{data.n_features}: {names}{f', and {more} more' if more > 0 else ''}"
    yield from textwrap.wrap(text, WIDTH, initial_indent="  features  ", subsequent_indent=" " * 12)


def _labels(data: Dataset) -> str:
    """Return the classes with their counts, or the range of real values."""
    import numpy as np

    if data.classes is None:
        return f"real values from {data.y.min():g} to {data.y.max():g}"
    counts = np.bincount(data.class_numbers, minlength=len(data.classes))
    words = ", ".join(f"{n} {name}" for name, n in zip(data.classes, counts, strict=True))
    positive = "" if data.multiclass else f"; {data.classes[-1]} is +1"
    return f"{len(data.classes)} classes: {words}{positive}"
