"""``brimline log-dirs``."""
