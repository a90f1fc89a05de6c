"""One client of one cluster: how to reach it, how to log in, and what its failures mean."""
