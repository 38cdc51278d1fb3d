"""Words that other packages use, and what they are called here."""

from __future__ import annotations

_WIDTHS = "Give widths; gamma = 1 / (2 width²)"
_LENGTHS = "Give widths = [...]: exp(-‖x-z‖² / (2 width²))"
_SEED = "Set seed at the top of the file, above the first [section]"
MEANT = {
    # kernels and their parameters
    "rbf": 'Write "gaussian"',
    "gauss": 'Write "gaussian"',
    "squared_exponential": 'Write "gaussian"',
    "poly": 'Write "polynomial"',
    "laplace": 'Write "laplacian-rbf"',
    "chi2": 'Write "chi-squared"',
    "dirac": 'Write "categorical"',
    "delta": 'Write "categorical"',
    "min": 'Write "intersection"',
    "histogram_intersection": 'Write "intersection"',
    "exp_sine_squared": 'Write "periodic"',
    "expsinesquared": 'Write "periodic"',
    "matern12": 'Write "matern" and nu = 0.5',
    "matern32": 'Write "matern" and nu = 1.5',
    "matern52": 'Write "matern" and nu = 2.5',
    "exponential": 'Write "matern" and nu = 0.5',
    "sigmoid": 'It is not positive semi-definite: write "gaussian" or "polynomial"',
    "tanh": 'It is not positive semi-definite: write "gaussian" or "polynomial"',
    "ngram": 'Write "spectrum"',
    "gamma": _WIDTHS,
    "gammas": _WIDTHS,
    "sigma": _LENGTHS,
    "sigmas": _LENGTHS,
    "length_scale": _LENGTHS,
    "bandwidth": _LENGTHS,
    "coef0": "Write offset",
    "degree": "Write degrees",
    "kernel": "Write function in [[banks.kernels]]",
    # preprocessing
    "standard": 'Write "zscore"',
    "standardize": 'Write scale = "zscore" under [preprocessing]',
    "standardise": 'Write scale = "zscore" under [preprocessing]',
    "StandardScaler": 'Write "zscore"',
    "standardscaler": 'Write "zscore"',
    "MinMaxScaler": 'Write "minmax"',
    "scaling": "Write scale under [preprocessing]",
    "scaler": "Write scale under [preprocessing]",
    "normalize": "Write normalisation in [[banks]] for kernels, scale for features",
    "normalise": "Write normalisation in [[banks]] for kernels, scale for features",
    # splits
    "test_size": "Write train_fraction = 1 - test_size under [splits]",
    "train_size": "Write train_fraction under [splits]",
    "n_splits": 'Write kind = "kfold" and folds under [splits], or repeats of random parts',
    "n_folds": 'Write kind = "kfold" and folds under [splits]',
    "k": 'Write kind = "kfold" and folds under [splits]',
    "cv": 'Write kind = "kfold" under [splits], or [selection] to choose hyperparameters',
    "n_repeats": "Write repeats under [splits]",
    "stratify": "Write stratified = true under [splits]",
    "shuffle": "Remove it: random splits are shuffled",
    "random": 'Write "holdout"',
    "shuffle_split": 'Write "holdout"',
    "random_state": _SEED,
    "random_seed": _SEED,
    # data
    "path": "Write file",
    "csv": "Write file",
    "filename": "Write file",
    "target": "Write label",
    "target_column": "Write label",
    "y": "Write label",
    "pos_label": "Write positive",
    "imputer": "Write impute",
    # search
    "n_trials": "Write trials",
    "n_iter_search": "Write trials",
    "n_candidates": "Write trials",
    "batch_size": "Write batch",
    "sampler": 'Write kind = "random" or kind = "adaptive"',
    "optuna": 'Write "adaptive"',
    "tpe": 'Write "adaptive"',
    "bayesian": 'Write "adaptive"',
    "bayes": 'Write "adaptive"',
    "hyperband": 'Write "halving"',
    "sha": 'Write "halving"',
    "log": 'Write scale = "log"',
    "loguniform": 'Write { low = 0.01, high = 100, scale = "log" }',
    "n_samples": 'Write "training-size"',
    "reduction_factor": "Write factor",
    "eta": "Write factor",
    "min_resources": "Write first",
    "direction": "Remove it: a search minimises the validation error",
    "metric": "Remove it: a search minimises the validation error",
    # methods and running
    "regularization": "Write C",
    "c": "Write C",
    "max_iterations": "Write max_iter",
    "n_iter": "Write max_iter",
    "tolerance": "Write tol",
    "eps": "Write tol",
    "n_jobs": "Give --workers on the command line",
    "workers": "Give --workers on the command line",
    "output_dir": "Write path under [outputs]",
    "mean": 'Write "uniform"',
    "average": 'Write "uniform"',
    "majority_class": 'Write "majority"',
    "dummy": 'Write "majority"',
}


SERIES = {
    "train_fraction": "Write n_train = [100, 1000] for training parts of several sizes",
    "count": "Write n_kernels = [100, 1000] in [[banks]] for banks of several sizes",
}
"""Advice on a list of values, by the key that takes a single one."""


def meant(word: str) -> str:
    """Return what to write instead of a word of another package, or ``""``.

    Examples
    --------
    >>> meant("random_state")
    'Set seed at the top of the file, above the first [section]'
    >>> meant("level")
    ''
    """
    return MEANT.get(word, "")
