"""The fitted model: forest arrays, links, raw scores, leaves, quantiles."""
