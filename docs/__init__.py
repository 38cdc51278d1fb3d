"""Sources of the site: ``sphinx-build -W -n docs docs/_build``."""
