"""Data sets of OpenML, on answers that are made up in place of its server."""

import http.client
import io
import urllib.error
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from mkldist.data.catalogue import read_openml
from mkldist.data.tables import ColumnChoice
from tests.data.mistakes import mistake

WHERE = "data set 't' (OpenML 40)"
DETAILS = {"id": "40", "name": "sonar", "version": "1", "status": "active", "format": "ARFF"}


def dense(**columns: Any) -> Bunch:
    """Return what fetch_openml gives for a dense data set with the target last."""
    frame = pd.DataFrame(columns)
    target = frame.columns[-1]
    return Bunch(
        data=frame.drop(columns=target),
        target=frame[target],
        frame=frame,
        categories=None,
        feature_names=list(frame.columns[:-1]),
        target_names=[target],
        details=dict(DETAILS),
        url="https://www.openml.org/d/40",
    )


GOOD = dense(
    a=[1.0, np.nan, 2.0], b=[1, 2, 3], Class=pd.Categorical(["Rock", "Mine", "Rock"])
)  # fmt: skip


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[dict[str, Any]]]:
    """Return a function that sets what OpenML answers, and returns the list of requests."""

    def set_answer(result: Any) -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = []

        def fetch(**request: Any) -> Any:
            asked.append(request)
            warnings.warn("Multiple active versions of the dataset", stacklevel=1)
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
        return asked

    return set_answer


Answer = Callable[[Any], list[dict[str, Any]]]


def test_dense_data(answer: Answer) -> None:
    asked = answer(GOOD)
    found = read_openml(40, ColumnChoice(), WHERE)
    np.testing.assert_array_equal(found.x, [[1, 1], [np.nan, 2], [2, 3]])
    assert found.labels.tolist() == ["Rock", "Mine", "Rock"]
    assert found.feature_names == ("a", "b")
    assert found.origin == "OpenML 40: sonar version 1"
    assert asked[0]["data_id"] == 40
    assert "name" not in asked[0]
    assert asked[0]["target_column"] == "default-target"


def test_columns_of_dense_data_have_roles(answer: Answer) -> None:
    answer(dense(a=[1, 2, 3], sex=["m", "f", "m"], name=list("xyz"), Class=["p", "q", "p"]))
    found = read_openml(40, ColumnChoice(categorical=("sex",), ignore=("name",)), WHERE)
    assert found.feature_names == ("a", "sex=f", "sex=m")
    np.testing.assert_array_equal(found.x, [[1, 0, 1], [2, 1, 0], [3, 0, 1]])
    assert found.summary.label == "column 'Class', chosen by OpenML"
    with mistake("no column 'nam'", "Did you mean 'name'?"):
        read_openml(40, ColumnChoice(ignore=("nam",)), WHERE)


def test_sparse_data(answer: Answer) -> None:
    sparse = Bunch(
        data=csr_matrix([[0.0, 1.0], [2.0, 0.0]]),
        target=np.array(["-1", None], dtype=object),
        feature_names=["X1", "X2"],
        target_names=["Y"],
        details=dict(DETAILS),
    )
    answer(sparse)
    found = read_openml(40, ColumnChoice(), WHERE)
    np.testing.assert_array_equal(found.x, [[0, 1], [2, 0]])
    assert found.labels.tolist() == ["-1", ""]


def test_categories_that_are_numbers_are_numbers(answer: Answer) -> None:
    answer(dense(a=pd.Categorical(["0", None, "2"]), Class=[1, 2, 1]))
    np.testing.assert_array_equal(read_openml(40, ColumnChoice(), WHERE).x, [[0], [np.nan], [2]])


def test_by_name_or_number_and_target(answer: Answer) -> None:
    asked = answer(GOOD)
    read_openml("Sonar", ColumnChoice("Class"), WHERE)
    read_openml("40", ColumnChoice(), WHERE)
    assert (asked[0]["name"], asked[0]["target_column"]) == ("Sonar", "Class")
    assert asked[1]["data_id"] == 40
    with mistake("label = 3", "name of the target column"):
        read_openml(40, ColumnChoice(3), WHERE)


@pytest.mark.parametrize(
    "failure",
    [
        urllib.error.URLError(OSError(-2, "Name or service not known")),
        TimeoutError("timed out"),
        ConnectionResetError(104, "Connection reset by peer"),
        http.client.RemoteDisconnected("Remote end closed connection"),
        http.client.IncompleteRead(b""),
    ],
)
def test_a_network_that_fails(answer: Answer, failure: Exception) -> None:
    answer(failure)
    with mistake(WHERE, "no connection to OpenML", "www.openml.org", "by 'file'"):
        read_openml(40, ColumnChoice(), WHERE)


def test_data_sets_that_are_not_there(answer: Answer) -> None:
    answer(urllib.error.HTTPError("u", 404, "Not Found", http.client.HTTPMessage(), io.BytesIO()))
    with mistake("404 of OpenML (Not Found)", "'sonr'"):
        read_openml("sonr", ColumnChoice(), WHERE)
    answer(ValueError("No active dataset sonr found."))
    with mistake("No active dataset sonr found."):
        read_openml("sonr", ColumnChoice(), WHERE)
    answer(KeyError("Could not find target_column='zzz'"))
    with mistake("Could not find target_column"):
        read_openml(40, ColumnChoice("zzz"), WHERE)
    answer(TypeError("expected string, got 'int'"))
    with mistake("that can be used: expected string"):
        read_openml(40, ColumnChoice(), WHERE)


def test_targets_that_are_not_one(answer: Answer) -> None:
    none, many = Bunch(**GOOD), Bunch(**GOOD)
    none.update(target=None, target_names=[])
    many.update(target=GOOD.frame[["a", "b"]], target_names=["a", "b"])
    answer(none)
    with mistake("targets: none", "Set label"):
        read_openml(40, ColumnChoice(), WHERE)
    answer(many)
    with mistake("targets: a, b"):
        read_openml(40, ColumnChoice(), WHERE)


def test_features_that_are_no_numbers(answer: Answer) -> None:
    answer(dense(colour=pd.Categorical(["red", "blue", "red"]), Class=[1, 2, 1]))
    with mistake(WHERE, "'colour' (3 of 3 rows"):
        read_openml(40, ColumnChoice(), WHERE)
