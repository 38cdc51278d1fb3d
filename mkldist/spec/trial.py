"""Name of the dimension of trials, for those who read results and no sweep file."""

TRIAL = "trial"
"""Dimension of the results along which the trials of a search lie."""
