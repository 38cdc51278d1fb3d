"""Kernel functions, a file each, and their registry."""
