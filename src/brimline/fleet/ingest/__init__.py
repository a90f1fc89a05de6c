"""Landed snapshots into the bronze tables, each once."""
