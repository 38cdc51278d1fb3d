"""Methods that minimise a loss plus a block norm: SpicyMKL's proximal iteration and ElastMKL."""
