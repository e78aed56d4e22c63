"""Runs of the commands: each is imported when its command runs."""
