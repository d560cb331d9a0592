"""Why a VM that may be moved has nowhere to go now."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from rebalancer.model.objects import Pod
from rebalancer.model.plan import Refusal
from rebalancer.planning.movers import Mover
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.filters.node_resources_fit import shortfall
from rebalancer.scheduling.state import ClusterState, IntArray

_NONE = np.empty(0, np.int64)
_MOST_NAMED = 3
"""Nodes that are named for one reason; of more only the number is told."""


def no_other_node(movers: Iterable[Mover], state: ClusterState) -> Iterator[Refusal]:
    """What bars each of them from every other node, in numbers where it is room.

    The code is `no-other-node`. Movers that the rules treat alike are looked at once.
    """
    asked = list(movers)
    by_source: dict[tuple[int, int], dict[int, Mover]] = {}
    for mover in asked:
        by_source.setdefault(_alike(mover), {}).setdefault(mover.source, mover)
    bars = {alike: list(_bars([*found.values()][:2], state)) for alike, found in by_source.items()}
    for mover in asked:
        found = ((bar, bar.nodes[bar.nodes != mover.source]) for bar in bars[_alike(mover)])
        told = [f"{_listed(nodes, state)}: {bar.tell(nodes)}" for bar, nodes in found if len(nodes)]
        why = "; ".join(told) or "there is none"
        yield Refusal(mover.vmi.key, "no-other-node", f"no other node takes it now ({why})")


def _alike(mover: Mover) -> tuple[int, int]:
    """Equal for movers that the rules treat alike."""
    return id(mover.kind), id(mover.rules)


class _Bar(NamedTuple):
    """What bars a pod."""

    nodes: IntArray
    """Indexes of those that it bars it from."""
    tell: Callable[[IntArray], str]
    """In words, of some of these nodes."""


def _bars(examples: Sequence[Mover], state: ClusterState) -> Iterator[_Bar]:
    """`examples`: of movers that are alike; two on different nodes, if there are. Each is barred
    from its own node by what keeps a VM off its own launcher pods, which bars only itself.
    """
    pod = examples[0].target_pod
    answers = [evaluate(example.target_pod, state).masks for example in examples]
    rules = [
        (rules[0].name, ~np.logical_or.reduce(masks))
        for rules, masks in (zip(*same, strict=True) for same in zip(*answers, strict=True))
    ]
    for name, is_barred in (*rules, ("being drained", state.is_draining)):
        yield _Bar(np.flatnonzero(is_barred), partial(_named, name))
    for resource, amount in sorted(pod.requests.items()):
        nodes = np.flatnonzero(state.headroom(resource) < amount) if amount else _NONE
        yield _Bar(nodes, partial(_short_of, resource, pod, state))


def _named(name: str, _nodes: IntArray) -> str:
    return name


def _short_of(resource: str, pod: Pod, state: ClusterState, nodes: IntArray) -> str:
    roomiest = int(nodes[state.headroom(resource)[nodes].argmax()])
    where = f" on {state.nodes[roomiest].name}, the roomiest" if len(nodes) > 1 else ""
    return shortfall(pod, resource, state, roomiest) + where


def _listed(nodes: IntArray, state: ClusterState) -> str:
    if len(nodes) > _MOST_NAMED:
        return f"{len(nodes)} nodes"
    return ", ".join(state.nodes[index].name for index in nodes.tolist())
