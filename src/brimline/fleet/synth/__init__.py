"""A made-up fleet."""
