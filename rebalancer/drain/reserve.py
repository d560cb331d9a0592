"""Whether the VMs of any one node could still start again, once another node has been emptied."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from rebalancer.headroom.failover import LossOutcome, Verdict, failover, node_domains
from rebalancer.model.plan import Proposal, Reason
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.wording import first_few
from rebalancer.planning.replay import carried_out
from rebalancer.scheduling.state import ClusterState


def lost_reserve(proposal: Proposal, snapshot: Snapshot) -> Reason | None:
    """The losses that are survived now and would not be once the goal's node is empty and closed.

    None if there are none; one that is not survived now is not the drain's fault.
    """
    name = proposal.goal.subject.name
    closed = tuple(
        replace(node, is_unschedulable=True) if node.name == name else node
        for node in snapshot.nodes
    )
    after = replace(carried_out(snapshot, proposal.moves), nodes=closed)
    then = {loss.domain: loss for loss in _bad_losses(after, name)}
    worse = then.keys() - {loss.domain for loss in _bad_losses(snapshot, name)} if then else set()
    if not worse:
        return None
    return Reason("failover-lost", _in_words(sorted(worse), then), node=name)


def _bad_losses(snapshot: Snapshot, drained: str) -> Iterator[LossOutcome]:
    state = ClusterState(snapshot)
    domains = {name: nodes for name, nodes in node_domains(state).items() if name != drained}
    for loss in failover(state, domains).losses:
        if loss.verdict is Verdict.LEAVES_DOWN:
            yield loss


def _in_words(worse: list[str], losses: Mapping[str, LossOutcome]) -> str:
    first = losses[worse[0]]
    names = first_few([each.vmi for each in first.left_down])
    more = f"; so would that of {len(worse) - 1} other nodes" if len(worse) > 1 else ""
    return (
        f"once it is empty, the loss of {worse[0]} would leave {len(first.left_down)} VMs down"
        f" ({names}){more}"
    )
