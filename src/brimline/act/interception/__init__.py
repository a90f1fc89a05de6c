"""Turning clients aside to the gateway: rules in the kernel, held by a small process of their own."""
