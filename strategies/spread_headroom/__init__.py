"""SpreadHeadroom: keeps room for failures and large VMs, then evens out load."""

from rebalancer.strategy import Strategy
from rebalancer_strategies.spread_headroom.goals import NAME
from rebalancer_strategies.spread_headroom.settings import SpreadHeadroomSettings
from rebalancer_strategies.spread_headroom.strategy import contradictions, propose

STRATEGY = Strategy(
    name=NAME,
    settings_type=SpreadHeadroomSettings,
    propose=propose,
    contradictions=contradictions,
    rank=300,
)
