"""A fit on a cluster of Ray: actors that run the program, and the driver that watches them."""
