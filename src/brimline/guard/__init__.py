"""The daemon beside a broker: it measures, decides, publishes. Each is a task of its own; none can block another."""
