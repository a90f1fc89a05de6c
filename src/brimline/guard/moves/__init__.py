"""Moves between log dirs into a full one, held up until it has room."""
