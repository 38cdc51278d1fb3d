"""``mkldist schema``: a JSON Schema of the sweep file, by which editors complete and check it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from mkldist.cli.options import PATH, overwrite_option
from mkldist.core.durable import check_free, write_file, writing
from mkldist.errors import OutputError, ending_words

FILE = "mkldist.schema.json"
"""Name of the schema beside a sweep file."""
LINE = f"#:schema ./{FILE}"
"""First line of a sweep file; editors that know Taplo read it."""


class _OfToml(GenerateJsonSchema):
    """A schema for TOML, which has no null: keys without a value are left out."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Return the schema of the value."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema with a default that JSON can hold."""
        found = super().default_schema(schema)
        if found.get("default") in (None, float("inf")):
            found.pop("default", None)
        return found


def sweep_schema() -> dict[str, Any]:
    """Return the JSON Schema of a sweep file, with the parameters of every method.

    A schema cannot say all: keys that exclude each other, and names that other tables give, are
    checked by ``mkldist plan`` alone.
    """
    from mkldist.kernel_functions import FUNCTIONS
    from mkldist.kernel_functions.custom import entry_points
    from mkldist.methods.registry import METHODS
    from mkldist.spec.banks import PRECOMPUTED, REFERENCE
    from mkldist.spec.model import Distribution, SweepSpec

    found = SweepSpec.model_json_schema(schema_generator=_OfToml)
    tables = found["$defs"]
    tables["Distribution"] = Distribution.model_json_schema(schema_generator=_OfToml)
    tables["KernelSpec"]["properties"]["function"]["oneOf"] = [
        {"enum": [*FUNCTIONS, PRECOMPUTED, *entry_points()]},
        {"type": "string", "pattern": f"^{REFERENCE.pattern}$"},
    ]
    graph = tables["GraphTable"]["properties"]  # of a view, whose table may have several numbers
    several = graph | {"neighbours": _values("neighbours", dict(graph["neighbours"]))}
    tables["Graphs"] = tables["GraphTable"] | {"properties": several}
    tables["ViewSpec"]["properties"]["graphs"]["items"] = {"$ref": "#/$defs/Graphs"}
    entry = tables.pop("MethodSpec")["properties"]
    for name, method in METHODS.items():
        params = method.params.model_json_schema(schema_generator=_OfToml)
        tables |= params.pop("$defs", {})
        keys = {key: _values(key, one) for key, one in params["properties"].items()}
        same = {key: {"$ref": f"#/$defs/{name}/properties/{key}"} for key in keys}
        own = {"name": {"const": name, "description": method.title},
               "on": entry["on"] | {"additionalProperties": _table(same)}}  # fmt: skip
        tables[name] = {"title": name, "required": ["name"], **_table(entry | keys | own)}
    entries = [{"$ref": f"#/$defs/{name}"} for name in METHODS]
    named = {"properties": {"name": {"enum": [*METHODS]}}}  # for the message of an unknown name
    found["properties"]["methods"]["items"] = named | {"anyOf": entries}
    found = {"$schema": "http://json-schema.org/draft-07/schema#", **found}
    in_lines: dict[str, Any] = json.loads(json.dumps(found), object_hook=_in_one_line)
    return in_lines


def _in_one_line(table: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose description has no breaks, which editors would show."""
    if isinstance(words := table.get("description"), str):
        table["description"] = " ".join(words.split())
    return table


def _table(keys: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a table of these keys."""
    return {"type": "object", "properties": keys, "additionalProperties": False}


def _values(key: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value of a parameter, or of several."""
    from mkldist.spec.kinds import LINKED
    from mkldist.spec.model import FROM

    about = {name: value.pop(name) for name in ("title", "description", "default") if name in value}
    ways: list[dict[str, Any]] = [value, {"type": "array", "items": value, "minItems": 1}]
    if value.get("type") in ("number", "integer"):
        ways += [{"$ref": f"#/$defs/{table}"} for table in ("Range", "Distribution")]
    if key == LINKED:
        ways += [{"const": "path"}, {"required": [FROM], **_table({FROM: {"type": "string"}})}]
    return about | {"anyOf": ways}


def write_schema(path: Path) -> None:
    """Write the schema to a file."""
    with writing(path):
        write_file(path, [f"{json.dumps(sweep_schema(), indent=1)}\n".encode()])


@click.command("schema")
@click.option("-o", "--output", type=PATH, help="File to write.")
@overwrite_option
def schema_command(output: Path | None, overwrite: bool) -> None:
    """Print a JSON Schema of the sweep file, by which editors complete and check it."""
    if output is None:
        click.echo(json.dumps(sweep_schema(), indent=1))
        return
    if output.suffix != ".json":
        raise OutputError(str(output), ending_words(output.suffix), "a name ending in '.json'")
    check_free(output, overwrite=overwrite)
    write_schema(output)
