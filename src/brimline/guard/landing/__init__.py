"""Snapshots for the fleet."""
