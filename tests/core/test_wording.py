"""Numbers with nouns, lists, names of rows, and the order of names."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mkldist
from mkldist.core.wording import (
    FROM_ONE,
    FROM_ZERO,
    in_lines,
    natural_key,
    natural_path_key,
)
from mkldist.data.catalogue import load_dataset
from mkldist.errors import DataError
from mkldist.fit.predictions import write_predictions
from mkldist.spec.datasets import DatasetSpec

N = 12
X = np.random.default_rng(0).normal(size=(N, 2))
LABELS = np.where(np.arange(N) % 2, "yes", "no")
BAD = 7  # position of the row with a mistake
PLACES = {"csv": "line 10", "svm": "line 9", "npz": "row 8 (from 1)", "parquet": "row 8 (from 1)"}
"""Both texts have a blank line or a comment before the row, and a table its header."""


def table(features: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"a": features[:, 0], "b": features[:, 1], "label": labels})


def write(file: Path, features: np.ndarray, labels: np.ndarray) -> None:
    """Write a data set of one of four kinds."""
    if file.suffix == ".npz":
        np.savez(file, x=features, y=labels)
    elif file.suffix == ".parquet":
        table(features, labels).to_parquet(file)
    elif file.suffix == ".csv":
        lines = table(features, labels).to_csv(index=False).splitlines()
        file.write_text("\n".join([*lines[:3], "", *lines[3:]]))
    else:
        rows = zip((labels == LABELS[0]).astype(int), features.tolist(), strict=True)
        lines = [f"{label} 1:{one!r} 2:{two!r}" for label, (one, two) in rows]
        file.write_text("\n".join(["# of a trial", *lines]))


def with_one(values: np.ndarray, value: object) -> np.ndarray:
    found = values.copy()
    found[BAD] = value
    return found


def refused(file: Path, **keys: object) -> str:
    """Return the message about a file of a data set."""
    with pytest.raises(DataError) as caught:
        load_dataset(DatasetSpec(name="t", file=file.name, **keys), [], file.parent, 0)
    return str(caught.value)


@pytest.mark.parametrize(("kind", "place"), PLACES.items())
def test_a_row_of_a_file_is_named_as_an_editor_shows_it(kind, place, tmp_path):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"t.{kind}"
    if kind != "svm":  # whose labels are numbers
        write(file, X, with_one(LABELS, ""))
        assert f"the first is {place}; expected a label" in refused(file)
        write(file, X, with_one(np.arange(N).astype(str), "tall"))
        assert f"found label 'tall' in {place};" in refused(file, task="regression")
    write(file, with_one(X, np.inf), LABELS)
    assert f"infinite values in {'' if kind in ('svm', 'npz') else chr(39) + 'a'}" in refused(file)
    assert f"of 12 rows, the first in {place};" in refused(file)
    write(file, with_one(X, np.nan), LABELS)
    assert f"of 12 rows, the first in {place}; expected a number" in refused(file)


@pytest.mark.parametrize(("kind", "place"), PLACES.items())
def test_a_new_row_of_a_file_is_named_alike(kind, place, tmp_path):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    frame = table(X, LABELS)[["a", "b"]]
    given = frame if kind in ("csv", "parquet") else X
    model = mkldist.MKLClassifier(kernels=[mkldist.kernels.Linear()]).fit(given, LABELS).to_model()
    file = tmp_path / f"new.{kind}"
    write(file, with_one(X, np.inf), with_one(LABELS, "no"))
    with pytest.raises(DataError, match="an infinite value") as caught:
        write_predictions(model, file, tmp_path / "out.csv")
    assert f"new.{kind}, {place}, column " in str(caught.value)
    with pytest.raises(
        DataError, match=r"^X, row 7 \(from 0\), column '(a|x0)': found an infinite"
    ):
        model.predict(
            with_one(X, np.inf) if given is X else frame.where(frame != frame.iloc[BAD], np.inf)
        )


def test_rows_that_were_left_out_still_count(tmp_path):
    labels = with_one(LABELS, "yes")
    labels[:3] = "perhaps"
    write(tmp_path / "t.csv", with_one(X, np.inf), labels)
    assert "the first in line 10;" in refused(tmp_path / "t.csv", classes=("no", "yes"))


@pytest.mark.parametrize("places", [FROM_ZERO, FROM_ONE, in_lines(range(2, N + 2))])
def test_a_part_has_the_places_of_the_whole(places):
    rows = np.array([1, 4, 6])
    assert [places.chosen(rows).of(i) for i in range(3)] == [places.of(row) for row in (1, 4, 6)]
    assert places.after(4).of(2) == places.of(6) == places.chosen(rows).after(1).of(1)
    assert places.names([])[:1] == []


def test_numbers_count_as_numbers():
    names = ["m1000", "m20", "m100", "m3", "level", "m", "2m", "10m", "m01", "m1"]
    assert sorted(names, key=natural_key) == [
        "2m", "10m", "level", "m", "m01", "m1", "m3", "m20", "m100", "m1000",
    ]  # fmt: skip


def test_paths_are_ordered_name_by_name():
    paths = ["d/m100/level", "d/m20/level", "d/m20", "d10", "d2/x"]
    assert sorted(paths, key=natural_path_key) == [
        "d/m20", "d/m20/level", "d/m100/level", "d2/x", "d10",
    ]  # fmt: skip


@given(st.text(), st.text())
def test_equal_keys_are_equal_names(one, other):
    assert (natural_key(one) == natural_key(other)) == (one == other)


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="0123456789")), st.text())
def test_names_without_digits_keep_their_order(one, other):
    other = "".join(c for c in other if not c.isdecimal())
    assert (natural_key(one) < natural_key(other)) == (one < other)
