"""The ballast: space that is given back before a disk runs out."""
