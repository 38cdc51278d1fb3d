"""Names are data: one list of nasty ones goes through every command, figure, page and export."""

import csv

import fsspec
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mkldist
from tests.cli.commands import run_here

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Glyph"),  # of letters that a font of figures lacks
]

NASTY = (
    "$x^{$", "=1+1", "+1", "-x", "@sum", "back\\slash", "[a]", "{b}", "<b>&amp;</b>", 'quo"te',
    "it's", "com,ma", "semi;colon", "new\nline", "t\tab", "é", "漢", "😀", "%s{}", "a/b",
    "#", "../up", "~",
)  # fmt: skip
CLASSES = ("=no$", "<yes>\\")
DATA, OUT = "$a [b] & é.csv", "out é$[x]\\y"
SWEEP = f"""\
name = "nasty"
[[datasets]]
name = "mine"
file = "{DATA}"
[splits]
repeats = 2
[outputs]
keep_banks = true
[[banks]]
[[banks.kernels]]
function = "gaussian"
features = ["all", "each"]
widths = [1.0]
[[methods]]
name = "level"
C = [1]
[[methods]]
name = "uniform"
C = [1]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder of a nasty name that holds data of nasty names, and the results of a sweep."""
    folder = tmp_path_factory.mktemp("a") / "b\\c [d] $e"
    folder.mkdir()
    x = np.random.default_rng(0).normal(size=(40, len(NASTY)))
    rows = pd.DataFrame(x, columns=[*NASTY])
    rows.to_csv(folder / "new.csv", index=False)
    rows.assign(label=np.where(x[:, 0] > 0, *CLASSES)).to_csv(folder / DATA, index=False)
    (folder / "nasty.toml").write_text(SWEEP)
    run_here(folder, "sweep", "nasty.toml")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "plan nasty.toml", "status nasty", "verify nasty", "compare nasty", "explain nasty",
        "explain nasty --figure OUT.pdf", "explain nasty --figure OUT.svg --json",
        "report nasty -o OUT.html --figures OUT", "init DATA --to OUT.toml",
        "doctor results/nasty", "rerun nasty -o OUT.again",
    ],
)  # fmt: skip
def test_every_command_takes_nasty_names(folder, words):
    filled = [word.replace("OUT", OUT).replace("DATA", DATA) for word in words.split()]
    run_here(folder, *filled)
    if "report" in words:
        page = (folder / f"{OUT}.html").read_text()
        assert "<b>&amp;</b>" not in page
        assert "<yes>" not in page


@pytest.mark.parametrize("ending", [".nc", ".zarr", ".csv", ".parquet"])
def test_every_export_has_the_names_as_they_are(folder, ending):
    run_here(folder, "export", "nasty", "--to", f"{OUT}{ending}")
    expected = ["all", *NASTY]
    if ending in (".csv", ".parquet"):
        read = pd.read_csv if ending == ".csv" else pd.read_parquet
        rows = read(folder / f"{OUT}.weights{ending}")
        found = rows.loc[rows.method == "uniform", "features"].unique().tolist()
    else:
        place = folder.parent / f"copy{ending}"  # the library takes \\ for a separator of folders
        (folder / f"{OUT}{ending}").rename(place)
        with xr.open_datatree(place) as tree:
            found = tree["mine/uniform"].features.values.tolist()
    assert found == expected


def test_the_character_nul_in_a_name_is_written_by_formats_that_hold_it(tmp_path):
    frame = pd.DataFrame({"n\0ul": np.arange(20.0), "b": np.arange(20.0) % 3})
    words = {
        "name": "nul",
        "splits": {"repeats": 1},
        "banks": [{"kernels": [{"function": "gaussian", "features": "each", "widths": [1.0]}]}],
        "methods": [{"name": "uniform", "C": [1.0]}],
    }
    data = {"mine": (frame, np.arange(20) % 2)}
    mkldist.sweep(words, data=data, output=tmp_path / "nul", workers=0, progress=False)
    run_here(tmp_path, "export", "nul", "--to", "e.zarr")
    with xr.open_datatree(tmp_path / "e.zarr", engine="zarr") as tree:
        assert tree["mine/uniform"].features.values.tolist() == [*frame]
    run_here(tmp_path, "export", "nul", "--to", "e.nc", code=2)


def test_a_model_names_features_and_classes_as_they_are(folder):
    run_here(folder, "fit", "nasty", "-o", f"{OUT}.model")
    run_here(folder, "predict", f"{OUT}.model", "new.csv", "-o", f"{OUT}.predicted.csv")
    model = mkldist.load_model(str(folder / f"{OUT}.model"))
    with (folder / f"{OUT}.predicted.csv").open(newline="", encoding="utf-8") as file:
        predicted = [row["prediction"] for row in csv.DictReader(file)]
    assert set(predicted) <= set(CLASSES)
    assert predicted == model.predict(pd.read_csv(folder / "new.csv")).tolist()


def test_nothing_that_a_sweep_leaves_or_says_has_a_password_of_the_store(tmp_path, monkeypatch):
    secret = "S3CRET-PW"
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(fsspec.config.conf, "file", {"password": secret})
    monkeypatch.setitem(fsspec.config.conf, "memory", {"password": secret})
    (tmp_path / "s.toml").write_text(
        SWEEP.replace('name = "mine"', 'name = "two_moons"').replace(f'file = "{DATA}"', "")
    )
    said = [
        run_here(tmp_path, *words.split(), code=code)
        for words, code in (
            ('sweep s.toml --set outputs.banks="memory://store"', 0),
            ('sweep s.toml --set outputs.banks="nosuch://store" --output other', 2),
            ("report nasty -o page.html --figures figures", 0),
            ("export nasty --to e.csv", 0), ("export nasty --to e.zarr", 0),
            ("fit nasty -o a.model", 0), ("verify nasty", 0), ("status nasty --json", 0),
        )
    ]  # fmt: skip
    assert not any(secret in one.stdout + one.stderr for one in said)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert fsspec.filesystem("memory").storage_options == {"password": secret}
    assert fsspec.filesystem("memory").find("/store")
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
