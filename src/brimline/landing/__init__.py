"""The snapshot files between guards and fleet: schema, writer, reader.

Both sides import it; neither imports the other.
"""
