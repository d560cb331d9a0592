"""What an administrator can decide about ConsolidateForDrain."""

from pydantic import Field

from rebalancer.policy.model import Section


class ConsolidateForDrainSettings(Section):
    cordon_is_drain: bool = Field(
        default=False,
        description="A cordoned node is emptied too. Otherwise only one with a label or annotation"
        " rebalancer/drain or with KubeVirt's drain taint is.",
    )
