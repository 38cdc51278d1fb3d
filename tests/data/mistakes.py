"""A mistake in the input must give one message with all four parts."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mkldist.errors import DataError, MkldistError


@contextmanager
def mistake(*words: str, error: type[MkldistError] = DataError) -> Iterator[None]:
    """Expect an error with all four parts and these words; its message ends with one full stop."""
    with pytest.raises(error) as caught:
        yield
    raised = caught.value
    assert all((raised.where, raised.found, raised.expected, raised.hint)), str(raised)
    assert not raised.hint.endswith("."), raised.hint
    missing = [word for word in words if word not in str(raised)]
    assert not missing, f"{missing} not in: {raised}"
