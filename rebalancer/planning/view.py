"""The cluster as one goal sees it, with what all goals that see it so have in common."""

from functools import cached_property
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rebalancer.model.keys import OPT_OUT, UNSCHEDULABLE_TAINT
from rebalancer.model.objects import Pod, VirtualMachineInstance
from rebalancer.model.plan import Proposal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.fit import SecondStage
from rebalancer.planning.isolation import IsolatedSearch
from rebalancer.planning.mover_kinds import placement_signature
from rebalancer.planning.movers import Movers, find_movers
from rebalancer.planning.movers_after import movers_after
from rebalancer.planning.outlook import change_by
from rebalancer.scheduling.state import ClusterState

Needs = tuple[object, ...]
T = TypeVar("T", Pod, VirtualMachineInstance)


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

    @cached_property
    def without_cordons(self) -> "View | None":
        """As if no node were cordoned; None where none is."""
        if not self.state.is_unschedulable.any():
            return None
        nodes = tuple(
            replace(
                node,
                is_unschedulable=False,
                taints=tuple(taint for taint in node.taints if taint.key != UNSCHEDULABLE_TAINT),
            )
            for node in self.snapshot.nodes
        )
        return replace(self, snapshot=replace(self.snapshot, nodes=nodes))

    @cached_property
    def without_opt_outs(self) -> "View | None":
        """As if no VM were opted out; None where none is."""
        refusals = (refusal for found in self.movers.refused.values() for refusal in found)
        if all(refusal.code != "opted-out" for refusal in refusals):
            return None
        vmis = tuple(_opted_in(vmi) for vmi in self.snapshot.vmis)
        pods = tuple(_opted_in(pod) for pod in self.snapshot.pods)
        return replace(self, snapshot=replace(self.snapshot, vmis=vmis, pods=pods))

    def needs(self, pod: Pod) -> Needs:
        """Equal for pods that can take each other's place."""
        requests = tuple(sorted(pod.requests.items()))
        return requests, placement_signature(pod, self.state)

    def without(self, pod: Pod) -> "View":
        """What the pod comes upon: room that it holds already must not be in its way."""
        position = self.snapshot.position_of_pod.get(pod.uid)
        if position is None or self.state.node_of_pod[position] < 0:
            return self
        return View(self.snapshot.without_pod(pod), self.context, self.second_stage)

    def after(self, proposal: Proposal) -> "View":
        """What the next goal sees; the same view where the proposal changes nothing."""
        change = change_by(proposal, self.snapshot)
        if not change:
            return self
        after = View(self.snapshot.with_change(change), self.context, self.second_stage)
        known = vars(self)
        if "state" in known and (state := self.state.after(change, after.snapshot)):
            vars(after)["state"] = state
            if "movers" in known and (movers := movers_after(change, self.movers, state)):
                vars(after)["movers"] = movers
        return after


def _opted_in(thing: T) -> T:
    if OPT_OUT not in thing.annotations:
        return thing
    others = {key: value for key, value in thing.annotations.items() if key != OPT_OUT}
    return replace(thing, annotations=others)
