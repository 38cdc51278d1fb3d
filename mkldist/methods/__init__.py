"""The methods, one a file; the contract is :mod:`mkldist.solvers.base`."""
