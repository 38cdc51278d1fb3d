"""Data, kernels and grids of a sweep, and the checks that precede every run."""
