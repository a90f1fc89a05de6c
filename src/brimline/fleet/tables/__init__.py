"""The warehouse: which tables there are, their columns, and how they are kept."""
