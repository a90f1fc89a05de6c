"""KIP-1257: retention in percent."""
