"""Every writer of a broker's disk as a load, and whether the broker outlives it."""
