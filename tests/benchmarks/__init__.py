"""Benchmarks that anyone can run: ``pytest tests/benchmarks --benchmark-only``."""
