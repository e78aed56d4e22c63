"""A worker of a fit: orders of the client, the thread of the program, messages to other workers."""
