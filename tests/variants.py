"""Variants of a test, most of which run with the slow ones."""

from collections.abc import Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], n: int = 1) -> list[Any]:
    """Return cases for ``parametrize``, all but the first `n` of them marked as slow.

    A case of several parameters is a tuple.
    """
    return [case if place < n else _slow(case) for place, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)
