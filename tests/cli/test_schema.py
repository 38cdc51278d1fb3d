"""The JSON Schema of the sweep file, held to the models, right files and wrong ones."""

import json
import tomllib
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft7Validator

from docs.reference_tables import KEYS
from mkldist.cli import command
from mkldist.cli.schema import FILE, LINE, sweep_schema
from mkldist.methods.registry import METHODS
from mkldist.spec.load import shipped_sweeps
from tests.cli.test_catalogue import CSV, MISTAKES, SWEEP

NOT_IN_SCHEMA = ("options.",)  # of each synthetic data set its own


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return sweep_schema()


@pytest.fixture(scope="module")
def validator(schema) -> Draft7Validator:
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def test_it_has_every_key_of_the_models_with_its_description(schema):
    tables = schema["$defs"] | {"SweepSpec": schema}
    tables["MethodSpec"] = tables["SolverParams"] = tables["level"]
    for model in KEYS.values():
        keys = tables[model.__name__]["properties"]
        for name, field in model.model_fields.items():
            assert keys[name].get("description") or "$ref" in keys[name]
            if model.__name__ not in ("MethodSpec", "SolverParams"):
                assert keys[name].get("description", field.description) == field.description


def test_it_has_the_parameters_of_every_method(schema):
    for name, method in METHODS.items():
        keys = schema["$defs"][name]["properties"]
        assert keys["name"]["const"] == name
        for key, field in method.params.model_fields.items():
            assert keys[key].get("description", "") == (field.description or "")


@pytest.mark.parametrize("name", shipped_sweeps())
def test_sweeps_that_come_with_the_package_are_right(name, validator):
    validator.validate(tomllib.loads(shipped_sweeps()[name].read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "line",
    ['C = "path"', 'C = {from = "spicymkl"}', "C = {low = 1, high = 10}",
     "C = {start = 1, stop = 10, num = 3}", "on = {patients = {C = [1, 2]}}", "trace = true"],
)  # fmt: skip
def test_values_of_a_parameter_may_stand_in_every_way(line, validator):
    entry = tomllib.loads(f'name = "level"\n{line}')
    assert validator.is_valid(tomllib.loads(SWEEP) | {"methods": [entry]})


def test_of_wrong_files_it_refuses_unknown_keys_and_wrong_types(validator):
    right = tomllib.loads(SWEEP)
    assert validator.is_valid(right)
    refused = 0
    for kind, mistake in MISTAKES:
        if kind == "spec":
            text = SWEEP.replace(mistake["right"], mistake["wrong"], 1)
        elif kind == "add":
            text = SWEEP + mistake["text"]
        else:
            continue
        try:
            wrong = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        valid, found = validator.is_valid(wrong), mistake["said"][0]
        refused += not valid
        if "found an unknown" in found and not any(key in found for key in NOT_IN_SCHEMA):
            assert not valid, found
    assert refused >= 95


def test_the_command_prints_and_writes_it(schema, tmp_path):
    assert json.loads(CliRunner().invoke(command, ["schema"]).stdout) == schema
    file = tmp_path / "sweep.schema.json"
    for words, code in (([], 0), ([], 2), (["--overwrite"], 0)):
        done = CliRunner().invoke(command, ["schema", "-o", str(file), *words])
        assert (done.exit_code != 0) == (code != 0)
        assert json.loads(file.read_text()) == schema


def test_init_writes_it_beside_the_sweep_and_names_it_first(schema, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "p.csv").write_text(CSV)
    done = CliRunner().invoke(command, ["init", "p.csv", "--to", "data/p.toml"])
    assert done.exit_code == 0, done.output
    first, *_ = (tmp_path / "data" / "p.toml").read_text().splitlines()
    assert first == LINE == f"#:schema ./{FILE}"
    assert json.loads((tmp_path / "data" / FILE).read_text()) == schema
