"""What a table says of its columns: `summary`."""

import numpy as np
import pytest

from mkldist.data.columns import ColumnChoice, column_roles
from mkldist.data.tables import of_table

NAMES = ("id", "age", "sex", "note", "class")
ROLES = column_roles(NAMES, ColumnChoice(ignore=("note",), categorical=("sex",)), "t")
AGES = np.tile([40.0, 30.0, 50.0, 60.0], 3)


def taken(numbers: np.ndarray):
    labels = np.array(["a", "b"] * 6)
    x = np.column_stack([numbers, AGES])
    return of_table(ROLES, labels, x, {"sex": ["m", "f"] * 6}, "t")


def test_features_and_their_summary() -> None:
    raw = taken(np.arange(12.0)[::-1])
    assert raw.feature_names == ("id", "age", "sex=f", "sex=m")
    assert raw.groups == {"sex": (2, 3)}
    assert raw.summary.label == "column 'class', chosen by its name"
    assert raw.summary.left_out == ("'note' (ignored)",)
    assert raw.summary.encoded == ("'sex' as 2 features",)
    assert raw.summary.notes == ()


@pytest.mark.parametrize("first", [0, 1, 1001])
def test_a_column_that_numbers_the_rows_is_told(first: int) -> None:
    [note] = taken(first + np.arange(12.0)).summary.notes
    assert note.startswith("'id' numbers the rows")
    assert 'id = "id"' in note
    assert taken(first + 0.5 + np.arange(12.0)).summary.notes == ()
