"""kube-scheduler: binds pending pods, or says why none of the nodes takes them."""

from datetime import UTC, datetime

import numpy as np
from msgspec.structs import replace

from rebalancer.cluster.simulation.agenda import Agenda
from rebalancer.cluster.simulation.world import World
from rebalancer.model.keys import GOAL_UID
from rebalancer.model.objects import Pod
from rebalancer.scheduling.feasibility import Feasibility, evaluate
from rebalancer.scheduling.fit_error import fit_error
from rebalancer.scheduling.state import ClusterState, IntArray

_MAX_NODE_SCORE = 100
_EPOCH = datetime.min.replace(tzinfo=UTC)


class Scheduler:
    """The default profile; of lower pods it preempts lock pods only."""

    def __init__(self, world: World, agenda: Agenda) -> None:
        self._world = world
        self._agenda = agenda

    def sync(self) -> None:
        """Tries every pending pod once, by priority and then age."""
        pending = [pod for pod in self._world.pods.values() if _is_pending(pod)]
        for pod in sorted(pending, key=lambda p: (-p.priority, p.created_at or _EPOCH, p.key)):
            self._schedule(pod)

    def _schedule(self, pod: Pod) -> None:
        bound = [other for other in self._world.pods.values() if other.node_name]
        feasibility = self._evaluate(pod, bound)
        if node := _best_node(feasibility):
            self._bind(pod, node)
        elif not self._preempt_lock(pod, bound):
            self._world.put_pod(
                replace(
                    pod,
                    unschedulable_since=pod.unschedulable_since or self._agenda.now,
                    unschedulable_message=fit_error(feasibility),
                )
            )

    def _evaluate(self, pod: Pod, bound: list[Pod]) -> Feasibility:
        """On what is bound only: what is still to be bound holds no room for the scheduler."""
        return evaluate(pod, ClusterState(replace(self._world.snapshot(), pods=tuple(bound))))

    def _preempt_lock(self, pod: Pod, bound: list[Pod]) -> bool:
        """Binds the pod to the best node that is barred by lock pods of lower priority only."""
        locks = [o for o in bound if GOAL_UID in o.labels and o.priority < pod.priority]
        if not locks or not pod.can_preempt:
            return False
        node = _best_node(self._evaluate(pod, [other for other in bound if other not in locks]))
        if node is None:
            return False
        for lock in locks:
            if lock.node_name == node:
                self._world.note(f"pod {pod.key} preempts lock pod {lock.key}")
                self._world.remove_pod(lock)
        self._bind(pod, node)
        return True

    def _bind(self, pod: Pod, node: str) -> None:
        self._world.note(f"pod {pod.key} bound to {node}")
        self._world.put_pod(
            replace(
                pod,
                node_name=node,
                nominated_node_name=None,
                unschedulable_since=None,
                unschedulable_message="",
            )
        )


def _is_pending(pod: Pod) -> bool:
    """Whether the default scheduler would try it, and the filters know all that it asks for."""
    return (
        pod.node_name is None
        and not (pod.is_finished or pod.is_gated or pod.is_terminating or pod.unmodelled)
        and pod.scheduler_name == "default-scheduler"
    )


def _best_node(feasibility: Feasibility) -> str | None:
    """The feasible node with the highest score, the first by name among equals."""
    nodes = feasibility.state.nodes
    scores = _least_allocated(feasibility.pod, feasibility.state)
    ranked = [(-int(scores[i]), nodes[i].name) for i in np.flatnonzero(feasibility.feasible)]
    return min(ranked)[1] if ranked else None


def _least_allocated(pod: Pod, state: ClusterState) -> IntArray:
    """How much of cpu and memory the pod would leave, in whole points. Axis: node.

    Source: kube-scheduler v1.36.3 pkg/scheduler/framework/plugins/noderesources/
    least_allocated.go, with the default weights.
    """
    points = np.zeros(len(state.nodes), np.int64)
    for resource in ("cpu", "memory"):
        allocatable = np.maximum(state.allocatable(resource), 1)
        left = np.maximum(state.headroom(resource) - pod.requests.get(resource, 0), 0)
        points += left * _MAX_NODE_SCORE // allocatable
    return points // 2
