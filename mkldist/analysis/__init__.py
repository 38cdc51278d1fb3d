"""Summaries of results over splits, as data and as tables for a terminal."""
