"""PrimalMKL: alternating steps on the machine and on the kernel weights.

This package imports no other family of methods.  :mod:`mkldist.methods.manifold` imports its
algorithm, its weight steps and its bounds.
"""
