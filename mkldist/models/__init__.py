"""Fitted models apart from sweeps and banks: their files, and predictions in blocks."""
