"""Measurements; their figures are in docs/benchmarks.md and docs/differential.md."""
