"""Full disks of other brokers, and the cordon on one's own."""
