"""The `rebalancer` command."""
