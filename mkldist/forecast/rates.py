"""Rates of this machine, by which a forecast knows how long tasks take, and the file of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from mkldist.bank.cache import default_directory
from mkldist.core.checked_json import parsed, write_checked

FILE = "rates.json"


@dataclass(frozen=True)
class Rates:
    """Seconds that the steps of a sweep take, of one processor, and the speed of storage.

    Parameters
    ----------
    kernel_value_seconds : float
        To compute one value of a kernel.
    pass_value_seconds : float
        To read one value of a stored kernel in a pass that answers one vector.
    vector_value_seconds : float
        More than that for each further vector that shares the pass.
    pass_seconds : float
        Of a pass, with the combined kernels before it, besides what their values take.
    request_seconds : float
        More than that for each solver that shares the pass.
    solver_seconds : float
        Of a solver's own code, besides what grows with the number of points.
    cubic_seconds : float
        The same for each n³ of n points.
    record_seconds : float
        To write the record of a run.
    task_seconds : float
        Of the coordinator and the scheduler, to submit a task and take its outcome.
    receipt_seconds : float
        Of the coordinator, for each run of a task.
    storage_bytes_per_second : float
        Of files that are written and flushed.
    """

    kernel_value_seconds: float
    pass_value_seconds: float
    vector_value_seconds: float
    pass_seconds: float
    request_seconds: float
    solver_seconds: float
    cubic_seconds: float
    record_seconds: float
    task_seconds: float
    receipt_seconds: float
    storage_bytes_per_second: float

    @classmethod
    def of(cls, document: Mapping[str, object]) -> Rates:
        """Return the rates of a document.

        Raises
        ------
        ValueError
            If it lacks one, or one is not positive.
        """
        values = {field.name: document.get(field.name) for field in fields(cls)}
        numbers = {name: v for name, v in values.items() if isinstance(v, float) and v > 0}
        if len(numbers) < len(values):
            raise ValueError(f"no rates: {values}")
        return cls(**numbers)


def rates_path() -> Path:
    """Return the file of this machine's rates, beside the node cache."""
    return default_directory() / FILE


def store_rates(rates: Rates) -> Path:
    """Write the rates of this machine, and return their file.

    Raises
    ------
    OSError
        If the disk refuses them.
    """
    path = rates_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_checked(path, asdict(rates))
    return path


def stored_rates() -> Rates | None:
    """Return the rates that were stored; None if there are none or they are damaged."""
    with suppress(OSError, ValueError):
        return Rates.of(parsed(rates_path().read_bytes()))
    return None
