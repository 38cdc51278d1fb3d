"""Semi-supervised methods on a graph Laplacian, with one kernel or many.

Imports point one way: this package uses :mod:`mkldist.methods.primal`, whose algorithm LapMKL runs
on deformed kernels and whose weight steps it shares.  No other family imports this one.
"""
