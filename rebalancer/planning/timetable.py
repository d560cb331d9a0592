"""When moves would start and end under the limits on migrations, and which to start first."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from rebalancer.model.objects import MigrationConfiguration
from rebalancer.model.plan import Move
from rebalancer.policy.model import BudgetPolicy


class MigrationLimits(NamedTuple):
    """How many migrations may be in flight at once; with 0 none ever starts."""

    per_cluster: int
    outbound_per_node: int
    inbound_per_node: int


def migration_limits(
    policy: BudgetPolicy, configuration: MigrationConfiguration
) -> MigrationLimits:
    """Those of the policy and of the KubeVirt CR, whichever is lower.

    KubeVirt has no limit on what arrives at a node.
    """
    return MigrationLimits(
        _lower(policy.max_in_flight_per_cluster, configuration.parallel_migrations_per_cluster),
        _lower(policy.max_outbound_per_node, configuration.parallel_outbound_migrations_per_node),
        policy.max_inbound_per_node,
    )


def start_order(ready: Collection[Move], unstarted: Sequence[Move]) -> list[Move]:
    """The ready moves, the most urgent first.

    Urgent is what the longest chain of moves waits for; among equals, what leaves the node that
    has the most left to send, so that the sources take turns and end together. Ties go by the
    order of `unstarted`, which holds all moves that have not started, the ready ones included.
    """
    chains = _chain_seconds(unstarted)
    outbound = Counter[str]()
    for move in unstarted:
        outbound[move.source] += round(move.seconds)
    ready_ids = {move.id for move in ready}
    waiting = [move for move in unstarted if move.id in ready_ids]
    order = []
    while waiting:
        first = max(waiting, key=lambda move: (chains[move.id], outbound[move.source]))
        waiting.remove(first)
        outbound[first.source] -= round(first.seconds)
        order.append(first)
    return order


def timetable(moves: Sequence[Move], limits: MigrationLimits) -> Mapping[str, tuple[float, float]]:
    """Start and end of each move by id, in seconds from the beginning; an estimate.

    Whatever may start does at once, the most urgent first, as the executor has it, and takes as
    long as it is estimated to. A limit of 0 is taken as 1.
    """
    times: dict[str, tuple[float, float]] = {}
    now = 0.0
    while len(times) < len(moves):
        unstarted = [move for move in moves if move.id not in times]
        in_flight = [move for move in moves if move.id in times and times[move.id][1] > now]
        ended = times.keys() - {move.id for move in in_flight}
        ready = [move for move in unstarted if ended.issuperset(move.after)]
        for move in start_order(ready, unstarted):
            if _may_start(move, in_flight, limits):
                times[move.id] = now, now + move.seconds
                in_flight.append(move)
        now = min(times[move.id][1] for move in in_flight)
    return times


def estimated_seconds(moves: Sequence[Move], limits: MigrationLimits) -> float:
    """How long all the moves take; 0 without any."""
    return max((end for _, end in timetable(moves, limits).values()), default=0.0)


def _may_start(move: Move, in_flight: Sequence[Move], limits: MigrationLimits) -> bool:
    return (
        len(in_flight) < max(limits.per_cluster, 1)
        and _count(move.source, (m.source for m in in_flight)) < max(limits.outbound_per_node, 1)
        and _count(move.target, (m.target for m in in_flight)) < max(limits.inbound_per_node, 1)
    )


def _count(node: str, nodes: Iterable[str]) -> int:
    return sum(each == node for each in nodes)


def _chain_seconds(moves: Sequence[Move]) -> Mapping[str, float]:
    """For each move how long it and the longest chain of moves that wait for it take."""
    own = {move.id: move.seconds for move in moves}
    chains = dict(own)
    for move in reversed(moves):
        for earlier in own.keys() & set(move.after):
            chains[earlier] = max(chains[earlier], own[earlier] + chains[move.id])
    return chains


def _lower(ours: int | None, kubevirts: int) -> int:
    return kubevirts if ours is None else min(ours, kubevirts)
