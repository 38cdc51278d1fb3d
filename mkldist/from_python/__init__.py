"""Sweeps, plans and lists as functions of Python; the commands share what they print."""
