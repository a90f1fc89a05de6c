"""What a cluster can be asked, one module for each question."""
