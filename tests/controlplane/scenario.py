"""Brings nodes, pods and VMIs into a cluster; and with them the request's cluster.

The request: three workers run two VMs of 8Gi each, every one has room for a third, none for a VM
of 16Gi, and one migration makes that room.
"""

from collections.abc import Mapping, Sequence

from . import builders
from .api import Api, Object, path_of
from .cluster import ControlPlane
from .waiting import wait_for

GREEN = "worker-green.shift.toca.local"
BLUE = "worker-blue.shift.toca.local"
RED = "worker-red.shift.toca.local"
CORDONED = "worker-grey.shift.toca.local"
MASTERS = tuple(f"master-{number}.shift.toca.local" for number in range(3))

# `kubectl describe node` cuts percentages off; only 31025Mi to 31028Mi give 64, 58 and 64 % for
# the request's 19858Mi, 18024Mi and 20166Mi.
WORKER_MEMORY_MI = 31026
REQUESTED_MI = {GREEN: 19858, BLUE: 18024, RED: 20166}
# What a launcher pod of virt-controller v1.8.4 requests for a guest of 8Gi with one core: 284Mi of
# overhead in the container `compute`, and 35M for `guest-console-log` beside it.
LAUNCHER_BYTES = 8476 * 2**20 + 35_000_000

VMS = {
    GREEN: ("centos-stream8-empty-whitefish", "centos7-loud-bear"),
    BLUE: ("fedora-advanced-goose", "fedora-civil-spoonbill"),
    RED: ("fedora-frozen-stingray", "centos-stream9-useless-raven"),
}
BIG_VM = "rhel7-red-llama"


def load_request_scenario(control_plane: ControlPlane) -> None:
    """Bring up the request's seven nodes and its six VMs; returns when all of them run."""
    memory = f"{WORKER_MEMORY_MI}Mi"
    worker = {"node-role.kubernetes.io/worker": ""}
    master = {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}
    nodes = [builders.node(name, memory=memory, labels=worker) for name in VMS]
    nodes.append(builders.node(CORDONED, memory=memory, labels=worker, unschedulable=True))
    nodes += [builders.node(name, memory=memory, taints=[master]) for name in MASTERS]
    # One pod per worker stands for all the cluster's own.
    others = [
        builders.pod(
            f"cluster-services-{name.split('.')[0]}",
            memory=str(requested * 2**20 - 2 * LAUNCHER_BYTES),
            node=name,
            namespace="kube-system",
        )
        for name, requested in REQUESTED_MI.items()
    ]
    vmis = {name: [builders.vmi(vm, guest_memory="8Gi") for vm in vms] for name, vms in VMS.items()}
    with control_plane.api() as api:
        add_nodes(api, nodes)
        for pod in others:
            api.create(path_of("pods", "kube-system"), pod)
        start_vmis(api, vmis)


def start_big_vm(control_plane: ControlPlane) -> None:
    """Create the request's seventh VM, which has no room."""
    with control_plane.api() as api:
        create_vmi(api, builders.vmi(BIG_VM, guest_memory="16Gi"))


def add_nodes(api: Api, nodes: Sequence[Object]) -> None:
    """Create nodes and wait until the scheduler may use them."""
    for node in nodes:
        api.create(path_of("nodes"), node)
    open_nodes = [each for each in nodes if not each["spec"]["unschedulable"]]
    _wait_until_open(api, [each["metadata"]["name"] for each in open_nodes])


def create_vmi(api: Api, vmi: Object) -> None:
    """Create a VMI and leave it to the scheduler."""
    api.create(path_of("virtualmachineinstances", vmi["metadata"]["namespace"]), vmi)


def start_vmis(api: Api, vmis_by_node: Mapping[str, Sequence[Object]]) -> None:
    """Start VMIs on given nodes, and return when all of them run.

    A node selector would pin them there for good; instead all other nodes are cordoned meanwhile.
    """
    open_nodes = [
        each["metadata"]["name"]
        for each in api.list(path_of("nodes"))
        if not each["spec"].get("unschedulable")
    ]
    for name in open_nodes:
        _cordon(api, name, True)
    for name, vmis in vmis_by_node.items():
        _cordon(api, name, False)
        for vmi in vmis:
            create_vmi(api, vmi)
        _wait_until_running(api, vmis, name)
        _cordon(api, name, True)
    _wait_until_cordoned(api, open_nodes)
    for name in open_nodes:
        _cordon(api, name, False)
    _wait_until_open(api, open_nodes)


def _wait_until_running(api: Api, vmis: Sequence[Object], node_name: str) -> None:
    names = {_qualified_name(vmi) for vmi in vmis}

    def read() -> dict[str, Object]:
        found = {_qualified_name(vmi): vmi for vmi in api.list(path_of("virtualmachineinstances"))}
        return {name: found[name]["status"] for name in names & found.keys()}

    def all_run(statuses: dict[str, Object]) -> bool:
        return len(statuses) == len(names) and all(
            status.get("nodeName") == node_name and _is_true("Ready", status)
            for status in statuses.values()
        )

    wait_for(read, all_run, f"VMIs to run on {node_name}")


def _wait_until_open(api: Api, names: Sequence[str]) -> None:
    """Until nodes are ready and the taints are gone that say otherwise, or that a cordon leaves."""

    def all_open(nodes: dict[str, Object]) -> bool:
        return all(
            _is_true("Ready", each["status"])
            and not any(key.startswith("node.kubernetes.io/") for key in _taints(each))
            for each in nodes.values()
        )

    wait_for(lambda: _nodes(api, names), all_open, f"{len(names)} nodes to be open for pods")


def _wait_until_cordoned(api: Api, names: Sequence[str]) -> None:
    """Until the taint of the cordon is there; if not waited for, it may come after the uncordon."""

    def all_tainted(nodes: dict[str, Object]) -> bool:
        return all("node.kubernetes.io/unschedulable" in _taints(each) for each in nodes.values())

    wait_for(lambda: _nodes(api, names), all_tainted, f"{len(names)} nodes to be tainted")


def _nodes(api: Api, names: Sequence[str]) -> dict[str, Object]:
    nodes = {each["metadata"]["name"]: each for each in api.list(path_of("nodes"))}
    return {name: {key: nodes[name][key] for key in ("spec", "status")} for name in names}


def _taints(node: Object) -> list[str]:
    return [taint["key"] for taint in node["spec"].get("taints", [])]


def _cordon(api: Api, name: str, unschedulable: bool) -> None:
    api.patch(path_of("nodes", name=name), {"spec": {"unschedulable": unschedulable}})


def _qualified_name(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _is_true(condition: str, status: Object) -> bool:
    return any(
        each["type"] == condition and each["status"] == "True"
        for each in status.get("conditions", [])
    )
