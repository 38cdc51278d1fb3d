"""Wrong inputs of every kind, drawn from a seed: ``python -m tests.fuzz --cases 20000``."""
