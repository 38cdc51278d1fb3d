"""Results of a sweep: records of its runs, and the xarray tree made from them."""
