"""What the results say: summaries over splits."""
