"""All kubelets: admit pods that come with a node, start what is bound, end what is deleted."""

from functools import partial

from msgspec.structs import replace

from rebalancer.cluster.simulation.agenda import Agenda
from rebalancer.cluster.simulation.world import World
from rebalancer.model.objects import Pod
from rebalancer.scheduling.filters import NODE_RESOURCES_FIT
from rebalancer.scheduling.state import ClusterState

_START_SECONDS = 2.0
_TERMINATION_SECONDS = 2.0


class Kubelet:
    def __init__(self, world: World, agenda: Agenda) -> None:
        self._world = world
        self._agenda = agenda

    def sync(self) -> None:
        for pod in list(self._world.pods.values()):
            if pod.is_terminating:
                self._agenda.once(pod.uid, "gone", _TERMINATION_SECONDS, partial(self._gone, pod))
            elif pod.node_name and pod.phase == "Pending":
                self._agenda.once(pod.uid, "started", _START_SECONDS, partial(self._start, pod))

    def admit(self, pod: Pod) -> Pod:
        """The pod, or what becomes of it when its node has no room for it.

        Source: Kubernetes v1.36.3 pkg/kubelet/lifecycle/predicate.go; reasons OutOfmemory etc.
        """
        snapshot = self._world.snapshot()
        bound = tuple(other for other in snapshot.pods if other.node_name)
        state = ClusterState(replace(snapshot, pods=bound))
        node = state.index.get(pod.node_name or "")
        if node is None or NODE_RESOURCES_FIT.allowed(pod, state)[node]:
            return pod
        self._world.note(f"pod {pod.key} refused by node {pod.node_name}: no room")
        return replace(pod, phase="Failed")

    def _start(self, pod: Pod) -> None:
        current = self._current(pod)
        if current and not current.is_finished:
            self._world.put_pod(replace(current, phase="Running"))

    def _gone(self, pod: Pod) -> None:
        if current := self._current(pod):
            self._world.note(f"pod {pod.key} is gone")
            self._world.remove_pod(current)

    def _current(self, pod: Pod) -> Pod | None:
        current = self._world.pods.get(pod.key)
        return current if current and current.uid == pod.uid else None
