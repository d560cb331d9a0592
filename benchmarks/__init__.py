"""Measurements of the planner and of the programs it is compared with; see docs/benchmarks.md."""
