"""Room for the target pods of migrations that others have asked for."""

from typing import Any

import pytest
from msgspec.structs import replace

from rebalancer.model.keys import GOAL_UID, HOSTNAME
from rebalancer.model.objects import Migration
from rebalancer.model.plan import Verdict
from rebalancer.model.snapshot import Snapshot
from tests.builders import NOW, Thing, cluster, evacuated, node, pending_vm, pod, vm
from tests.strategies.decisions import Case, assert_decided, plan_for


def crowded(*more: Thing, **target_fields: Any) -> Snapshot:
    """big must leave n1, and fits on n2 once b has gone from there to n3."""
    return cluster(
        node("n1", memory="32Gi", is_unschedulable=True),
        node("n2", memory="16Gi"),
        node("n3", memory="16Gi"),
        evacuated(vm("big", on="n1", memory="12Gi"), **target_fields),
        vm("b", on="n2", memory="6Gi"),
        pod("fixed", on="n3", memory="8Gi"),
        *more,
    )


def changed_migration(**fields: Any) -> Snapshot:
    snapshot = crowded()
    (migration,) = snapshot.migrations
    return replace(snapshot, migrations=(replace(migration, **fields),))


def pinned(hostname: str) -> Snapshot:
    """As by a user's migration with `addedNodeSelector`."""
    return crowded(node_selector={HOSTNAME: hostname})


def pinned_where_others_must_leave() -> Snapshot:
    """n3 has 8Gi, and big, pinned there, needs 12: less than the headroom that it already holds."""
    return cluster(
        node("n1", memory="32Gi", is_unschedulable=True),
        node("n2", memory="16Gi"),
        node("n3", memory="16Gi"),
        evacuated(vm("big", on="n1", memory="12Gi"), node_selector={HOSTNAME: "n3"}),
        vm("b", on="n2", memory="10Gi"),
        vm("c", on="n3", memory="6Gi"),
        vm("d", on="n3", memory="2Gi"),
    )


CASES = {
    "an evacuation gets room": Case(
        crowded,
        {"big": Verdict.PLANNED},
        "b->n3",
        ("the target pod of migration default/kubevirt-evacuation-big has no node",),
    ),
    "a user's migration gets room where it is pinned to": Case(
        lambda: pinned("n2"), {"big": Verdict.PLANNED}, "b->n3"
    ),
    "what a pinned pod holds is not in its own way": Case(
        pinned_where_others_must_leave, {"big": Verdict.PLANNED}, "c->n2"
    ),
    "the node that it leaves takes it no more": Case(
        lambda: pinned("n1"),
        {"big": Verdict.NOT_ABOUT_ROOM},
        says=("its own anti-affinity bars the node",),
    ),
    "our own migrations are no goals": Case(
        lambda: changed_migration(labels={GOAL_UID: "vmi-other"}), {}
    ),
    "a migration that has ended leaves no goal": Case(
        lambda: changed_migration(phase="Failed"), {}
    ),
    "one that the scheduler has just been given waits": Case(
        lambda: crowded(unschedulable_since=NOW), {"big": Verdict.WAITING}, says=("graceSeconds",)
    ),
    "a VM of higher priority that does not run comes first": Case(
        lambda: crowded(pending_vm("p", "14Gi", priority=10)),
        {"p": Verdict.PLANNED, "big": Verdict.WAITING},
        "b->n3",
        ("VMs before it take the room", "migration default/kubevirt-evacuation-big has no node"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_room_is_made_for_migrations_of_others(case: Case) -> None:
    assert_decided(case)


def test_the_goal_names_the_vm_and_the_migration() -> None:
    (goal,) = plan_for(crowded()).goals
    assert (goal.subject.name, goal.subject.uid) == ("big", "vmi-big")
    assert goal.migration_uid == "migration-kubevirt-evacuation-big"
    assert goal.reasons[0].object == "default/kubevirt-evacuation-big"


def test_a_target_pod_whose_migration_was_not_read_is_no_goal() -> None:
    """Whose migration it is cannot be told."""
    snapshot = crowded()
    assert plan_for(replace(snapshot, migrations=tuple[Migration, ...]())).goals == ()
