"""What can go wrong, injected on purpose: a module for each kind of thing it happens to, and one table of all."""
