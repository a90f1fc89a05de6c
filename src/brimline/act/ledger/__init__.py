"""The ledger: what was done to a cluster's data, on record before it is done."""
