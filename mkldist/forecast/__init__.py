"""Forecast of a sweep on workers that need not exist: its time, bytes, memory and limits."""

MOST_WORKERS = 100_000
"""Workers that are simulated in seconds."""
