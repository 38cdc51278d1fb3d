"""Data sets, preprocessing and splits."""
