"""One fit: inputs, sets, the loop, monitor, checkpoint, splits, out-of-bag scores."""
