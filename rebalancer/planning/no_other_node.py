"""Why a VM that may be moved has nowhere to go now."""

from rebalancer.model.plan import Refusal
from rebalancer.planning.movers import Mover
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.filters import NODE_RESOURCES_FIT
from rebalancer.scheduling.state import ClusterState


def no_other_node(mover: Mover, state: ClusterState) -> Refusal:
    """What bars it from each other node, in numbers where it is room; equal answers are told once.

    The code is `no-other-node`.
    """
    feasibility = evaluate(mover.target_pod, state)
    barred: dict[str, dict[str, None]] = {}
    for node in range(len(state.nodes)):
        if node == mover.source:
            continue
        if state.is_draining[node]:
            barred.setdefault("being drained", {})[state.nodes[node].name] = None
        for reason in feasibility.reasons(node):
            text = reason.message if reason.code == NODE_RESOURCES_FIT.name else reason.code
            barred.setdefault(text, {})[reason.node] = None
    detail = "; ".join(f"{', '.join(nodes)}: {text}" for text, nodes in sorted(barred.items()))
    return Refusal(
        mover.vmi.key, "no-other-node", f"no other node takes it now ({detail or 'there is none'})"
    )
