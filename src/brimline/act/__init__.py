"""Changes to a running cluster, each with what undoes it. Nothing else in Brimline writes to a broker."""
