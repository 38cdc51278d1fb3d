"""Coordination of a sweep: clusters, work queue, retries, resuming, results and progress."""
