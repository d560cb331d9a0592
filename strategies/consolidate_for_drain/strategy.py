"""From nodes that bear a sign to proposals."""

from collections.abc import Sequence

from rebalancer.drain.proposal import Drain, propose_drains
from rebalancer.model.objects import MigrationConfiguration, Node
from rebalancer.model.plan import Goal, Proposal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.view import View
from rebalancer.policy.model import Section
from rebalancer.scheduling.drain_sign import drain_sign
from rebalancer_strategies.consolidate_for_drain.settings import ConsolidateForDrainSettings


def propose(view: View, settings: Section) -> Sequence[Proposal]:
    """One proposal for each node that is to be emptied, by name."""
    assert isinstance(settings, ConsolidateForDrainSettings)
    snapshot = view.snapshot
    signs = (
        Drain(node.name, _sign(node, snapshot.migration_configuration, settings))
        for node in sorted(snapshot.nodes, key=lambda node: node.name)
    )
    drains = [drain for drain in signs if drain.sign]
    return tuple(propose_drains(drains, view, keeps_reserve=settings.keep_failover_reserve))


def objection(goal: Goal, snapshot: Snapshot, settings: Section) -> str | None:
    """Whether the drain has been called off."""
    assert isinstance(settings, ConsolidateForDrainSettings)
    node = snapshot.node_by_name.get(goal.subject.name)
    if node is None:
        return f"node {goal.subject.name} is gone"
    if _sign(node, snapshot.migration_configuration, settings):
        return None
    return f"node {node.name} is no longer to be emptied"


def _sign(
    node: Node, configuration: MigrationConfiguration, settings: ConsolidateForDrainSettings
) -> str:
    cordon = "cordoned" if settings.cordon_is_drain and node.is_unschedulable else ""
    return drain_sign(node, configuration) or cordon
