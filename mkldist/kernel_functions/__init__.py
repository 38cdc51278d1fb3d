"""Kernel functions and their registry."""
