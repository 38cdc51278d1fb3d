"""What is kept of a sweep: records of runs and the xarray tree made of them."""
