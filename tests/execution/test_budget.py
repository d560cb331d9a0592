"""When one more migration may start."""

import pytest

from rebalancer.execution.budget import Budget
from rebalancer.model.objects import (
    LabelSelector,
    MigrationConfiguration,
    PodDisruptionBudget,
    Requirement,
    ResourceQuota,
)
from rebalancer.model.plan import Cost, Move
from rebalancer.policy.model import BudgetPolicy
from tests.builders import cluster, key, migrating, node, vm

NODES = tuple(node(name) for name in ("n1", "n2", "n3"))


def move(name: str, source: str, target: str) -> Move:
    return Move(
        id=name,
        vmi=key(name),
        vmi_uid=f"vmi-{name}",
        source=source,
        target=target,
        bytes=2**33,
        seconds=64.0,
        cost=Cost({"copy": 64.0}),
    )


def refusal(policy: BudgetPolicy, *things: object, ours: tuple[Move, ...] = ()) -> str | None:
    snapshot = cluster(*NODES, *things)  # type: ignore[arg-type]
    return Budget(policy, snapshot).refusal(move("x", "n1", "n2"), ours)


def test_an_idle_cluster_lets_a_migration_start() -> None:
    assert refusal(BudgetPolicy(), vm("x", on="n1")) is None


def test_everybodys_migrations_count_against_the_limit_of_the_kubevirt_cr() -> None:
    foreign = migrating(vm("other", on="n3"), to="n2")
    limits = MigrationConfiguration(parallel_migrations_per_cluster=1)
    assert (
        refusal(BudgetPolicy(), vm("x", on="n1"), foreign, limits)
        == "1 of 1 migrations are in flight"
    )


def test_a_migration_that_the_snapshot_does_not_show_yet_counts() -> None:
    limits = MigrationConfiguration(parallel_migrations_per_cluster=1)
    ours = (move("other", "n3", "n2"),)
    assert refusal(BudgetPolicy(), vm("x", on="n1"), limits, ours=ours) is not None


def test_a_migration_is_counted_once_whether_the_snapshot_shows_it_or_not() -> None:
    policy = BudgetPolicy(max_in_flight_per_cluster=2, max_outbound_per_node=2)
    shown = migrating(vm("other", on="n3"), to="n2")
    ours = (move("other", "n3", "n2"),)
    assert refusal(policy, vm("x", on="n1"), shown, ours=ours) is None


@pytest.mark.parametrize(
    ("policy", "kubevirt", "limit"),
    [(1, 2, 1), (None, 1, 1), (5, 1, 1)],
    ids=["policy is lower", "only KubeVirt's", "KubeVirt's is lower"],
)
def test_the_lower_of_two_outbound_limits_holds(
    policy: int | None, kubevirt: int, limit: int
) -> None:
    leaving = migrating(vm("other", on="n1"), to="n3")
    limits = MigrationConfiguration(parallel_outbound_migrations_per_node=kubevirt)
    budget = BudgetPolicy(max_outbound_per_node=policy)
    assert (
        refusal(budget, vm("x", on="n1"), leaving, limits)
        == f"1 of {limit} migrations are leaving n1"
    )


def test_arrivals_at_one_target_are_limited_although_kubevirt_does_not_limit_them() -> None:
    arriving = migrating(vm("other", on="n3"), to="n2")
    budget = BudgetPolicy(max_inbound_per_node=1)
    assert refusal(budget, vm("x", on="n1"), arriving) == "1 of 1 migrations are going to n2"


@pytest.mark.parametrize(
    ("outbound", "may_start"),
    [(2, ["n2", "n2"]), (1, ["n2"]), (3, ["n1", "n2"])],
    ids=[
        "kubevirt/kubevirt#8701",
        "kubernetes-sigs/cluster-api-provider-kubevirt#392",
        "three may leave a node, and four migrate",
    ],
)
def test_a_node_whose_limit_is_reached_keeps_no_other_from_starting(
    outbound: int, may_start: list[str]
) -> None:
    """Two are leaving n1 already, by whomever; the next from there come first in the plan."""
    foreign = [migrating(vm(f"foreign-{i}", on="n1"), to="n3") for i in range(2)]
    waiting = [move(f"a{i}", "n1", "n3") for i in range(8)]
    waiting += [move(f"b{i}", "n2", "n3") for i in range(3)]
    limits = MigrationConfiguration(
        parallel_migrations_per_cluster=4 if outbound > 1 else 5,
        parallel_outbound_migrations_per_node=outbound,
    )
    vms = [vm(each.vmi.name, on=each.source) for each in waiting]
    budget = Budget(
        BudgetPolicy(max_inbound_per_node=10, max_outbound_per_node=None),
        cluster(*NODES, *foreign, *vms, limits),
    )
    started: list[Move] = []
    for each in waiting:
        if budget.refusal(each, started) is None:
            started.append(each)
    assert [each.source for each in started] == may_start


def quota(**memory: int) -> ResourceQuota:
    gibibytes = {key: gib * 2**30 for key, gib in memory.items()}
    return ResourceQuota(
        "default",
        "tight",
        {"requests.memory": gibibytes["hard"]},
        {"requests.memory": gibibytes["used"]},
    )


def test_movers_of_one_namespace_wait_for_each_other_where_its_quota_has_room_for_one() -> None:
    """harvester/harvester#3124"""
    vms = vm("x", on="n1", memory="8Gi"), vm("other", on="n3", memory="8Gi")
    ours = (move("other", "n3", "n2"),)
    wide, tight = quota(hard=32, used=16), quota(hard=31, used=16)
    assert refusal(BudgetPolicy(), *vms, wide, ours=ours) is None
    said = refusal(BudgetPolicy(), *vms, tight, ours=ours)
    assert said is not None
    assert "takes 8192 MiB, 7168 MiB of 31744 MiB is left" in said
    assert refusal(BudgetPolicy(check_quotas=False), *vms, tight, ours=ours) is None


def test_a_second_pod_that_exists_is_in_what_the_quota_counts_already() -> None:
    shown = migrating(vm("other", on="n3", memory="8Gi"), to="n2")
    counted = quota(hard=32, used=24)
    assert refusal(BudgetPolicy(), vm("x", on="n1", memory="8Gi"), shown, counted) is None


POOL = LabelSelector((Requirement("pool", "In", ("a",)),))


@pytest.mark.parametrize(
    ("budget", "must_wait"),
    [
        (PodDisruptionBudget("default", "pool", POOL), True),
        (PodDisruptionBudget("default", "pool", LabelSelector()), True),
        (PodDisruptionBudget("default", "pool", POOL, is_of_kubevirt=True), False),
        (PodDisruptionBudget("default", "pool", None), False),
        (PodDisruptionBudget("shop", "pool", POOL), False),
    ],
    ids=["by label", "everything", "KubeVirt's own", "nothing", "another namespace's"],
)
def test_of_the_vms_under_one_disruption_budget_one_moves_at_a_time(
    budget: PodDisruptionBudget, must_wait: bool
) -> None:
    """kubevirt/kubevirt#18063"""
    labels = {"pool": "a"}
    vms = vm("x", on="n1", labels=labels), vm("other", on="n3", labels=labels)
    said = refusal(BudgetPolicy(), *vms, budget, ours=(move("other", "n3", "n2"),))
    assert (said is not None) == must_wait
    assert refusal(BudgetPolicy(), *vms, budget) is None
