"""The simulated kube-scheduler."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from rebalancer.cluster.protocols import Hold
from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.errors import RefusedError
from rebalancer.model.keys import HOSTNAME
from rebalancer.model.objects import (
    LabelSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodAffinityTerm,
    Requirement,
    Taint,
)
from rebalancer.model.objects import NodeSelectorTerm as Term
from tests.builders import NOW, Thing, cluster, key, node, pending_vm, pod, vm
from tests.cluster.simulation.requests import LOCK, events, hold, message_of, node_of

MASTER = Taint("node-role.kubernetes.io/master", "NoSchedule")
GROUP_ON_ONE_NODE = PodAffinityTerm(
    topology_key=HOSTNAME,
    selector=LabelSelector((Requirement("group", "Exists"),)),
    namespaces=("default",),
)


def test_a_pod_goes_where_it_leaves_the_largest_share_of_cpu_and_memory() -> None:
    simulated = SimulatedCluster(
        cluster(
            node("n1"),
            node("n2"),
            node("n3"),
            pod("a", on="n1", memory="10Gi"),
            pod("b", on="n2", memory="2Gi"),
            pod("c", on="n3", memory="8Gi"),
            pod("new", memory="1Gi"),
        )
    )
    assert node_of(simulated, "new") == "n2"


def test_a_pod_that_is_bound_is_nominated_no_more() -> None:
    simulated = SimulatedCluster(cluster(node("n1"), pod("new", nominated_node_name="n1")))
    bound = simulated.read().pod_by_key[key("new")]
    assert (bound.node_name, bound.nominated_node_name) == ("n1", None)


def test_of_equal_nodes_the_first_by_name_is_taken() -> None:
    simulated = SimulatedCluster(cluster(node("n2"), node("n1"), pod("new")))
    assert node_of(simulated, "new") == "n1"


def test_pods_are_tried_by_priority_and_then_by_age() -> None:
    simulated = SimulatedCluster(
        cluster(
            node("n1", memory="2Gi"),
            pod("young", memory="1Gi", created_at=NOW - timedelta(hours=1)),
            pod("old", memory="1Gi", created_at=NOW - timedelta(hours=2)),
            pod("important", memory="1Gi", priority=1, created_at=NOW),
        )
    )
    placed = {name: node_of(simulated, name) for name in ("young", "old", "important")}
    assert placed == {"young": None, "old": "n1", "important": "n1"}


def test_a_waiting_pod_is_bound_at_once_when_its_room_is_freed() -> None:
    simulated = SimulatedCluster(
        cluster(node("n1", memory="8Gi"), pod("old", on="n1", memory="6Gi"))
    )
    simulated.add_pod(pod("new", memory="4Gi"))
    simulated.delete_pod(key("old"))
    assert node_of(simulated, "new") is None
    simulated.advance(2)
    assert node_of(simulated, "new") == "n1"
    assert message_of(simulated, "new") == ""
    assert events(simulated)[-2:] == [
        (2.0, "pod default/old is gone"),
        (2.0, "pod default/new bound to n1"),
    ]


def test_since_when_a_pod_is_unschedulable_stays_while_the_message_is_renewed() -> None:
    simulated = SimulatedCluster(cluster(node("n1"), pending_vm("big", "64Gi")))
    simulated.put_node(node("n2", taints=(MASTER,)))
    waiting = simulated.read().pod_by_key[key("virt-launcher-big")]
    assert waiting.unschedulable_since == NOW - timedelta(hours=1)
    assert waiting.unschedulable_message.startswith(
        "0/2 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s). "
    )


@pytest.mark.parametrize(
    "left_alone",
    [
        pod("gated", is_gated=True),
        pod("foreign", scheduler_name="volcano"),
        pod("leaving", is_terminating=True),
        pod("unmodelled", unmodelled=("resource claims",)),
    ],
    ids=lambda each: each.name,
)
def test_some_pods_are_not_the_default_schedulers_to_place(left_alone: Pod) -> None:
    simulated = SimulatedCluster(cluster(node("n1"), left_alone))
    found = simulated.read().pod_by_key[left_alone.key]
    assert found.node_name is None
    assert found.unschedulable_since is None


ALONE = PodAffinityTerm(
    topology_key=HOSTNAME, selector=LabelSelector((Requirement("no", "Exists"),))
)
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


@pytest.mark.parametrize(
    ("things", "pending", "reasons", "preemption"),
    [
        pytest.param(
            [node("n1", is_unschedulable=True)],
            pod("p"),
            "1 node(s) were unschedulable",
            f"1 {NOT_HELPFUL}",
            id="cordoned",
        ),
        pytest.param(
            [node("n1", is_ready=False), node("n2", taints=(MASTER,))],
            pod("p"),
            "2 node(s) had untolerated taint(s)",
            f"2 {NOT_HELPFUL}",
            id="tainted, also because it is not ready",
        ),
        pytest.param(
            [node("n1"), node("n2")],
            pod("p", node_selector={"disk": "ssd"}),
            "2 node(s) didn't match Pod's node affinity/selector",
            f"2 {NOT_HELPFUL}",
            id="node selector",
        ),
        pytest.param(
            [node("n1", cpu="1", memory="1Gi", pods="0"), node("n2", memory="1Gi")],
            pod("p", cpu="2", memory="2Gi"),
            "1 Insufficient cpu, 1 Too many pods, 2 Insufficient memory",
            f"2 {NOT_HELPFUL}",
            id="every resource that lacks; more than the node has",
        ),
        pytest.param(
            [node("n1", pods="0")],
            pod("p"),
            "1 Too many pods",
            f"1 {NO_VICTIMS}",
            id="pod slots",
        ),
        pytest.param(
            [node("n1", resources={"devices.kubevirt.io/kvm": "0"})],
            vm("v", on=None)[1],
            "1 Insufficient devices.kubevirt.io/kvm",
            f"1 {NOT_HELPFUL}",
            id="devices",
        ),
        pytest.param(
            [
                node("n1"),
                PersistentVolumeClaim("default", "disk", "disk-volume"),
                PersistentVolume("disk-volume", (Term((Requirement("zone", "In", ("a",)),)),)),
            ],
            pod("p", claim_names=("disk",)),
            "1 node(s) didn't match PersistentVolume's node affinity",
            f"1 {NOT_HELPFUL}",
            id="volume elsewhere",
        ),
        pytest.param(
            [node("n1")],
            pod("p", pod_affinity=(GROUP_ON_ONE_NODE,)),
            "1 node(s) didn't match pod affinity rules",
            f"1 {NOT_HELPFUL}",
            id="pod affinity",
        ),
        pytest.param(
            [node("n1"), pod("other", on="n1", labels={"group": "g"})],
            pod("p", pod_anti_affinity=(GROUP_ON_ONE_NODE,)),
            "1 node(s) didn't match pod anti-affinity rules",
            f"1 {NO_VICTIMS}",
            id="own anti-affinity",
        ),
        pytest.param(
            [node("n1"), pod("other", on="n1", pod_anti_affinity=(GROUP_ON_ONE_NODE,))],
            pod("p", labels={"group": "g"}, pod_affinity=(ALONE,)),
            "1 node(s) didn't match pod affinity rules",
            f"1 {NOT_HELPFUL}",
            id="pod affinity before others' anti-affinity",
        ),
        pytest.param(
            [node("n1"), pod("other", on="n1", pod_anti_affinity=(GROUP_ON_ONE_NODE,))],
            pod("p", labels={"group": "g"}),
            "1 node(s) didn't satisfy existing pods anti-affinity rules",
            f"1 {NO_VICTIMS}",
            id="others' anti-affinity",
        ),
    ],
)
def test_the_message_is_the_schedulers(
    things: list[Thing], pending: Pod, reasons: str, preemption: str
) -> None:
    simulated = SimulatedCluster(cluster(things, pending))
    count = len(simulated.read().nodes)
    available = f"0/{count} nodes are available"
    assert message_of(simulated, pending.name) == (
        f"{available}: {reasons}. no new claims to deallocate,"
        f" preemption: {available}: {preemption}."
    )


def test_the_message_tells_of_a_pod_that_may_not_preempt() -> None:
    simulated = SimulatedCluster(
        cluster(node("n1"), pod("p", memory="64Gi", can_preempt=False, priority=9))
    )
    assert message_of(simulated, "p").endswith(
        "1 Insufficient memory. no new claims to deallocate,"
        " preemption: not eligible due to preemptionPolicy=Never."
    )


def test_a_lock_keeps_all_pods_off_its_node_but_the_admitted() -> None:
    simulated = SimulatedCluster(
        cluster(
            node("n1", memory="8Gi"),
            pod("filler", on="n1", memory="6Gi"),
            pending_vm("big", "7Gi"),
        )
    )
    simulated.create_hold(hold("n1", of="big"))
    simulated.add_pod(pod("thief", memory="1Gi"))
    assert node_of(simulated, "thief") is None
    simulated.delete_pod(key("filler"))
    simulated.advance(2)
    assert node_of(simulated, "virt-launcher-big") == "n1"
    assert node_of(simulated, "thief") is None
    simulated.delete_hold(LOCK)
    assert node_of(simulated, "thief") == "n1"


@pytest.mark.parametrize(
    ("thief", "gets_in"),
    [
        (pod("thief", priority=1000), True),
        (pod("thief", priority=0), False),
        (pod("thief", priority=1000, can_preempt=False), False),
        (pod("thief", priority=1000, memory="2Gi"), False),
    ],
    ids=["higher", "equal", "higher, never preempting", "higher, without room"],
)
def test_only_higher_priority_takes_a_lock_away(thief: Pod, gets_in: bool) -> None:
    simulated = SimulatedCluster(cluster(node("n1", memory="1Gi"), pending_vm("big", "8Gi")))
    simulated.create_hold(hold("n1", of="big"))
    simulated.add_pod(thief)
    assert (node_of(simulated, "thief") == "n1") is gets_in
    assert (LOCK not in simulated.read().pod_by_key) is gets_in


def test_no_lock_is_taken_away_while_another_node_is_free() -> None:
    simulated = SimulatedCluster(cluster(node("n1"), node("n2"), pending_vm("big", "64Gi")))
    simulated.create_hold(hold("n1", of="big"))
    simulated.add_pod(pod("important", priority=1000))
    assert node_of(simulated, "important") == "n2"
    assert LOCK in simulated.read().pod_by_key


def test_only_the_lock_of_the_node_that_is_chosen_is_taken_away() -> None:
    simulated = SimulatedCluster(cluster(node("n1"), node("n2"), pending_vm("big", "64Gi")))
    for name in ("n1", "n2"):
        simulated.create_hold(hold(name, of="big", name=f"lock-{name}"))
    simulated.add_pod(pod("important", priority=1000))
    assert node_of(simulated, "important") == "n1"
    left = [each.name for each in simulated.read().pods if each.name.startswith("lock-")]
    assert left == ["lock-n2"]


def test_a_lock_has_the_priority_of_its_class() -> None:
    vip, launcher = pending_vm("vip", "64Gi", priority=500, priority_class_name="gold")
    simulated = SimulatedCluster(cluster(node("n1"), vip, launcher))
    simulated.create_hold(hold("n1", of="vip", priority_class_name="gold"))
    assert simulated.read().pod_by_key[LOCK].priority == 500


def test_a_lock_of_an_unknown_class_is_refused() -> None:
    simulated = SimulatedCluster(cluster(node("n1")))
    with pytest.raises(RefusedError, match="no PriorityClass with name gold was found"):
        simulated.create_hold(hold("n1", of="vip", priority_class_name="gold"))
    assert simulated.read().pods == ()


def test_a_lock_ends_by_itself_when_its_lifetime_is_over() -> None:
    simulated = SimulatedCluster(cluster(node("n1"), pending_vm("big", "64Gi")))
    simulated.create_hold(hold("n1", of="big", lifetime_seconds=60))
    simulated.add_pod(pod("other"))
    simulated.advance(59)
    assert node_of(simulated, "other") is None
    simulated.advance(1)
    assert node_of(simulated, "other") == "n1"
    assert simulated.read().pod_by_key[LOCK].phase == "Failed"


def test_a_lock_that_has_ended_before_it_started_does_not_come_back() -> None:
    simulated = SimulatedCluster(cluster(node("n1")))
    simulated.create_hold(hold("n1", of="big", lifetime_seconds=1))
    simulated.advance(10)
    assert simulated.read().pod_by_key[LOCK].phase == "Failed"


def test_a_lock_that_was_deleted_does_not_start_its_successor() -> None:
    simulated = SimulatedCluster(cluster(node("n1")))
    simulated.create_hold(hold("n1", of="big"))
    simulated.advance(1)
    simulated.delete_hold(LOCK)
    simulated.create_hold(hold("n1", of="big"))
    simulated.advance(1)
    assert simulated.read().pod_by_key[LOCK].phase == "Pending"
    simulated.advance(1)
    assert simulated.read().pod_by_key[LOCK].phase == "Running"


def test_a_lock_that_was_deleted_does_not_end_its_successor() -> None:
    simulated = SimulatedCluster(cluster(node("n1")))
    simulated.create_hold(hold("n1", of="big", lifetime_seconds=60))
    simulated.advance(30)
    simulated.delete_hold(LOCK)
    simulated.create_hold(hold("n1", of="big", lifetime_seconds=60))
    simulated.advance(59)
    assert simulated.read().pod_by_key[LOCK].phase == "Running"
    simulated.advance(1)
    assert simulated.read().pod_by_key[LOCK].phase == "Failed"


def test_the_same_lock_again_is_as_good() -> None:
    simulated = SimulatedCluster(cluster(node("n1"), node("n2")))
    simulated.create_hold(hold("n1", of="big"))
    before = simulated.read().pods
    simulated.create_hold(hold("n1", of="big"))
    assert simulated.read().pods == before


@pytest.mark.parametrize(
    "other",
    [hold("n2", of="big"), hold("n1", of="small")],
    ids=["on another node", "for another VM"],
)
def test_another_lock_of_the_same_name_is_refused(other: Hold) -> None:
    simulated = SimulatedCluster(cluster(node("n1"), node("n2")))
    simulated.create_hold(hold("n1", of="big"))
    with pytest.raises(RefusedError, match="there is one already"):
        simulated.create_hold(other)


def test_a_lock_on_a_node_without_a_pod_slot_fails_and_holds_nothing() -> None:
    simulated = SimulatedCluster(cluster(node("n1", pods="1"), pod("only", on="n1")))
    simulated.create_hold(hold("n1", of="big"))
    assert simulated.read().pod_by_key[LOCK].phase == "Failed"


def test_deleting_a_lock_that_is_gone_is_as_good() -> None:
    simulated = SimulatedCluster(cluster(node("n1")))
    simulated.delete_hold(LOCK)
    assert simulated.journal == ()


def test_a_cordoned_node_takes_nothing_until_it_is_uncordoned() -> None:
    simulated = SimulatedCluster(cluster(node("n1")))
    simulated.cordon("n1")
    simulated.add_pod(pod("new"))
    assert node_of(simulated, "new") is None
    simulated.cordon("n1", is_unschedulable=False)
    assert node_of(simulated, "new") == "n1"


def test_a_pod_that_arrives_is_as_old_as_its_arrival() -> None:
    simulated = SimulatedCluster(cluster(node("n1", memory="1Gi"), pod("first", memory="2Gi")))
    simulated.at(10, lambda: simulated.add_pod(pod("second", memory="1Gi")))
    simulated.advance(10)
    arrived = simulated.read().pod_by_key[key("second")]
    assert arrived.created_at == NOW + timedelta(seconds=10)


def test_what_the_scheduler_has_yet_to_bind_holds_no_room() -> None:
    """Otherwise a migration's target pod, pinned to its node, would stand in its own way."""
    _, launcher = vm("v", on=None, memory="1Gi")
    pinned = replace(launcher, migration_uid="m", node_selector={HOSTNAME: "n1"}, phase="Pending")
    simulated = SimulatedCluster(cluster(node("n1", memory="1Gi"), pinned))
    assert node_of(simulated, "virt-launcher-v") == "n1"
