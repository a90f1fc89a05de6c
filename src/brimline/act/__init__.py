"""Changes to a running cluster, and the ledger in which each is written down before it is made.

Nothing else in Brimline writes to a broker.
"""
