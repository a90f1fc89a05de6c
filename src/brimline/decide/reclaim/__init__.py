"""KIP-61: which segments go first. Pure."""
