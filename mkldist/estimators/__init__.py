"""Estimators with the interface of scikit-learn, on banks of kernels."""
