"""``brimline status``."""
