"""Pictures of what a sweep found: computed, drawn, and kept beside its results."""
