"""Real Kafka clients, each a process of its own with its own defaults, all driven and read alike.

Why processes: a client may hang for good or keep a connection that nobody can end, and whoever runs it must be able to
stop, kill and compare any of them. ``child`` states the options and lines they share; ``table`` is the table of them;
``process`` runs one and hears what it reports.
"""
