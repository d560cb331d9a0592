"""FitPendingVMs: live-migrates other VMs so that a Pending one has room on one node."""

from rebalancer.policy.model import Mode
from rebalancer.strategy import Strategy
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings
from rebalancer_strategies.fit_pending_vms.strategy import propose

STRATEGY = Strategy(
    name="FitPendingVMs",
    settings_type=FitPendingVMsSettings,
    propose=propose,
    default_mode=Mode.AUTOMATIC,
    rank=100,
)
