"""Tasks of a worker: build a bank, run solvers on it, score and record the runs."""
