"""Tables of ``sweeps/README.md``, written from the code.

Run ``python -m tests.manual`` after a change of a key, its type, default or description, of a
variable of the results, of the description of a sweep file, or of a method's name or title.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Discriminator
from pydantic.fields import FieldInfo

from mkldist.core.counters import Counters
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.results import schema
from mkldist.solvers.solver_params import SolverParams
from mkldist.spec.banks import BankSpec, KernelSpec, RandomSubsets, Range
from mkldist.spec.datasets import DatasetSpec, GraphTable, PreprocessingSpec, SplitsSpec, ViewSpec
from mkldist.spec.load import load_sweep, shipped_sweeps
from mkldist.spec.model import (
    Distribution,
    MethodSpec,
    OutputsSpec,
    SearchSpec,
    SelectionSpec,
    SweepSpec,
)
from mkldist.spec.toml_texts import spelled

MANUAL = Path(__file__).parents[1] / "sweeps" / "README.md"
TABLE = re.compile(r"(<!-- table (?P<name>[\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)

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
    "coordinates": (*schema.COORDINATES, *schema.SEARCH_DIMS),
}

_BOUNDS = (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))
_PLAIN: dict[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def generated(text: str) -> str:
    """Return the manual with its tables written anew."""
    return TABLE.sub(
        lambda found: found[1] + "\n".join(table(found["name"])) + f"\n{found[3]}", text
    )


def table(name: str) -> Sequence[str]:
    """Return the lines of a table by the name in its marker."""
    if name == "files":
        rows = ((f"`{file.stem}`", load_sweep(file).description) for file in _sweep_files())
        return _lines(("sweep", "contents"), rows)
    if name == "kernel functions":
        return _lines(("function", "k(x, z)", "parameters", "points"), _kernel_functions())
    if name in KEYS:
        fields = KEYS[name].model_fields.items()
        return _lines(
            ("key", "type", "default", "meaning"),
            (
                (f"`{key}`", type_of(field), default_of(field), sentence(field.description or ""))
                for key, field in fields
            ),
        )
    return _lines(
        ("variable", "dims", "units", "meaning"),
        (
            (
                f"`{v.name}`",
                ", ".join(f"`{dim}`" for dim in v.dims),
                v.units,
                sentence(v.description),
            )
            for v in VARIABLES[name]
        ),
    )


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


def _kernel_functions() -> Iterable[Sequence[str]]:
    for name, function in FUNCTIONS.items():
        keys = ", ".join(f"`{key}`" for key in function.keys)
        points = f"{function.takes.value}. {function.note}".rstrip()
        yield f"`{name}`", f"`{function.formula}`", keys, sentence(points)


def _sweep_files() -> list[Path]:
    files = shipped_sweeps().values()
    return sorted(files, key=lambda file: (file.stem != "quickstart", file.stem))


def _lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    cells = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]


def main() -> None:
    """Write the tables of the manual."""
    MANUAL.write_text(generated(MANUAL.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
