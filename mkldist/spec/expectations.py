"""What a value should have been, in words for the user instead of pydantic's."""

from __future__ import annotations

from pydantic_core import ErrorDetails

_WORDS = {
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text in quotes",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
    "tuple_type": "a list",
    "list_type": "a list",
    "finite_number": "a finite number",
    "string_pattern_mismatch": "a name of letters, digits and the signs _ . + -",
}


def expected(error: ErrorDetails) -> str:
    """Return what stands behind "expected" in the message of a validation error.

    Parameters
    ----------
    error : dict
        One of ``ValidationError.errors()``.
    """
    if error["type"] in _WORDS:
        return _WORDS[error["type"]]
    message = error["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return f"a value {message}" if message.startswith(("greater", "less")) else message
