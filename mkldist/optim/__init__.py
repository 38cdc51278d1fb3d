"""Numerical optimisation that knows nothing of kernels: programmes, projections, directions."""
