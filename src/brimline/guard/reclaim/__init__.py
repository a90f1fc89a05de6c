"""KIP-61: the ceiling, held by the guard or by hand."""
