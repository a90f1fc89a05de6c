"""The clients of ``brimline.torture.clients`` in tests.

``load`` runs one and collects what it reports, ``verification`` tells whether the broker stored what was promised.
"""
