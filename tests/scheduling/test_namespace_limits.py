"""Whether a namespace lets a VM's second launcher pod in."""

from typing import Any

import pytest

from rebalancer.model.keys import AUTO_MEMORY_LIMITS_RATIO
from rebalancer.model.objects import (
    Amounts,
    LauncherSpec,
    LimitRange,
    LimitRangeItem,
    Namespace,
    ResourceQuota,
    ScopeRequirement,
)
from rebalancer.scheduling.namespace_limits import limit_range_problem, quota_problem
from tests.builders import Thing, amounts, cluster, node, pod, vm


def quota(key: str, hard: str, used: str | None, *scopes: ScopeRequirement) -> ResourceQuota:
    counted = {} if used is None else amounts({key: used})
    return ResourceQuota("default", "q", amounts({key: hard}), counted, scopes)


def problem(*things: Thing, **fields: Any) -> str:
    """Of a VM of 4Gi and 100m CPU; empty if its second pod is let in."""
    snapshot = cluster(node("n1"), vm("a", on="n1", memory="4Gi", **fields), *things)
    (vmi,) = snapshot.vmis
    return quota_problem(vmi, snapshot) or limit_range_problem(vmi, snapshot) or ""


@pytest.mark.parametrize(
    ("key", "hard", "used", "is_let_in"),
    [
        ("requests.memory", "8Gi", "4Gi", True),
        ("requests.memory", "8Gi", "4097Mi", False),
        ("memory", "8Gi", "4097Mi", False),
        ("cpu", "1", "950m", False),
        ("pods", "2", "1", True),
        ("pods", "2", "2", False),
        ("count/pods", "2", "2", False),
        ("requests.devices.kubevirt.io/kvm", "1", "1", False),
        ("requests.storage", "1Gi", "1Gi", True),
        ("limits.memory", "4Gi", "4Gi", False),
        ("requests.memory", "8Gi", None, False),
    ],
)
def test_a_quota_counts_what_the_second_pod_takes_by_its_keys(
    key: str, hard: str, used: str | None, is_let_in: bool
) -> None:
    assert (problem(quota(key, hard, used)) == "") == is_let_in


def test_attachment_pods_take_their_share_of_the_quota() -> None:
    attachment = pod("hp", on="n1", memory="1Gi", attached_to="pod-a")
    assert problem(quota("pods", "3", "1"), attachment) == ""
    assert problem(quota("pods", "2", "1"), attachment) != ""
    assert problem(quota("memory", "9Gi", "5Gi"), attachment) != ""


@pytest.mark.parametrize(("hard", "is_let_in"), [("4400M", True), ("4370M", False)])
def test_the_limit_of_an_attachment_pod_counts_even_before_there_is_one(
    hard: str, is_let_in: bool
) -> None:
    """4Gi are 4295M, and the attachment pod has a limit of 80M."""
    plugged_in = {"launcher": LauncherSpec(hotplugged_claims=("c",))}
    counted = quota("limits.memory", hard, "0")
    limits = amounts({"memory": "4Gi"})
    assert (problem(counted, vmi=plugged_in, limits=limits) == "") == is_let_in


@pytest.mark.parametrize(
    ("scope", "is_let_in"),
    [
        (ScopeRequirement("BestEffort"), True),
        (ScopeRequirement("Terminating"), True),
        (ScopeRequirement("NotTerminating"), False),
        (ScopeRequirement("NotBestEffort"), False),
        (ScopeRequirement("PriorityClass", "In", ("gold",)), False),
        (ScopeRequirement("PriorityClass", "In", ("iron",)), True),
        (ScopeRequirement("PriorityClass", "NotIn", ("gold",)), True),
        (ScopeRequirement("PriorityClass", "DoesNotExist"), True),
        (ScopeRequirement("PriorityClass", "Exists"), False),
        (ScopeRequirement("SomethingNew"), False),
    ],
)
def test_a_quota_with_scopes_counts_only_pods_in_them(
    scope: ScopeRequirement, is_let_in: bool
) -> None:
    assert (problem(quota("pods", "1", "1", scope), priority_class_name="gold") == "") == is_let_in


def test_limits_that_a_quota_makes_kubevirt_put_in_are_twice_the_request() -> None:
    """kubevirt/kubevirt#14957"""
    assert problem(quota("limits.memory", "8Gi", "0")) == ""
    assert problem(quota("limits.memory", "8191Mi", "0")) != ""
    labels = {AUTO_MEMORY_LIMITS_RATIO: "1.5"}
    assert problem(quota("limits.memory", "6Gi", "0"), Namespace("default", labels)) == ""
    assert problem(quota("limits.memory", "6143Mi", "0"), Namespace("default", labels)) != ""


def test_a_ratio_that_is_no_number_counts_as_none() -> None:
    labels = {AUTO_MEMORY_LIMITS_RATIO: "twice"}
    assert problem(quota("limits.memory", "8Gi", "0"), Namespace("default", labels)) == ""
    assert problem(quota("limits.memory", "8191Mi", "0"), Namespace("default", labels)) != ""


@pytest.mark.parametrize(
    ("kind", "most", "default_limit", "is_let_in"),
    [
        ("Container", {"memory": 4 * 2**30}, {}, True),
        ("Container", {"memory": 4 * 2**30 - 1}, {}, False),
        ("Pod", {"memory": 4 * 2**30 - 1}, {}, False),
        ("PersistentVolumeClaim", {"memory": 1}, {}, True),
        ("Container", {}, {"memory": 4 * 2**30}, True),
        ("Container", {}, {"memory": 2**30}, False),
    ],
)
def test_a_limit_range_bars_what_it_would_refuse(
    kind: str, most: Amounts, default_limit: Amounts, is_let_in: bool
) -> None:
    limits = LimitRange("default", "limits", (LimitRangeItem(kind, most, default_limit),))
    assert (problem(limits) == "") == is_let_in


def test_limits_of_another_namespace_are_nothing_to_it() -> None:
    elsewhere = ResourceQuota("shop", "q", {"pods": 0}, {"pods": 0})
    limits = LimitRange("shop", "limits", (LimitRangeItem("Pod", {"memory": 1}),))
    assert problem(elsewhere, limits) == ""
