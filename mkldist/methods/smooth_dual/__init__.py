"""Methods that minimise a smoothed or smooth dual over the dual variables: SKM and SMO-MKL."""
