"""A package: fixtures of its scope end with it."""
