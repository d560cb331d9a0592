"""Why a VM that may be moved has nowhere to go now."""

from collections.abc import Iterable, Iterator

import numpy as np

from rebalancer.model.plan import Refusal
from rebalancer.planning.movers import Mover
from rebalancer.scheduling.feasibility import Feasibility, evaluate
from rebalancer.scheduling.filters.node_resources_fit import shortfall
from rebalancer.scheduling.state import BoolArray, ClusterState

_MOST_NAMED = 3
"""Nodes that are named for one reason; of more only the number is told."""


def no_other_node(movers: Iterable[Mover], state: ClusterState) -> Iterator[Refusal]:
    """What bars each of them from every other node, in numbers where it is room.

    The code is `no-other-node`. Movers that the rules treat alike are looked at once.
    """
    known: dict[tuple[int, int], Feasibility] = {}
    for mover in movers:
        alike = id(mover.kind), id(mover.rules)
        if alike not in known:
            known[alike] = evaluate(mover.target_pod, state)
        bars = "; ".join(_bars(known[alike], mover.source)) or "there is none"
        yield Refusal(mover.vmi.key, "no-other-node", f"no other node takes it now ({bars})")


def _bars(feasibility: Feasibility, source: int) -> Iterator[str]:
    """Nodes, and what they have in common that bars the pod."""
    pod, state = feasibility.pod, feasibility.state
    is_other = np.ones(len(state.nodes), np.bool_)
    is_other[source] = False
    for rule, mask in feasibility.masks:
        if (barred := is_other & ~mask).any():
            yield f"{_listed(barred, state)}: {rule.name}"
    if (barred := is_other & state.is_draining).any():
        yield f"{_listed(barred, state)}: being drained"
    for resource, amount in sorted(pod.requests.items()):
        headroom = state.headroom(resource)
        if amount and (short := is_other & (headroom < amount)).any():
            roomiest = int(np.where(short, headroom, np.iinfo(np.int64).min).argmax())
            where = f" on {state.nodes[roomiest].name}, the roomiest" if short.sum() > 1 else ""
            yield f"{_listed(short, state)}: {shortfall(pod, resource, state, roomiest)}{where}"


def _listed(nodes: BoolArray, state: ClusterState) -> str:
    indexes = np.flatnonzero(nodes).tolist()
    if len(indexes) > _MOST_NAMED:
        return f"{len(indexes)} nodes"
    return ", ".join(state.nodes[index].name for index in indexes)
