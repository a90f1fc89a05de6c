"""Kafka's jars: locked, fetched and kept."""
