"""Shared parts of the benchmarks: data, libraries, timing in fresh processes, tables."""
