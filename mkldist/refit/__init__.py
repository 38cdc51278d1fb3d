"""From the results of a sweep to a model: the choice of a setting, and the fit on all rows."""
