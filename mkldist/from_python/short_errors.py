"""Errors of functions of Python without the calls within mkldist that led to them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from mkldist.errors import MkldistError

P = ParamSpec("P")
R = TypeVar("R")
DEBUG_VARIABLE = "MKLDIST_DEBUG"


def with_short_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Raise mistakes of the user and interrupts from the call itself.

    Their message says all that a user can act on.  The environment variable ``MKLDIST_DEBUG``
    keeps the calls within mkldist.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (MkldistError, KeyboardInterrupt) as error:
            if os.environ.get(DEBUG_VARIABLE):
                raise
            raise error.with_traceback(None) from None

    return call
