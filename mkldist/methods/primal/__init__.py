"""PrimalMKL: alternating Newton steps on the machine and gradient steps on the weights."""
