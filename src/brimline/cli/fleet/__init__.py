"""``brimline fleet``."""
