"""Errors that a user can act on: their messages, and their way from workers."""

import ast
import pickle
from pathlib import Path

import pytest

from mkldist import errors
from mkldist.errors import DataError, MkldistError, SpecError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type)]
NAMES = {kind.__name__ for kind in KINDS} | {"DamagedBlocksError"}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("tol", "-1"), "tol: found -1"),
        (("tol", "-1", "a number above 0"), "tol: found -1; expected a number above 0"),
        (("a.csv", "no rows", "", "Add some"), "a.csv: found no rows. Add some."),
        (
            ("a.csv", "no rows", "some", "Add some."),
            "a.csv: found no rows; expected some. Add some.",
        ),
        (("k", "'levl'", "", "Did you mean 'level'?"), "k: found 'levl'. Did you mean 'level'?"),
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
    assert str(error) == "a.csv: found no rows; expected some. Add some."


def literals(place: ast.expr, values: dict[str, list[ast.expr]]) -> list[str]:
    """Return the text with which an argument may begin, where the source states it."""
    match place:
        case ast.Constant(str() as text) | ast.JoinedStr([ast.Constant(str() as text), *_]):
            return [text]
        case ast.IfExp(_, one, other) | ast.BoolOp(_, [one, other]):
            return literals(one, values) + literals(other, values)
        case ast.Name(name):
            return [text for value in values.pop(name, []) for text in literals(value, values)]
    return []


def said_by(source: str) -> list[str]:
    """Return the beginnings of what calls of our errors in a source say that they found."""
    said = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        values: dict[str, list[ast.expr]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                values.setdefault(node.targets[0].id, []).append(node.value)
        for node in ast.walk(function):
            match node:
                case ast.Call(ast.Name(name), [_, found, *_]) if name in NAMES:
                    said += literals(found, dict(values))
    return said


def test_what_was_found_is_seen_in_literals_choices_and_variables():
    source = """def f(x):
        found = "found one" if x else f"two {x}"
        raise DataError("a", found)
        raise SpecError("a", f"found {x}", "b")
        raise ValueError("a", "found")
    """
    assert said_by(source) == ["found one", "two ", "found "]


@pytest.mark.slow
def test_no_caller_says_found_or_begins_a_sentence_of_its_own():
    """The message adds the word; what follows must be a noun phrase, which has no such opening."""
    openings = ("found", "expected", "cannot", "is ", "are ", "has ", "not ", "missing", "unknown ")
    wrong = {
        (path.name, text)
        for path in Path(errors.__file__).parent.rglob("*.py")
        for text in said_by(path.read_text())
        if text.startswith(openings)
    }
    assert not wrong


def test_a_mistake_of_the_user_exits_with_2_and_a_lost_cluster_with_1():
    assert DataError("a.csv", "no rows").exit_code == 2
    assert errors.ClusterError("tcp://x", "no answer").exit_code == 1
