"""What a migration costs, term by term."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from rebalancer.model.keys import PREFER_NO_EVICTION, ZONE
from rebalancer.model.objects import Migration, MigrationConfiguration, Taint
from rebalancer.planning.cost import base_cost, target_charges, with_target_charges
from rebalancer.policy.model import CostPolicy
from rebalancer.scheduling.state import ClusterState
from tests.builders import NOW, Launched, Thing, cluster, migration, node, vm

MEBIBYTE = 2**20


def terms(launched: Launched, *others: Thing, **policy: float) -> Mapping[str, float]:
    """Beside the charges for size, which all have."""
    snapshot = cluster(node("n1"), launched, *others)
    cost = base_cost(*launched, snapshot, CostPolicy.model_validate(policy))
    return {name: seconds for name, seconds in cost.terms.items() if name not in {"copy", "fixed"}}


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [(0, 64.0), (64 * MEBIBYTE, 128.0), (1024 * MEBIBYTE, 64.0)],
    ids=["no limit of KubeVirt", "a lower one", "a higher one"],
)
def test_copying_takes_guest_memory_over_the_lower_bandwidth(limit: int, seconds: float) -> None:
    launched = vm("a", on="n1", memory="8Gi")
    snapshot = cluster(launched, MigrationConfiguration(bandwidth_bytes_per_second=limit))
    policy = CostPolicy(bandwidth_bytes_per_second=128 * MEBIBYTE, fixed_seconds=7)
    assert base_cost(*launched, snapshot, policy).terms == {"copy": seconds, "fixed": 7}


def test_a_vm_that_asks_not_to_be_moved_is_dearer() -> None:
    asking = vm("a", on="n1", vmi={"annotations": {PREFER_NO_EVICTION: ""}})
    assert terms(asking, prefer_no_eviction_seconds=300) == {"preferNoEviction": 300}


def test_priority_above_0_makes_dearer() -> None:
    assert terms(vm("a", on="n1", priority=5000)) == {"priority": 5}
    assert terms(vm("a", on="n1", priority=-5000)) == {}


def ended(phase: str, *, hours_ago: float, name: str = "m") -> Migration:
    at = NOW - timedelta(hours=hours_ago)
    return migration(f"{name}-{hours_ago}", "a", phase, created_at=at, phase_times=((phase, at),))


def test_each_failure_of_the_last_day_makes_dearer() -> None:
    failures = [ended("Failed", hours_ago=hours) for hours in (1, 23, 25)]
    found = terms(vm("a", on="n1"), *failures, recent_failure_seconds=40)
    assert found == {"recentFailures": 80}


@pytest.mark.parametrize(
    ("hours_ago", "charge"), [((0,), 96), ((23,), 96), ((6, 18), 96), ((24,), None), ((), None)]
)
def test_a_move_makes_dearer_for_a_day(hours_ago: tuple[float, ...], charge: float | None) -> None:
    moves = [ended("Succeeded", hours_ago=hours) for hours in hours_ago]
    found = terms(vm("a", on="n1"), *moves, recent_move_seconds=96)
    assert found == ({} if charge is None else {"recentMove": charge})


def test_what_others_went_through_does_not_count() -> None:
    others = migration("m", "b", "Failed")
    assert terms(vm("a", on="n1"), others) == {}


def test_targets_with_soft_taints_or_in_another_zone_are_dearer() -> None:
    busy, full = (Taint(key, "PreferNoSchedule") for key in ("busy", "full"))
    nodes = (
        node("n1", labels={ZONE: "a"}),
        node("n2", labels={ZONE: "a"}, taints=(busy, full)),
        node("n3", labels={ZONE: "b"}),
        node("n4", taints=(busy,)),
    )
    launched = vm("a", on="n1", memory="0Gi")
    snapshot = cluster(*nodes, launched)
    state = ClusterState(snapshot)
    policy = CostPolicy(prefer_no_schedule_seconds=60, other_zone_seconds=30, fixed_seconds=1)
    charges = target_charges(launched[1], nodes[0], state, policy)
    cost = base_cost(*launched, snapshot, policy)
    assert [with_target_charges(cost, charges, i).terms for i in range(4)] == [
        {"fixed": 1},
        {"fixed": 1, "preferNoSchedule": 120},
        {"fixed": 1, "otherZone": 30},
        {"fixed": 1, "preferNoSchedule": 60, "otherZone": 30},
    ]


def test_a_vm_that_is_in_no_zone_leaves_none() -> None:
    nodes = (node("n1"), node("n2", labels={ZONE: "b"}))
    _, pod = launched = vm("a", on="n1")
    state = ClusterState(cluster(*nodes, launched))
    assert target_charges(pod, nodes[0], state, CostPolicy()) == {}
