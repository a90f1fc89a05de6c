"""Frames and connections that nobody should send, at a real broker behind a fence; the broker itself is the judge."""
