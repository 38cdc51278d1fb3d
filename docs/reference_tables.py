"""Tables of the reference, written from the code while Sphinx reads a page.

A page has a line ``<!-- table NAME -->`` where a table is to stand; :func:`table` knows the names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel, Discriminator
from pydantic.fields import FieldInfo

from mkldist import errors
from mkldist.cli import COMMANDS, command
from mkldist.core.arrays import LEARNT
from mkldist.kernel_functions import FUNCTIONS
from mkldist.methods.registry import METHODS
from mkldist.results import schema
from mkldist.solvers.base import Counters, losses_by_target
from mkldist.solvers.solver_params import SolverParams
from mkldist.spec.banks import BankSpec, KernelSpec, RandomSubsets, Range
from mkldist.spec.datasets import (
    DatasetSpec,
    GraphTable,
    PreprocessingSpec,
    SplitsSpec,
    TableFormat,
    ViewSpec,
)
from mkldist.spec.kinds import spelled
from mkldist.spec.load import load_sweep, shipped_sweeps
from mkldist.spec.model import (
    Distribution,
    MethodSpec,
    OutputsSpec,
    SearchSpec,
    SelectionSpec,
    SweepSpec,
)

TABLE = re.compile(r"^<!-- table (?P<name>[\w -]+) -->$", re.MULTILINE)

KEYS: dict[str, type[BaseModel]] = {
    "sweep": SweepSpec,
    "dataset": DatasetSpec,
    "view": ViewSpec,
    "preprocessing": PreprocessingSpec,
    "splits": SplitsSpec,
    "graph": GraphTable,
    "selection": SelectionSpec,
    "search": SearchSpec,
    "distribution": Distribution,
    "bank": BankSpec,
    "kernel": KernelSpec,
    "series": Range,
    "subsets": RandomSubsets,
    "method": MethodSpec,
    "every method": SolverParams,
    "outputs": OutputsSpec,
}
_SECONDS = {v.name for v in schema.SCALARS if v.name.endswith("seconds")}
_WORK = {*Counters().as_dict(), *_SECONDS}
VARIABLES: dict[str, tuple[schema.Variable, ...]] = {
    "solutions": (
        schema.STATE,
        *schema.TEXTS,
        *(variable for variable in schema.SCALARS if variable.name not in _WORK),
        *schema.VECTORS,
        schema.CLASS_BIAS,
        *schema.CLASS_VALUES,
        schema.RUN_ID,
    ),
    "scores": (
        *(
            variable
            for task in ("classification", "regression")
            for of_part in (
                schema.SCORES,
                schema.TRAINING_SCORES,
                schema.UNLABELLED_SCORES,
                schema.VALIDATION_SCORES,
            )
            for variable in of_part[task]
        ),
        *schema.TWO_CLASS_SCORES,
        *schema.UNLABELLED_TWO_CLASS_SCORES,
        *schema.PROBABILITY_SCORES,
        *schema.UNLABELLED_PROBABILITY_SCORES,
        *schema.CLASS_SCORES,
        *schema.UNLABELLED_CLASS_SCORES,
    ),
    "work": (
        *(variable for variable in schema.SCALARS if variable.name in _WORK),
        schema.VALIDATION_SECONDS,
    ),
    "traces": schema.TRACES,
    "coordinates": (*schema.COORDINATES, schema.OF_TRIALS),
}

_BOUNDS = (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))
_PLAIN: dict[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def with_tables(text: str) -> str:
    """Return a page with the tables that its lines name."""
    return TABLE.sub(lambda found: "\n".join(table(found["name"])), text)


def objects_of(text: str) -> list[str]:
    """Return the objects that a page lists by ``autosummary``, by their names in Python."""
    found, module = [], ""
    for line in text.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            found.append(f"{module}.{line.strip()}")
    return found


def table(name: str) -> Sequence[str]:
    """Return the lines of a table: that of a part of the sweep file, of the results, of a list.

    ``"facts of level"``, ``"parameters of level"`` are of a method; ``"facts of gaussian"`` and
    ``"parameters of gaussian"`` of a kernel function.
    """
    if name in KEYS:
        return _keys(KEYS[name])
    if name in VARIABLES:
        return _variables(VARIABLES[name])
    if name in LISTS:
        headings, rows = LISTS[name]
        return lines_of(headings, rows())
    what, _, of = name.partition(" of ")
    if of in METHODS:
        return _keys(METHODS[of].params, "parameter") if what == "parameters" else _method(of)
    return _parameters(of) if what == "parameters" else _function(of)


def _keys(model: type[BaseModel], word: str = "key") -> list[str]:
    """Return the fields of a model, its own before those of all methods or of all tables."""
    fields = model.model_fields
    shared = [one for one in (SolverParams, TableFormat) if issubclass(model, one)]
    common = {key for one in shared for key in one.model_fields}
    rows = (
        (f"`{key}`", type_of(field), default_of(field), sentence(field.description or ""))
        for key, field in sorted(fields.items(), key=lambda item: item[0] in common)
    )
    return lines_of((word, "type", "default", "meaning"), rows)


def _variables(variables: Iterable[schema.Variable]) -> list[str]:
    rows = (
        (f"`{v.name}`", ", ".join(f"`{dim}`" for dim in v.dims), v.units, sentence(v.description))
        for v in variables
    )
    return lines_of(("variable", "dims", "units", "meaning"), rows)


def _method(name: str) -> list[str]:
    """Return what a method says of itself."""
    method = METHODS[name]
    learns = (
        LEARNT[target] + (f" ({', '.join(losses)})" if losses else "")
        for target, losses in losses_by_target(method.params).items()
    )
    takes = {
        "a graph, which it needs": method.needs_laplacian,
        "weights of points": method.weighs_points,
        "weights that classes share": method.joint_classes,
        "groups of kernels": method.takes_groups,
        "factors of many points": method.exact_bound is not None,
        "a path of C": method.has_path,
    }
    facts = {
        "Problem": method.problem,
        "Loss": method.loss,
        "Regulariser": f"`{method.regularizer}`",
        "Learns": "; ".join(learns),
        "Takes": ", ".join(words for words, is_taken in takes.items() if is_taken),
        "Dimensions of the results": ", ".join(f"`{name}`" for name in method.hyperparameters),
        "Source": method.reference,
    }
    return lines_of(("", ""), ((what, words) for what, words in facts.items() if words.strip("`")))


def _function(name: str) -> list[str]:
    """Return what a kernel function says of itself."""
    function = FUNCTIONS[name]
    facts = {
        "In a sweep file": f'`function = "{name}"`',
        "In Python": f"{{py:class}}`mkldist.kernels.{function.class_name}`",
        "In letters": f"`k(x, z) = {function.formula}`",
        "Points": sentence(f"{function.takes.value}. {function.note}".rstrip()),
        "k(x, x)": "1 at every point" if function.diagonal is None else "differs between points",
    }
    return lines_of(("", ""), facts.items())


def _parameters(name: str) -> list[str]:
    """Return the keys of a kernel function, as those of a kernel in the sweep file."""
    fields = KernelSpec.model_fields
    words = {parameter.key: parameter for parameter in FUNCTIONS[name].parameters}
    rows = (
        (
            f"`{key}`",
            type_of(fields[key]),
            words[key].words if key in words else sentence(fields[key].description or ""),
        )
        for key in (*FUNCTIONS[name].keys, "features")
    )
    return lines_of(("key", "type", "meaning"), rows)


def type_of(field: FieldInfo) -> str:
    """Return the type of a key in words, with its bounds."""
    return _type(field.annotation, field.metadata)


def default_of(field: FieldInfo) -> str:
    """Return the default of a key as TOML spells it; empty if there is no value to spell."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, BaseModel) or value in ((), {}, "", float("inf")):
        return ""
    return f"`{spelled(value)}`"


def sentence(words: str) -> str:
    """Return a description as a sentence; a symbol in front, one letter, stays as it is."""
    first = words[:1] if words[1:2] == " " else words[:1].upper()
    return first + words[1:] + "." * (not words.endswith("."))


def _type(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    limits = [inner for item in metadata for inner in getattr(item, "metadata", [item])]
    chosen = [item for item in limits if isinstance(item, Discriminator)]
    if chosen:
        return f"{chosen[0].custom_error_message}"
    arguments = get_args(annotation)
    match get_origin(annotation):
        case origin if origin is Annotated:
            return _type(arguments[0], [*arguments[1:], *limits])
        case origin if origin in (Union, UnionType):
            members = [member for member in arguments if member is not type(None)]
            return " or ".join(_type(member, limits) for member in members)
        case origin if origin is Literal:
            return ", ".join(f"`{spelled(value)}`" for value in arguments)
        case origin if origin in (tuple, list):
            return f"list of {_plural(_type(arguments[0]))}"
        case origin if origin is dict:
            return "table"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    if any("pattern" in str(item) for item in limits):
        return "name"
    bounds = [
        f"{sign} {getattr(item, name):g}"
        for name, sign in _BOUNDS
        for item in limits
        if getattr(item, name, None) is not None
    ]
    return f"{_PLAIN.get(annotation, 'text')} {' and '.join(bounds)}".rstrip()


def _plural(words: str) -> str:
    return words if words.startswith("`") else re.sub(r"^(table|text|name|number)", r"\1s", words)


def lines_of(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    cells = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]


def _sweeps() -> Iterable[Sequence[str]]:
    files = shipped_sweeps().values()
    for file in sorted(files, key=lambda file: (file.stem != "quickstart", file.stem)):
        yield f"`{file.stem}`", load_sweep(file).description


def _kernel_functions() -> Iterable[Sequence[str]]:
    for name, function in FUNCTIONS.items():
        points = f"{function.takes.value}. {function.note}".rstrip()
        keys = ", ".join(f"`{key}`" for key in function.keys)
        yield f"[`{name}`](kernels/{name}.md)", f"`{function.formula}`", keys, sentence(points)


def _methods() -> Iterable[Sequence[str]]:
    for name, method in METHODS.items():
        yield f"[`{name}`](methods/{name}.md)", method.problem, method.loss, method.reference


def _commands() -> Iterable[Sequence[str]]:
    for name in COMMANDS:
        found = command.get_command(click.Context(command), name)
        words = "" if found is None else found.get_short_help_str(limit=200)
        yield f"`mkldist {name}`", sentence(words)


def error_classes() -> list[type[Exception]]:
    """Return the classes of errors and warnings, in the order of their file."""
    found = (one for one in vars(errors).values() if isinstance(one, type))
    return [one for one in found if issubclass(one, Exception)]


def _errors() -> Iterable[Sequence[str]]:
    for one in error_classes():
        if issubclass(one, errors.MkldistError):
            words = (one.__doc__ or "").split("\n")[0]
            kinds = ", ".join(f"`{base.__name__}`" for base in one.__bases__)
            name = f"{{py:class}}`~mkldist.errors.{one.__name__}`"
            yield name, kinds, f"`{one.kind}`", str(one.exit_code), words


LISTS: dict[str, tuple[Sequence[str], Callable[[], Iterable[Sequence[str]]]]] = {
    "sweeps": (("sweep", "contents"), _sweeps),
    "kernel functions": (("function", "k(x, z)", "parameters", "points"), _kernel_functions),
    "methods": (("method", "problem", "loss", "source"), _methods),
    "commands": (("command", "does"), _commands),
    "errors": (("class", "is a", "message begins", "exit code", "when"), _errors),
}
