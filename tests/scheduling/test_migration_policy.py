"""Which settings hold for a VM's migrations, as KubeVirt's matchPolicy decides it."""

from collections.abc import Mapping

import pytest

from rebalancer.model.objects import MigrationConfiguration, MigrationPolicy, Namespace
from rebalancer.planning.cost import base_cost
from rebalancer.policy.model import CostPolicy
from rebalancer.scheduling.migration_deadline import deadline_seconds
from rebalancer.scheduling.migration_policy import migration_configuration
from tests.builders import cluster, node, vm

SHOP = Namespace("default", {"team": "shop", "tier": "1"})
CLUSTER = MigrationConfiguration(bandwidth_bytes_per_second=2**20)


def policy(
    name: str, vmi: Mapping[str, str] | None = None, namespace: Mapping[str, str] | None = None
) -> MigrationPolicy:
    return MigrationPolicy(name, True, vmi or {}, namespace or {}, len(name) * 2**20)


def bandwidth(labels: Mapping[str, str], *policies: MigrationPolicy) -> int:
    """In MiB per second; that of a policy is as many as its name has letters."""
    launched = vm("a", on="n1", vmi={"labels": labels})
    snapshot = cluster(launched, SHOP, CLUSTER, *policies)
    return migration_configuration(launched[0], snapshot).bandwidth_bytes_per_second // 2**20


@pytest.mark.parametrize(
    ("labels", "policies", "expected"),
    [
        ({"os": "linux"}, (), 1),
        ({"os": "linux"}, (policy("linux", {"os": "linux"}),), 5),
        ({"os": "linux"}, (policy("windows", {"os": "windows"}),), 1),
        ({"os": "linux"}, (policy("team", namespace={"team": "shop"}),), 4),
        ({"os": "linux"}, (policy("team", {"os": "linux"}, {"team": "other"}),), 1),
        (
            {"os": "linux"},
            (policy("vmi", {"os": "linux"}), policy("both", {"os": "linux"}, {"tier": "1"})),
            4,
        ),
        (
            {"os": "linux"},
            (policy("namespace", namespace={"tier": "1"}), policy("vmi", {"os": "linux"})),
            3,
        ),
        ({"os": "linux"}, (policy("b-longer", {"os": "linux"}), policy("a", {"os": "linux"})), 1),
        ({"os": "linux"}, (policy("everything"),), 10),
        ({"os": "linux"}, (MigrationPolicy("unselective", False, {}, {}, 2**30),), 1),
        ({}, (policy("windows", {"os": "windows"}),), 7),
    ],
    ids=[
        "no policy",
        "by the VM's label",
        "another label",
        "by the namespace's label",
        "both must match",
        "more labels win",
        "the VM's label wins over the namespace's",
        "then the first by name",
        "empty selectors",
        "no selectors",
        "a VM without labels",
    ],
)
def test_the_most_detailed_policy_that_matches_counts(
    labels: Mapping[str, str], policies: tuple[MigrationPolicy, ...], expected: int
) -> None:
    assert bandwidth(labels, *policies) == expected


def test_a_policy_changes_what_a_migration_costs_and_how_long_it_may_take() -> None:
    slow = MigrationPolicy("slow", True, {"os": "linux"}, {}, 2**20, 10)
    launched = vm("a", on="n1", memory="1Gi", vmi={"labels": {"os": "linux"}})
    snapshot = cluster(node("n1"), launched, slow, MigrationConfiguration(5, 2, 150, 7))
    assert base_cost(*launched, snapshot, CostPolicy()).terms["copy"] == 1024
    assert deadline_seconds(launched[0], snapshot) == 10 + 7
