"""KIP-1187 through the gateway: DescribeLogDirs with remote sizes, worked out in a child process."""
