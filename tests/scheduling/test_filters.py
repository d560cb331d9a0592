"""Each filter against what kube-scheduler's plugin of the same name decides."""

from typing import Any

import pytest
from msgspec.structs import replace

from rebalancer.model.objects import (
    CSIDriver,
    LabelSelector,
    Namespace,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodAffinityTerm,
    Requirement,
    StorageClass,
    Taint,
    Toleration,
)
from rebalancer.planning.outlook import lock_pod
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.state import ClusterState
from tests.builders import Thing, cluster, node, pod


def nodes_for(asked: Pod, *things: Thing) -> list[str]:
    """The nodes that take the pod; `things` are all nodes and pods of the cluster."""
    state = ClusterState(cluster(*things))
    feasible = evaluate(asked, state).feasible
    return [each.name for each, is_in in zip(state.nodes, feasible, strict=True) if is_in]


def term(operator: Any, *values: str, key: str = "size") -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm((Requirement(key, operator, values),)),)


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (term("In", "4", "8"), ["four"]),
        (term("NotIn", "4"), ["ten", "none", "word"]),
        (term("Exists"), ["four", "ten", "word"]),
        (term("DoesNotExist"), ["none"]),
        (term("Gt", "4"), ["ten"]),
        (term("Lt", "10"), ["four"]),
        ((NodeSelectorTerm(),), []),
        (term("In", "4") + term("In", "10"), ["four", "ten"]),
        ((NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("ten",)),)),), ["ten"]),
    ],
    ids=["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "empty term", "or", "by name"],
)
def test_node_affinity_follows_the_api(
    affinity: tuple[NodeSelectorTerm, ...], expected: list[str]
) -> None:
    sizes = {"four": "4", "ten": "10", "none": None, "word": "large"}
    nodes = [node(name, labels={"size": size} if size else {}) for name, size in sizes.items()]
    assert nodes_for(pod("p", node_affinity=affinity), *nodes) == expected


@pytest.mark.parametrize(
    ("taint", "toleration", "is_let_in"),
    [
        (Taint("k", "NoSchedule", "v"), None, False),
        (Taint("k", "NoExecute"), None, False),
        (Taint("k", "PreferNoSchedule"), None, True),
        (Taint("k", "NoSchedule", "v"), Toleration("k", "Equal", "v"), True),
        (Taint("k", "NoSchedule", "v"), Toleration("k", "Equal", "w"), False),
        (Taint("k", "NoSchedule", "v"), Toleration("k", "Exists"), True),
        (Taint("k", "NoSchedule", "v"), Toleration("", "Exists"), True),
        (Taint("k", "NoSchedule", "v"), Toleration("k", "Exists", effect="NoExecute"), False),
    ],
)
def test_taints_bar_unless_tolerated(
    taint: Taint, toleration: Toleration | None, is_let_in: bool
) -> None:
    asked = pod("p", tolerations=(toleration,) if toleration else ())
    assert nodes_for(asked, node("n", taints=(taint,))) == (["n"] if is_let_in else [])


def test_a_cordoned_node_takes_only_what_tolerates_the_cordon() -> None:
    cordoned = node("n", is_unschedulable=True)
    tolerant = Toleration("node.kubernetes.io/unschedulable", "Exists")
    assert nodes_for(pod("p"), cordoned) == []
    assert nodes_for(pod("p", tolerations=(tolerant,)), cordoned) == ["n"]


def test_a_resource_that_is_not_asked_for_is_not_looked_at() -> None:
    crowded = node("n", cpu="1")
    hog = pod("hog", on="n", cpu="2")
    assert nodes_for(pod("p", cpu="0"), crowded, hog) == ["n"]
    assert nodes_for(pod("p", cpu="1m"), crowded, hog) == []


def test_pod_slots_are_a_resource() -> None:
    full = node("full", pods="1")
    assert nodes_for(pod("p"), full, node("n", pods="2"), pod("one", on="full")) == ["n"]


def test_a_finished_pod_holds_no_room_and_a_leaving_one_does() -> None:
    small = node("n", memory="1Gi")
    ended = pod("ended", on="n", memory="1Gi")
    assert nodes_for(pod("p"), small, pod("e", on="n", memory="1Gi", phase="Succeeded")) == ["n"]
    assert nodes_for(pod("p"), small, pod("l", on="n", memory="1Gi", is_terminating=True)) == []
    assert nodes_for(pod("p"), small, ended) == []


def test_a_nominated_pod_holds_its_room() -> None:
    nominee = pod("nominee", memory="1Gi", nominated_node_name="n")
    assert nodes_for(pod("p"), node("n", memory="1Gi"), nominee) == []


def test_a_bound_volume_is_only_where_its_affinity_says() -> None:
    volume = PersistentVolume("pv", term("In", "a", key="zone"))
    claim = PersistentVolumeClaim("default", "data", "pv")
    nodes = node("here", labels={"zone": "a"}), node("there", labels={"zone": "b"})
    assert nodes_for(pod("p", claim_names=("data",)), *nodes, claim, volume) == ["here"]


@pytest.mark.parametrize(
    "known", [(), (PersistentVolumeClaim("default", "data"),)], ids=["no claim", "unbound claim"]
)
def test_a_volume_that_is_not_known_bars_every_node(known: tuple[Thing, ...]) -> None:
    assert nodes_for(pod("p", claim_names=("data",)), node("n"), *known) == []


UNBOUND = PersistentVolumeClaim("default", "data", storage_class="local")
LOCAL = StorageClass("local", "lvm", True)
ZONE_A = StorageClass("local", "lvm", True, term("In", "a", key="zone"))
AWAITING = pod("p", claim_names=("data",))
IN_TWO_ZONES = (node("here", labels={"zone": "a"}), node("there", labels={"zone": "b"}))


@pytest.mark.parametrize(
    ("claim", "storage_class", "expected"),
    [
        (UNBOUND, LOCAL, ["here", "there"]),
        (UNBOUND, ZONE_A, ["here"]),
        (replace(UNBOUND, selected_node="there"), LOCAL, ["there"]),
        (replace(UNBOUND, selected_node="there"), ZONE_A, []),
        (UNBOUND, replace(LOCAL, allowed_topologies=(NodeSelectorTerm(),)), []),
    ],
    ids=["anywhere", "in one zone", "where it is being made", "in the wrong zone", "nowhere"],
)
def test_a_volume_is_made_for_its_first_consumer_where_the_class_allows_it(
    claim: PersistentVolumeClaim, storage_class: StorageClass, expected: list[str]
) -> None:
    assert nodes_for(AWAITING, *IN_TWO_ZONES, claim, storage_class) == expected


@pytest.mark.parametrize(
    ("storage_class", "others", "problem"),
    [
        (replace(LOCAL, name="other"), (), "its StorageClass local is not in the snapshot"),
        (
            replace(LOCAL, waits_for_consumer=False),
            (),
            "StorageClass local makes one before the pod is scheduled",
        ),
        (
            replace(LOCAL, provisioner="kubernetes.io/no-provisioner"),
            (),
            "provisioner kubernetes.io/no-provisioner of StorageClass local is not modelled",
        ),
        (
            LOCAL,
            (CSIDriver("lvm", tracks_capacity=True),),
            "what lvm has room for is not modelled",
        ),
    ],
    ids=["unknown class", "immediate", "volumes made by hand", "capacity is tracked"],
)
def test_a_claim_for_which_no_volume_would_be_made_bars_every_node(
    storage_class: StorageClass, others: tuple[Thing, ...], problem: str
) -> None:
    things = (node("n"), UNBOUND, storage_class, *others)
    [reason] = evaluate(AWAITING, ClusterState(cluster(*things))).reasons(0)
    claim = "PersistentVolumeClaim default/data is not bound to a volume"
    assert reason.message == f"{claim}, and {problem}"


WEB = LabelSelector((Requirement("app", "In", ("web",)),))
ZONES = (
    node("a1", labels={"zone": "a"}),
    node("a2", labels={"zone": "a"}),
    node("b1", labels={"zone": "b"}),
    node("x", labels={}),
)


def zone_term(**fields: Any) -> tuple[PodAffinityTerm, ...]:
    defaults: dict[str, Any] = {"selector": WEB, "namespaces": ("default",)}
    return (PodAffinityTerm("zone", **{**defaults, **fields}),)


def test_own_anti_affinity_keeps_off_the_whole_domain() -> None:
    there = pod("w", on="a1", labels={"app": "web"})
    assert nodes_for(pod("p", pod_anti_affinity=zone_term()), *ZONES, there) == ["b1", "x"]


def test_anti_affinity_of_pods_that_are_there_counts_as_well() -> None:
    there = pod("w", on="a1", pod_anti_affinity=zone_term())
    assert nodes_for(pod("p", labels={"app": "web"}), *ZONES, there) == ["b1", "x"]
    assert nodes_for(pod("p", labels={"app": "db"}), *ZONES, there) == ["a1", "a2", "b1", "x"]


def test_affinity_needs_a_matching_pod_in_the_domain() -> None:
    there = pod("w", on="a1", labels={"app": "web"})
    assert nodes_for(pod("p", pod_affinity=zone_term()), *ZONES, there) == ["a1", "a2"]
    assert nodes_for(pod("p", pod_affinity=zone_term()), *ZONES) == []


def test_the_first_pod_of_its_kind_may_go_to_any_domain() -> None:
    first = pod("p", labels={"app": "web"}, pod_affinity=zone_term())
    assert nodes_for(first, *ZONES) == ["a1", "a2", "b1"]


@pytest.mark.parametrize(
    ("fields", "is_meant"),
    [
        ({"namespaces": ("other",)}, False),
        ({"namespaces": (), "namespace_selector": LabelSelector()}, True),
        (
            {
                "namespaces": (),
                "namespace_selector": LabelSelector((Requirement("team", "In", ("x",)),)),
            },
            True,
        ),
        (
            {
                "namespaces": (),
                "namespace_selector": LabelSelector((Requirement("team", "In", ("y",)),)),
            },
            False,
        ),
        ({"selector": None}, False),
    ],
    ids=["other namespace", "all", "selected", "not selected", "no selector"],
)
def test_a_term_means_pods_of_its_namespaces(fields: dict[str, Any], is_meant: bool) -> None:
    there = pod("w", on="a1", labels={"app": "web"})
    asked = pod("p", pod_anti_affinity=zone_term(**fields))
    team = Namespace("default", {"team": "x"})
    assert ("a2" not in nodes_for(asked, *ZONES, there, team)) is is_meant


def test_a_lock_pod_lets_only_the_admitted_in() -> None:
    lock = lock_pod("lock", "n1", ("uid-1", "uid-2"))
    nodes = node("n1"), node("n2")
    assert nodes_for(pod("p", labels={"kubevirt.io/created-by": "uid-2"}), *nodes, lock) == [
        "n1",
        "n2",
    ]
    assert nodes_for(pod("p", labels={"kubevirt.io/created-by": "uid-3"}), *nodes, lock) == ["n2"]
    assert nodes_for(pod("p"), *nodes, lock) == ["n2"]
