"""Reading of sweep files, and messages about files that are not TOML or not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mkldist.data.files import READERS, ZARR
from mkldist.errors import SpecError
from mkldist.planning.methods import resolve_methods
from mkldist.spec.load import DATA_ENDINGS, load_sweep

SWEEP = """
name = "s"
tol = 0.01
[[datasets]]
name = "wdbc"
[[banks]]
family = "xu2008"
[[banks]]
name = "mine"
[[banks.kernels]]
function = "gaussian"
widths = [1, 2.5]
features = ["all", "each", { count = 3, size = 2 }]
[[banks.kernels]]
function = "gaussian"
widths = { start = 0.1, stop = 10, num = 3, scale = "log" }
[[banks.kernels]]
function = "polynomial"
degrees = [1, 2]
[[methods]]
name = "level"
C = [1, 10]
[[methods]]
name = "level"
label = "slow"
near = 0.99
"""


def load(tmp_path: Path, *overrides: str, text: str = SWEEP):
    path = tmp_path / "s.toml"
    path.write_text(text)
    spec = load_sweep(path, overrides)
    resolve_methods(spec)
    return spec


def test_a_sweep_is_read(tmp_path):
    spec = load(tmp_path)
    assert [bank.label for bank in spec.banks] == ["xu2008", "mine"]
    assert [method.key for method in spec.methods] == ["level", "slow"]
    assert spec.banks[1].kernels[1].widths.values() == pytest.approx((0.1, 1.0, 10.0))
    assert spec.methods[1].settings == {"near": 0.99}
    assert spec.splits.kind == "holdout"
    assert spec.preprocessing.fit == "train"


def test_results_keep_the_normalisation_and_not_the_other_defaults(tmp_path):
    spec = load(tmp_path)
    words = spec.model_dump_json(exclude_defaults=True)
    assert json.loads(words)["banks"][0] == {"family": "xu2008", "normalisation": "variance"}
    again = type(spec).model_validate_json(words)
    assert again.model_dump() == spec.model_dump()


def test_words_for_numbers_and_classes_are_taken_as_meant(tmp_path):
    entry = 'classes = [3, 8]\n[[banks]]\nname = "b"\nnormalisation = ["centre", "trace"]\n'
    kernels = '[[banks.kernels]]\nfunction = "linear"\nfeatures = "mean radius"\n[[banks]]'
    text = SWEEP.replace("[[banks]]", entry + kernels, 1)
    spec = load(tmp_path, text=text)
    assert spec.datasets[0].classes == ("3", "8")
    assert spec.banks[0].normalisations == ("centre", "trace")
    assert spec.banks[0].kernels[0].features == "mean radius"


def test_a_file_that_is_not_there_names_the_one_that_was_meant(tmp_path):
    load(tmp_path)
    with pytest.raises(SpecError, match=r"no such file.*Did you mean '.*/s.toml'\?"):
        load_sweep(tmp_path / "ss.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "s.toml: found bytes that are not UTF-8 text; expected a sweep file in TOML"),
        (b"[[x]\n", "s.toml, line 1: found text that is not TOML: expected ']]' at the end of an "
         "array declaration, "
         "in '[[x]'"),
        (b"x = [1", "s.toml: found text that is not TOML: Unclosed array (at end of document)"),
        (b"x = " + 4000 * b"[", "s.toml: found lists or tables in each other too deep to read"),
        (50_000 * b"a." + b"a = 1", "s.toml: found a key of over 100 parts; expected keys such as "
         "splits.folds"),
        (b"x = " + 5000 * b"1", "s.toml: found a whole number of more than 4000 digits; "
         "expected a number that a computer holds"),
    ],
)  # fmt: skip
def test_what_is_not_toml_is_said_so(tmp_path, content, message):
    path = tmp_path / "s.toml"
    path.write_bytes(content)
    with pytest.raises(SpecError) as caught:
        load_sweep(path)
    assert str(caught.value).removeprefix(f"{tmp_path}/") == message


def test_a_folder_is_no_sweep_file(tmp_path):
    with pytest.raises(SpecError, match="found a folder; expected a sweep file that can be read"):
        load_sweep(tmp_path)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SWEEP.encode())
    assert load_sweep(path).name == "s"


def test_a_missing_section_is_named(tmp_path):
    with pytest.raises(
        SpecError, match=r"s.toml: banks: found nothing; expected at least one \[\[banks"
    ):
        load(tmp_path, text='name = "s"\n[[datasets]]\nname = "wdbc"\n[[methods]]\nname = "level"')


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("d.csv", "mkldist init d.csv writes a sweep file"),
        ("d.csv.gz", "mkldist init d.csv.gz writes a sweep file"),
        ("my.model", "mkldist predict applies one"),
        ("my.html", "name the sweep file"),
        ("notes.txt", ""),
    ],
)
def test_what_another_file_is_for_is_told_by_its_ending(tmp_path, name, hint):
    path = tmp_path / name
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(SpecError) as caught:
        load_sweep(path)
    assert hint in caught.value.hint
    assert bool(caught.value.hint) == bool(hint)


def test_init_is_advised_for_the_files_that_it_reads():
    assert set(DATA_ENDINGS) == set(READERS) - {ZARR}  # a folder is not read as a sweep file
