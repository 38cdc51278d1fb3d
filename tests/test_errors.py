"""Errors that a user can act on: their messages, and their way from workers."""

from __future__ import annotations

import pickle

import pytest

from mkldist import errors
from mkldist.errors import DataError, MkldistError, SpecError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type)]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("tol", "found -1"), "tol: found -1"),
        (("tol", "found -1", "a number above 0"), "tol: found -1; expected a number above 0"),
        (("a.csv", "no rows", "", "Add some"), "a.csv: no rows. Add some."),
        (("a.csv", "no rows", "some", "Add some."), "a.csv: no rows; expected some. Add some."),
        (("levl", "unknown", "", "Did you mean 'level'?"), "levl: unknown. Did you mean 'level'?"),
    ],
)
def test_a_message_has_place_found_expected_and_a_sentence_of_advice(parts, message):
    assert str(SpecError(*parts)) == message


@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(kind, MkldistError)])
def test_an_error_arrives_from_a_worker_unchanged(kind):
    error = pickle.loads(pickle.dumps(kind("a.csv", "no rows", "some", "Add some")))
    assert type(error) is kind
    assert (error.where, error.found, error.expected, error.hint) == (
        "a.csv",
        "no rows",
        "some",
        "Add some",
    )
    assert str(error) == "a.csv: no rows; expected some. Add some."


def test_a_mistake_of_the_user_exits_with_2_and_a_lost_cluster_with_1():
    assert DataError("a.csv", "no rows").exit_code == 2
    assert errors.ClusterError("tcp://x", "no answer").exit_code == 1
