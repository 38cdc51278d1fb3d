"""Where and when the work is done: clusters, tasks, resume, progress."""
