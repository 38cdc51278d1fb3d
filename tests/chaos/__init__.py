"""Faults on purpose: ``python -m tests.chaos --seed 1 --kills 100 --flips 200``."""
