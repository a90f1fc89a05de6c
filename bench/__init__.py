"""Benchmarks. They compare in one run and print ratios: machines are noisy, ratios less so."""
