"""ConsolidateForDrain: live-migrates VMs off the nodes that are to be emptied."""

from rebalancer.drain.proposal import NAME
from rebalancer.policy.model import Mode
from rebalancer.strategy import Strategy
from rebalancer_strategies.consolidate_for_drain.settings import ConsolidateForDrainSettings
from rebalancer_strategies.consolidate_for_drain.strategy import objection, propose

STRATEGY = Strategy(
    name=NAME,
    settings_type=ConsolidateForDrainSettings,
    propose=propose,
    default_mode=Mode.AUTOMATIC,
    objection=objection,
    rank=200,
)
