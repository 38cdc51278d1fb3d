"""Plan of a sweep before anything runs: runs, banks and batches, and their expected cost."""
