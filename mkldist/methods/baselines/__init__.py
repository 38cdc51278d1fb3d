"""Baselines: fixed weights, alignment with the labels, and single kernels by cross-validation.

This package imports no other family of methods.
"""
