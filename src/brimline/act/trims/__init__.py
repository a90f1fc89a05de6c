"""Trims: the one thing that deletes records, and how it is known to be done."""
