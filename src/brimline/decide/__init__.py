"""Pure functions of facts: no clock, no I/O. Each module opens with its invariant in prose."""
