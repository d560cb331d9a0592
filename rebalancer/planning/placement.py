"""Where movers may go: their own rules together with those of the pods that are there."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from rebalancer.model.objects import Pod
from rebalancer.planning import cost as costs
from rebalancer.planning.mover_kinds import Rules, Signature
from rebalancer.policy.model import CostPolicy
from rebalancer.scheduling.feasibility import all_allow
from rebalancer.scheduling.filters import PLACEMENT_RULES, STATIC_RULES
from rebalancer.scheduling.filters.inter_pod_affinity import (
    INTER_POD_AFFINITY,
    barring_groups,
    clear_of,
    own_terms_allow,
)
from rebalancer.scheduling.state import BoolArray, ClusterState, IntArray

_OWN_PLACEMENT_RULES = tuple(rule for rule in PLACEMENT_RULES if rule is not INTER_POD_AFFINITY)


class PlacementClass(NamedTuple):
    """What movers with equal rules share. Arrays: one entry per node."""

    number: int
    allowed: BoolArray
    allowed_wherever_pods_are: BoolArray
    """As `allowed`, but without the rules that other moves may change."""
    charges: Mapping[str, costs.FloatArray]
    """Seconds for going to each node, by term of the cost."""


def placement_classes(
    rules: Sequence[Rules],
    rules_of: IntArray,
    source_pod: IntArray,
    state: ClusterState,
    policy: CostPolicy,
) -> tuple[IntArray, tuple[PlacementClass, ...]]:
    """The index of each mover's class, and the classes in the order in which movers have them.

    Args:
        rules_of: for each mover the index of its rules.
        source_pod: and the position of its launcher pod in the snapshot.
    """
    barring = barring_groups(state)
    static: dict[Signature, _Static] = {}

    @cache
    def of_rules(index: int) -> tuple[_Static, BoolArray]:
        signature, pod, source = rules[index]
        if signature not in static:
            charges = costs.target_charges(pod, state.nodes[source], state, policy)
            static[signature] = _Static(all_allow(STATIC_RULES, pod, state), charges)
        return static[signature], static[signature].allowed & own_rules_allow(pod, state)

    @cache
    def of_group(index: int) -> BoolArray:
        return clear_of(barring.terms[index], state)

    def made(number: int, rules_index: int, group: int) -> PlacementClass:
        static, own = of_rules(rules_index)
        return PlacementClass(number, own & of_group(group), static.allowed, static.charges)

    size = len(barring.terms)
    pairs, first, index = np.unique(
        rules_of * size + barring.group[source_pod], return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    classes = (made(n, *divmod(pair, size)) for n, pair in enumerate(pairs[order].tolist()))
    return np.argsort(order)[index], tuple(classes)


def own_rules_allow(pod: Pod, state: ClusterState) -> BoolArray:
    """Which nodes the pod's own rules about other pods let it go to."""
    return own_terms_allow(pod, state) & all_allow(_OWN_PLACEMENT_RULES, pod, state)


class _Static(NamedTuple):
    """What depends on no other pods."""

    allowed: BoolArray
    charges: Mapping[str, costs.FloatArray]
