"""Kafka's protocol without a socket: bytes in, facts out."""
