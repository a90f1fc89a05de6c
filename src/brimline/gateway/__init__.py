"""Stands between clients and a broker: forwards everything, and refuses Produce for what is fenced."""
