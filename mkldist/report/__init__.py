"""The report of a sweep: one page, its figures and their data."""
