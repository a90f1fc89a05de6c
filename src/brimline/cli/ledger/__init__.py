"""``brimline ledger``."""
