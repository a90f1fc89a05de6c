"""Java's properties files as a broker reads them, and the key stores they name."""
