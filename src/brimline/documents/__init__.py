"""What crosses between processes: typed, and written and read in one place."""
