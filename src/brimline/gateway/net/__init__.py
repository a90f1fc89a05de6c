"""Bytes: sockets, connections, and the one thread that moves them."""
