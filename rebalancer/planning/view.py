"""The cluster as one goal sees it, with what all goals that see it so have in common."""

from functools import cached_property

from msgspec import Struct

from rebalancer.model.objects import Pod
from rebalancer.model.plan import Proposal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.fit import SecondStage
from rebalancer.planning.isolation import IsolatedSearch
from rebalancer.planning.mover_kinds import placement_signature
from rebalancer.planning.movers import Movers, find_movers
from rebalancer.planning.outlook import with_proposal
from rebalancer.scheduling.state import ClusterState

Needs = tuple[object, ...]


class View(Struct, frozen=True, dict=True):
    snapshot: Snapshot
    context: PlanningContext
    second_stage: SecondStage
    """One for all goals, which share its time."""

    @classmethod
    def of(cls, snapshot: Snapshot, context: PlanningContext) -> "View":
        """With the whole of the policy's deadline to come."""
        return cls(snapshot, context, IsolatedSearch(context.planning))

    @cached_property
    def state(self) -> ClusterState:
        return ClusterState(self.snapshot)

    @cached_property
    def movers(self) -> Movers:
        return find_movers(self.state, self.context)

    @cached_property
    def plans(self) -> dict[Needs, Proposal]:
        """What has been planned so far, for those that need the same."""
        return {}

    def needs(self, pod: Pod) -> Needs:
        """Equal for pods that can take each other's place."""
        requests = tuple(sorted(pod.requests.items()))
        return requests, placement_signature(pod, self.state)

    def without(self, pod: Pod) -> "View":
        """What the pod comes upon: room that it holds already must not be in its way."""
        if all(placed.uid != pod.uid for placed, _ in self.state.placements):
            return self
        return View(self.snapshot.without_pod(pod), self.context, self.second_stage)

    def after(self, proposal: Proposal) -> "View":
        """What the next goal sees; the same view where the proposal changes nothing."""
        snapshot = with_proposal(self.snapshot, proposal)
        return (
            self if snapshot is self.snapshot else View(snapshot, self.context, self.second_stage)
        )
