"""The RebalancerPolicy: what the administrator decides, read from YAML and the environment."""
