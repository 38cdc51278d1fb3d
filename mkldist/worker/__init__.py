"""Work of a task on a worker: build a bank, run solvers on it, score and record them."""
