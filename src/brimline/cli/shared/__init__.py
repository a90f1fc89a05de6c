"""What several commands draw, print and return with."""
