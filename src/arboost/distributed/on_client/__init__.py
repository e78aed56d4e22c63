"""The client of a fit: the choice of workers, calls to them, and one attempt after the other."""
