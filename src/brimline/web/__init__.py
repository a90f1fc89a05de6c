"""``brimline web``: pages over the guards of a cluster and the warehouse of a fleet. Read-only; it changes nothing."""
