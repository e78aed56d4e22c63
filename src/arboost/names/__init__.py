"""Names of other libraries' parameters, metrics and losses, and the answer to an unknown name."""
