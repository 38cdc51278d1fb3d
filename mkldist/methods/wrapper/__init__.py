"""Methods that wrap a support vector machine: an outer step on kernel weights, an inner machine."""
