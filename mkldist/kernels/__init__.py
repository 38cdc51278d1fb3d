"""Kernel functions, feature subsets and the papers' families."""
