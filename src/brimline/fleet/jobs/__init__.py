"""One module for each table that answers a question."""
