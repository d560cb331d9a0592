"""What an administrator can decide about ConsolidateForDrain."""

from pydantic import Field

from rebalancer.policy.model import Section


class ConsolidateForDrainSettings(Section):
    cordon_is_drain: bool = Field(
        default=False,
        description="A cordoned node is emptied too. Otherwise only one with a label or annotation"
        " rebalancer/drain or with KubeVirt's drain taint is.",
    )
    keep_failover_reserve: bool = Field(
        default=False,
        description="A node is not emptied if, once it is, the loss of another one would leave VMs"
        " down that it does not now. False: that is only told.",
    )
