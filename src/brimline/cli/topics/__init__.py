"""``brimline topics``."""
