"""All filters for one pod: which nodes take it, and for the others every reason why not."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rebalancer.model.objects import Pod
from rebalancer.model.plan import Reason
from rebalancer.scheduling.filters import NODE_RESOURCES_FIT, RULES, STATIC_RULES, Filter
from rebalancer.scheduling.state import BoolArray, ClusterState


class Feasibility(NamedTuple):
    """What the filters say of one pod. Arrays: one flag per node, in snapshot order."""

    pod: Pod
    state: ClusterState
    masks: tuple[tuple[Filter, BoolArray], ...]
    has_room: BoolArray

    @property
    def allowed(self) -> BoolArray:
        """Which nodes would take the pod if they had room."""
        return self._all(self.masks)

    @property
    def allowed_wherever_pods_are(self) -> BoolArray:
        """As `allowed`, but without the rules that moves of other pods may change."""
        return self._all((rule, mask) for rule, mask in self.masks if rule in STATIC_RULES)

    def _all(self, masks: Iterable[tuple[Filter, BoolArray]]) -> BoolArray:
        allowed = np.ones_like(self.has_room)
        for _, mask in masks:
            allowed &= mask
        return allowed

    @property
    def feasible(self) -> BoolArray:
        """Which nodes take the pod now."""
        return self.allowed & self.has_room

    def reasons(self, node: int) -> tuple[Reason, ...]:
        """Everything that bars the pod from one node, rules first."""
        masks = (*self.masks, (NODE_RESOURCES_FIT, self.has_room))
        return tuple(
            Reason(code=rule.name, message=message, node=self.state.nodes[node].name)
            for rule, mask in masks
            if not mask[node]
            for message in rule.reasons(self.pod, self.state, node)
        )


def evaluate(pod: Pod, state: ClusterState) -> Feasibility:
    """Asks every filter about the pod on every node."""
    return Feasibility(
        pod=pod,
        state=state,
        masks=tuple((rule, rule.allowed(pod, state)) for rule in RULES),
        has_room=NODE_RESOURCES_FIT.allowed(pod, state),
    )


def all_allow(rules: Iterable[Filter], pod: Pod, state: ClusterState) -> BoolArray:
    """Which nodes all of these rules let the pod go to."""
    allowed = np.ones(len(state.nodes), np.bool_)
    for rule in rules:
        allowed &= rule.allowed(pod, state)
    return allowed
