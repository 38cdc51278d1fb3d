"""Semi-supervised methods on a graph Laplacian, with one kernel or many."""
