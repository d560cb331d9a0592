"""The strategies that ship with the rebalancer; installed as `rebalancer_strategies`."""
