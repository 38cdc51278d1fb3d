"""Machines on one Gram matrix: the inner problems of the methods."""
