"""``brimline reclaim``."""
