"""What bars a VM from each node, and which pod that is asked of."""

import pytest

from rebalancer.errors import InputError
from rebalancer.explain.lookup import find_node, find_vmi
from rebalancer.explain.node import NodeExplanation, explain_node
from rebalancer.explain.vmi import Explanation, explain_vmi
from rebalancer.model.keys import OPT_OUT
from rebalancer.model.objects import Taint
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from tests.builders import cluster, migrating, node, pending_vm, vm

NODES = (node("n1", memory="16Gi"), node("n2", memory="16Gi"), node("n3", memory="4Gi"))


def explain(snapshot: Snapshot, name: str) -> Explanation:
    return explain_vmi(snapshot, find_vmi(snapshot, name), PlanningContext())


def possible(explanation: Explanation) -> list[str]:
    return [answer.node for answer in explanation.nodes if not answer.reasons]


def codes(explanation: Explanation, name: str) -> list[str]:
    [answer] = [answer for answer in explanation.nodes if answer.node == name]
    return [reason.code for reason in answer.reasons]


def test_pending_vm_is_asked_of_every_node() -> None:
    explanation = explain(cluster(*NODES, pending_vm("p", "8Gi")), "p")
    assert explanation.node == ""
    assert explanation.refusal is None
    assert explanation.scheduler_message.startswith("0/1 nodes are available")
    assert possible(explanation) == ["n1", "n2"]
    assert codes(explanation, "n3") == ["NodeResourcesFit"]


def test_running_vm_is_asked_of_the_other_nodes() -> None:
    explanation = explain(cluster(*NODES, vm("a", on="n1", memory="8Gi")), "a")
    assert explanation.node == "n1"
    assert explanation.refusal is None
    assert codes(explanation, "n1") == ["own-node"]
    assert possible(explanation) == ["n2"]


def test_vm_that_must_stay_has_the_reason() -> None:
    kept = vm("a", on="n1", vmi={"annotations": {OPT_OUT: "true"}})
    refusal = explain(cluster(*NODES, kept), "a").refusal
    assert refusal is not None
    assert refusal.code == "opted-out"


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_migrating_vm_is_explained_from_where_it_runs(order: slice) -> None:
    vmi, *pods, migration = migrating(vm("a", on="n1", memory="2Gi"), to="n2")
    explanation = explain(cluster(*NODES, vmi, *pods[order], migration), "a")
    assert explanation.node == "n1"
    assert explanation.pod == "virt-launcher-a"
    assert explanation.refusal is not None


def test_vm_on_a_node_that_is_gone_is_not_called_pending() -> None:
    explanation = explain(cluster(*NODES, vm("a", on="gone")), "a")
    assert explanation.node == "gone"
    assert explanation.refusal is not None
    assert explanation.refusal.code == "node-unknown"


def test_nominated_pod_does_not_stand_in_its_own_way() -> None:
    nominated = pending_vm("p", "15Gi", nominated_node_name="n1")
    assert possible(explain(cluster(*NODES, nominated), "p")) == ["n1", "n2"]


def test_vm_without_a_launcher_pod_cannot_be_explained() -> None:
    vmi, _ = vm("a", on="n1", vmi={"phase": "Succeeded"})
    with pytest.raises(InputError, match=r"default/a \(phase Succeeded\) has no launcher pod"):
        explain(cluster(*NODES, vmi), "a")


def test_vm_is_found_by_its_name_or_with_its_namespace() -> None:
    snapshot = cluster(
        *NODES,
        vm("a", on="n1"),
        vm("b", on="n1", namespace="x"),
        vm("b", on="n1", namespace="y", vmi={"uid": "other"}),
    )
    assert find_vmi(snapshot, "a").key == ("default", "a")
    assert find_vmi(snapshot, "default/a").key == ("default", "a")
    assert find_vmi(snapshot, "y/b").key == ("y", "b")


def test_name_that_several_vms_have_is_answered_with_all_of_them() -> None:
    snapshot = cluster(
        vm("b", on=None, namespace="y"), vm("b", on=None, namespace="x", vmi={"uid": "other"})
    )
    with pytest.raises(InputError, match="b could be any of these, name one: x/b, y/b"):
        find_vmi(snapshot, "b")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("rhel7-red-lama", "rhel7-red-llama"), ("defaut/rhel7-red-llama", "default/rhel7-red-llama")],
)
def test_misspelt_name_is_answered_with_the_right_one(name: str, meant: str) -> None:
    with pytest.raises(
        InputError, match=f"{name} is none of the 1 there are; did you mean {meant}"
    ):
        find_vmi(cluster(pending_vm("rhel7-red-llama", "16Gi")), name)


@pytest.mark.parametrize("name", ["", "/", "zzz"])
def test_name_unlike_any_other_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"is none of the 1 there are$"):
        find_vmi(cluster(pending_vm("rhel7-red-llama", "16Gi")), name)


def explained(snapshot: Snapshot, name: str) -> NodeExplanation:
    return explain_node(snapshot, find_node(snapshot, name), PlanningContext())


def test_reasons_are_counted_over_the_other_nodes() -> None:
    snapshot = cluster(*NODES, node("n4", is_unschedulable=True), vm("a", on="n1", memory="8Gi"))
    grouped = explain(snapshot, "a").grouped_reasons
    assert grouped == "1 Insufficient memory, 1 node(s) were unschedulable"


def test_node_tells_who_may_leave_it_and_for_where() -> None:
    kept = vm("kept", on="n1", memory="1Gi", vmi={"annotations": {OPT_OUT: "true"}})
    snapshot = cluster(*NODES, vm("a", on="n1", memory="8Gi"), vm("b", on="n2", memory="1Gi"), kept)
    leaving, staying = explained(snapshot, "n1").residents
    assert (leaving.vmi.name, leaving.targets, leaving.refusal) == ("a", ("n2",), None)
    assert leaving.grouped_reasons == "1 Insufficient memory"
    assert staying.refusal is not None
    assert staying.targets == ()


def test_node_tells_what_its_leaving_vms_would_free() -> None:
    stuck = vm("stuck", on="n1", memory="2Gi", node_selector={"kubernetes.io/hostname": "n1"})
    snapshot = cluster(*NODES, vm("a", on="n1", memory="8Gi"), stuck)
    [memory] = [r for r in explained(snapshot, "n1").resources if r.resource == "memory"]
    gibibyte = 2**30
    assert memory.allocatable == 16 * gibibyte
    assert (memory.requested, memory.freeable) == (10 * gibibyte, 8 * gibibyte)


def test_node_tells_what_bars_each_pending_vm_from_it() -> None:
    nominated = pending_vm("c", "3Gi", nominated_node_name="n3")
    snapshot = cluster(*NODES, pending_vm("p", "8Gi"), nominated, pending_vm("s", "512Mi"))
    reasons = {
        candidate.vmi.name: [reason.code for reason in candidate.reasons]
        for candidate in explained(snapshot, "n3").candidates
    }
    assert reasons == {"c": [], "p": ["NodeResourcesFit"], "s": []}


def test_node_tells_what_keeps_pods_away() -> None:
    closed = node(
        "n1",
        is_ready=False,
        is_unschedulable=True,
        labels={"kubevirt.io/schedulable": "false"},
        taints=(Taint("gpu", "NoSchedule", "a"), Taint("down", "NoExecute")),
    )
    assert explained(cluster(closed), "n1").conditions == (
        "not ready",
        "cordoned",
        "virt-handler is silent: no label kubevirt.io/schedulable=true",
        "taint gpu=a:NoSchedule",
        "taint down:NoExecute",
    )


def test_misspelt_node_is_answered_with_the_right_one() -> None:
    with pytest.raises(InputError, match="Node worker-one is none of the 1 there are; did you"):
        find_node(cluster(node("worker-1")), "worker-one")
