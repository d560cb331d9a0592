"""Traces out of the process: to a collector, to the console, to a file."""
