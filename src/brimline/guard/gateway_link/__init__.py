"""The guard's end of the line to its gateway."""
