"""Formats that results can be exported to; apart, so that the command line loads nothing else."""

from __future__ import annotations

ENDINGS = {"netcdf": ".nc", "zarr": ".zarr", "parquet": ".parquet", "csv": ".csv"}
"""Ending of the file of each format."""


def format_of(ending: str) -> str | None:
    """Return the format whose files have this ending, or None.

    Examples
    --------
    >>> format_of(".nc"), format_of(".txt")
    ('netcdf', None)
    """
    return next((name for name, known in ENDINGS.items() if known == ending), None)
