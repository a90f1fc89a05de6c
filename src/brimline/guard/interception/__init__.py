"""The gateway is in the path only when it matters: when the kernel turns clients aside, and when no longer."""
