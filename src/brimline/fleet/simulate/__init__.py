"""What if: other limits, some days ahead."""
