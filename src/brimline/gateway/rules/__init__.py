"""What becomes of the requests that the gateway looks into."""
