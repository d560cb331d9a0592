"""The whole rebalancer, as its command, on the real control plane."""
