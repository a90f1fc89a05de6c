"""Real Kafka clients, each a process of its own with its own defaults, all driven and read alike.

Why processes: a client may hang for good or keep a connection that no test can end, and a test must be able to stop,
kill and compare any of them. ``child`` states the options and lines they share; ``clients`` is the table of them;
``load`` runs one and collects what it reports; ``read_back`` tells what the broker really stored.
"""
