"""KIP-61's plan for every broker of a fleet."""
