"""One file for each command; its function `command` is imported when the command runs."""
