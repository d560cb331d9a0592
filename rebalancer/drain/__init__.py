"""Emptying nodes: one proposal for each, which nodes are cheapest, and a pool in rolling order."""
