"""The target pod as we render it, beside the one that virt-controller makes.

Every VM of a table is migrated twice, and a third time after KubeVirt's settings have changed. Its
target pod must be the one foretold, or easier to place than that; where it is, the table says so.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pytest
from msgspec.structs import replace

from rebalancer.cluster.dump import Dump, Place
from rebalancer.model.objects import Pod, Requirement
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.target_pod import target_pod
from tests.controlplane import builders
from tests.controlplane.api import Api, Object, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubevirt import NAMESPACE as KUBEVIRT_NAMESPACE
from tests.controlplane.reset import reset
from tests.controlplane.scenario import add_nodes, start_vmis
from tests.controlplane.waiting import wait_for
from tests.differential.networks import NETWORKS, add_networks, change_network
from tests.differential.target_pod_cases import (
    CHANGED_SETTINGS,
    CLAIMS,
    DEFINITIONS,
    EASIER,
    LABELS,
    VMS,
    Vm,
)

KUBEVIRT = path_of("kubevirts", KUBEVIRT_NAMESPACE, "kubevirt")
VMIS = path_of("virtualmachineinstances", "default")
MIGRATIONS = path_of("virtualmachineinstancemigrations", "default")
MANY_AT_ONCE = {"parallelMigrationsPerCluster": 100, "parallelOutboundMigrationsPerNode": 100}


@pytest.fixture(scope="module")
def moved(control_plane: ControlPlane) -> Iterator[Mapping[tuple[str, str], tuple[Pod, Pod]]]:
    """By VM and occasion: the target pod as foretold, and the one that came."""
    reset(control_plane)
    with control_plane.api() as api:
        configure(api, {"virtualMachineOptions": {"disableSerialConsoleLog": {}}})
        add_nodes(api, [rich_node(f"n{number}") for number in (1, 2, 3)])
        for name in CLAIMS:
            add_claim(api, name)
        api.create(path_of("namespaces"), {"metadata": {"name": "infra"}})
        add_networks(api, DEFINITIONS)
        start_vmis(api, {"n1": [manifest(name, vm) for name, vm in VMS.items()]})
        for name, vm in VMS.items():
            if vm.machine:
                api.patch(f"{VMIS}/{name}", {"status": {"machine": {"type": vm.machine}}})
        pods: dict[tuple[str, str], tuple[Pod, Pod]] = {}
        for occasion in ("first move", "second move", "changed settings"):
            if occasion == "changed settings":
                configure(api, CHANGED_SETTINGS)
                change_network(api, "default", "changing", "vendor/red")
                for name, vm in VMS.items():
                    api.patch(f"{VMIS}/{name}", {"spec": vm.changed_spec})
            for name, pair in migrate_all(api, occasion).items():
                pods[name, occasion] = pair
        yield pods
    reset(control_plane)


@pytest.mark.parametrize("occasion", ["first move", "second move", "changed settings"])
@pytest.mark.parametrize("name", VMS)
def test_target_pod_is_as_foretold_or_easier_to_place(
    name: str, occasion: str, moved: Mapping[tuple[str, str], tuple[Pod, Pod]]
) -> None:
    foretold, real = moved[name, occasion]
    assert harder_to_place(real, foretold) == []
    too_hard = harder_to_place(foretold, real)
    assert bool(too_hard) is ((name, occasion) in EASIER), too_hard


def harder_to_place(pod: Pod, other: Pod) -> Sequence[str]:
    """In what the pod asks for more, or puts up with less, than the other."""
    return [
        *(
            f"{resource} {amount} > {other.requests.get(resource, 0)}"
            for resource, amount in pod.requests.items()
            if amount > other.requests.get(resource, 0)
        ),
        *(f"selects {s}" for s in pod.node_selector.items() - other.node_selector.items()),
        *(f"affinity {t}" for t in set(pod.pod_affinity) - set(other.pod_affinity)),
        *(f"anti-affinity {t}" for t in set(pod.pod_anti_affinity) - set(other.pod_anti_affinity)),
        *(f"does not tolerate {t}" for t in set(other.tolerations) - set(pod.tolerations)),
        *(f"node affinity {e}" for e in required_of_nodes(pod) - required_of_nodes(other)),
        *(f"claims {c}" for c in set(pod.claim_names) - set(other.claim_names)),
        *(f"has {what}" for what in set(pod.unmodelled) - set(other.unmodelled)),
    ]


def required_of_nodes(pod: Pod) -> set[Requirement]:
    """All pods here have one term, which must hold whole."""
    terms = pod.node_affinity or ()
    assert len(terms) <= 1
    return {expression for term in terms for expression in term.expressions}


def rich_node(name: str) -> Object:
    node = builders.node(name, memory="128Gi", cpu="64", labels=LABELS)
    devices = dict.fromkeys(("vendor/blue", "vendor/red", "devices.kubevirt.io/sev"), "100")
    room = {**node["status"]["allocatable"], "hugepages-2Mi": "16Gi", **devices}
    node["status"] = {"allocatable": room, "capacity": room}
    return node


def manifest(name: str, vm: Vm) -> Object:
    made = builders.vmi(name, annotations=vm.annotations, **vm.spec)
    made["spec"]["domain"] |= vm.domain
    return made


def add_claim(api: Api, name: str) -> None:
    """A claim that is bound to a volume of its own."""
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {**common, "capacity": {"storage": "1Gi"}, "nfs": {"server": "nfs", "path": "/"}},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            **common,
            "volumeName": name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    api.create(path_of("persistentvolumes"), volume)
    api.create(path_of("persistentvolumeclaims", "default"), claim)


def configure(api: Api, configuration: Object) -> None:
    settings = {**configuration, "migrations": MANY_AT_ONCE}
    api.update(KUBEVIRT, api.get(KUBEVIRT) | {"spec": {"configuration": settings}})


def migrate_all(api: Api, occasion: str) -> dict[str, tuple[Pod, Pod]]:
    before = snapshot(api)
    foretold = {}
    for vmi in before.vmis:
        pod = before.pod_of_vmi(vmi)
        assert pod is not None, f"{vmi.name} has not one launcher pod"
        foretold[vmi.name] = target_pod(vmi, pod, before)
    suffix = occasion.replace(" ", "-")
    for name in foretold:
        api.create(MIGRATIONS, builders.migration(f"{name}-{suffix}", name))
    wait_for(
        lambda: {
            m["metadata"]["name"]: m.get("status", {}).get("phase") for m in api.list(MIGRATIONS)
        },
        lambda phases: set(phases.values()) == {"Succeeded"},
        f"the {occasion} of all VMs",
        seconds=600,
    )
    after = wait_for(
        lambda: snapshot(api),
        lambda seen: all(seen.pod_of_vmi(vmi) for vmi in seen.vmis),
        "source pods to be gone",
    )
    real = {vmi.name: after.pod_of_vmi(vmi) for vmi in after.vmis}
    return {
        name: (foretold[name], with_attachments(pod, after))
        for name, pod in real.items()
        if pod is not None
    }


def with_attachments(launcher: Pod, seen: Snapshot) -> Pod:
    """The launcher pod, and what the pods that bring volumes to it need at its side."""
    pods = (launcher, *(pod for pod in seen.pods if pod.attached_to == launcher.uid))
    requests = Counter[str]()
    for pod in pods:
        requests.update(pod.requests)
    claims = tuple(claim for pod in pods for claim in pod.claim_names)
    return replace(launcher, requests=dict(requests), claim_names=claims)


def snapshot(api: Api) -> Snapshot:
    dump = Dump()
    for plural in (
        *("nodes", "pods", "virtualmachineinstances", "kubevirts", "namespaces"),
        NETWORKS,
    ):
        dump.add(json.dumps(api.get(path_of(plural))).encode(), Place(plural))
    seen = dump.snapshot("the cluster")
    return replace(seen, pods=without_replaced(seen.pods))


def without_replaced(pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """With one attachment pod per launcher, the newest.

    virt-controller tells attachment pods that are up to date by their number of volumes, a service
    account's token among them. Here pods have none, so it replaces them again and again.
    """
    by_age = sorted(pods, key=lambda pod: str(pod.created_at))
    newest = {pod.attached_to: pod for pod in by_age if pod.attached_to}
    return tuple(pod for pod in pods if newest.get(pod.attached_to or "", pod) is pod)
