"""KIP-1187 from outside: what of a log is in the remote store, and what only here."""
