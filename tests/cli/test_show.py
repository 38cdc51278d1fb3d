"""Descriptions by name: `known` names, and what `show` prints of them."""

from __future__ import annotations

import tomllib

import pytest
from click.testing import CliRunner

from mkldist.cli.data import show_command as command
from mkldist.from_python.listings import known, known_of
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.families import NAMED_FAMILIES, kernel_list
from mkldist.methods.registry import METHODS
from mkldist.spec.banks import BankSpec
from mkldist.spec.load import shipped_sweeps


def shown(*words: str) -> str:
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_everything_known_has_a_line_and_a_name_of_its_own_in_its_kind():
    everything = [(one.kind, one.name) for one in known()]
    assert len(set(everything)) == len(everything)
    assert all(one.line for one in known())
    assert {name for kind, name in everything if kind == "method"} == set(METHODS)
    assert {name for kind, name in everything if kind == "sweep"} == set(shipped_sweeps())


def test_kernel_functions_and_families_are_those_of_sweep_files():
    assert {one.name for one in known_of("kernel")} == set(FUNCTIONS)
    assert {one.name for one in known_of("family")} == {*NAMED_FAMILIES, "precomputed"}


@pytest.mark.parametrize("name", NAMED_FAMILIES)
def test_a_family_written_out_has_the_same_kernels(name):
    banks = tomllib.loads(shown(name).partition("\n")[2])["banks"]
    family, written = (BankSpec.model_validate(bank) for bank in banks)
    one, other = (
        kernel_list(spec, 3, ("a", "b", "c"), {}, seed=0).fingerprint for spec in (family, written)
    )
    assert one == other


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_kernel_function_is_a_bank(name):
    example = shown(name).split("\n\n")[1]
    (bank,) = tomllib.loads(example)["banks"]
    spec = BankSpec.model_validate(bank)
    assert spec.kernels[0].function == name
    assert len(kernel_list(spec, 3, ("a", "b", "c"), {}, seed=0)) >= 4


def test_a_method_is_shown_in_full():
    text = shown("level")
    assert text.startswith("level  Extended Level method\n")
    assert "Xu, Jin, King & Lyu 2008" in text
    assert "time_limit = inf" in text


def test_a_data_set_is_shown_with_its_classes_and_features(tmp_path):
    (tmp_path / "mine.csv").write_text("a,b,class\n1,2,yes\n3,4,no\n5,7,yes\n2,9,no\n")
    text = shown("mine", "--data-dir", str(tmp_path))
    assert "rows      4\n" in text
    assert "2 classes: 2 no, 2 yes; yes is +1\n" in text
    assert "features  2: a, b\n" in text
    assert "real values from 25 to 346" in shown("diabetes")
    assert "and 18 more" in shown("wdbc")


def test_a_sweep_is_printed_so_that_it_can_be_copied():
    text = shown("quickstart")
    assert tomllib.loads(text) == tomllib.loads(shipped_sweeps()["quickstart"].read_text())


def test_a_name_of_two_things_shows_both_unless_one_is_chosen():
    both = shown("star")
    assert both.startswith("# dataset\n")
    assert "\n# sweep\n" in both
    assert tomllib.loads(shown("star", "--kind", "sweep"))["name"] == "star"
