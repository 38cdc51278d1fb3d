"""Forecast of a sweep on workers that need not exist: its time, bytes, memory and limits."""
