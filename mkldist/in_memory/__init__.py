"""One call that solves a problem on Gram matrices in memory."""
