"""Public reports about what nodes offer: amounts, devices, slots, architecture, soft taints.

A case is named after its place in our list and the report that it comes from.
"""

from typing import Any

import pytest

from rebalancer.model.objects import Condition, Taint
from rebalancer.model.plan import Verdict
from rebalancer.model.snapshot import Snapshot
from tests.builders import Launched, Thing, cluster, node, pending_vm, pod, vm
from tests.strategies.decisions import Case, assert_decided

PLANNED = {"p": Verdict.PLANNED}
IMPOSSIBLE = {"p": Verdict.IMPOSSIBLE}


def exact_bytes(needed: str, *, q: str = "512M") -> Snapshot:
    """n1 has 561741824 bytes beside a fixed pod and q, which can only go to n2."""
    return cluster(
        node("n1", memory="1.5Gi"),
        node("n2", memory="512M"),
        pod("fixed", on="n1", memory="561741824"),
        vm("q", on="n1", memory=q),
        pending_vm("p", needed, node_selector={"kubernetes.io/hostname": "n1"}),
    )


def two_architectures(*others: Thing, architecture: str = "amd64", on: str = "amd64") -> Snapshot:
    """q asks for its architecture by the label of the node that it started on."""
    selector = {"kubernetes.io/arch": on, "kubevirt.io/schedulable": "true"}
    q = vm("q", on="n1", memory="6Gi", vmi={"architecture": architecture})
    return cluster(
        node("n1", memory="10Gi"),
        node("n2", memory="5Gi"),
        node("n3", memory="20Gi", labels={"kubernetes.io/arch": "arm64"}),
        (q[0], vm("q", on="n1", memory="6Gi", node_selector=selector)[1]),
        *others,
        pending_vm("p", "8Gi"),
    )


def pages(amount: str) -> dict[str, str]:
    return {"hugepages-1Gi": amount}


def huge_pages(*others: Thing) -> Snapshot:
    """Memory is free everywhere; pages are what is short."""
    return cluster(
        node("n1", memory="120Gi", resources=pages("20Gi")),
        node("n2", memory="120Gi", resources=pages("20Gi")),
        node("n3", memory="100Gi"),
        vm("a", on="n1", memory="1Gi", resources=pages("20Gi")),
        vm("c", on="n2", memory="1Gi", resources=pages("8Gi")),
        *others,
        pending_vm("p", "1Gi", resources=pages("16Gi")),
    )


VF = "intel.com/82599_ETHERNET_CONTROLLER_VIRTUAL_FUNCTION"
HOST_DEVICE = Condition("False", "HostDeviceNotLiveMigratable", "VMI uses a host device")
DONGLE = "company.com/wifi-dongle"
VGPU = "nvidia.com/NVIDIA_A2-4Q"


STAYS: dict[str, Any] = {"node_selector": {"kubernetes.io/hostname": "n2"}}


def virtual_functions() -> Snapshot:
    """s can only go where a virtual function is left, though n2 has more memory."""
    return cluster(
        node("n1", memory="16Gi", resources={VF: "1"}),
        node("n2", memory="20Gi", resources={VF: "1"}),
        node("n3", memory="8Gi", resources={VF: "1"}),
        vm("s", on="n1", memory="6Gi", resources={VF: "1"}),
        vm("t", on="n2", memory="1Gi", resources={VF: "1"}, **STAYS),
        pod("fixed-1", on="n1", memory="2Gi"),
        pod("fixed-2", on="n2", memory="6Gi"),
        pending_vm("p", "14Gi"),
    )


def host_device(resource: str, *, live_migratable: Launched) -> Snapshot:
    """All of the node's devices are with one VM."""
    return cluster(
        node("n1", memory="32Gi", resources={resource: "2"}),
        node("n2", memory="32Gi"),
        live_migratable,
        pending_vm("p", "1Gi", resources={resource: "1"}),
    )


DISK_FULL: tuple[Thing, ...] = (
    node("n2", memory="32Gi", resources={"ephemeral-storage": "33812468066"}),
    pod("disk", on="n2", memory="1Gi", resources={"ephemeral-storage": "15G"}),
)
PODS_FULL: tuple[Thing, ...] = (
    node("n3", memory="32Gi", pods="20"),
    *(pod(f"small-{i}", on="n3") for i in range(20)),
)
KVM_FULL: tuple[Thing, ...] = (
    node("n4", memory="32Gi", pods="250", resources={"devices.kubevirt.io/kvm": "110"}),
    pod("devices", on="n4", resources={"devices.kubevirt.io/kvm": "110"}),
)


def slots(*others: Thing) -> Snapshot:
    """v asks for ephemeral storage as well, and must make way for p."""
    return cluster(
        node("n1", memory="8Gi"),
        *others,
        vm("v", on="n1", memory="4Gi", resources={"ephemeral-storage": "21474886480"}),
        pending_vm("p", "7Gi", node_selector={"kubernetes.io/hostname": "n1"}),
    )


def soft_taint(*, other: str) -> Snapshot:
    avoided = Taint("nodeutilization.descheduler.kubernetes.io/overutilized", "PreferNoSchedule")
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="6Gi", taints=(avoided,)),
        node("n3", memory=other),
        vm("a", on="n1", memory="6Gi"),
        pending_vm("p", "12Gi"),
    )


CASES = {
    "R04 calfonso/rusternetes#86 what fits to the byte": Case(
        lambda: exact_bytes("1048870912"), PLANNED, "q->n2"
    ),
    "R04 kubevirt/kubevirt#9912 one byte too many": Case(
        lambda: exact_bytes("1048870913"), IMPOSSIBLE, says=("memory: needs 1048870913",)
    ),
    "R04 an amount in thousandths": Case(
        lambda: exact_bytes("1048870912000m", q="511999999001m"), PLANNED, "q->n2"
    ),
    "R12 kubevirt/kubevirt#17928 the only room is on another architecture": Case(
        two_architectures, IMPOSSIBLE, says=("NodeAffinity",)
    ),
    "R12 kubevirt/kubevirt#15391 room on the same architecture": Case(
        lambda: two_architectures(node("n4", memory="6Gi")), PLANNED, "q->n4"
    ),
    "R12 kubevirt/kubevirt#8456 the VM names none": Case(
        lambda: two_architectures(architecture=""), IMPOSSIBLE, says=("NodeAffinity",)
    ),
    "R20 kubevirt/kubevirt#14854 memory frees no pages": Case(
        huge_pages, IMPOSSIBLE, says=("hugepages-1Gi: needs 17179869184",)
    ),
    "R20 pages elsewhere": Case(
        lambda: huge_pages(node("n4", memory="120Gi", resources=pages("8Gi"))), PLANNED, "c->n4"
    ),
    "R20 pages of another size do not help": Case(
        lambda: huge_pages(node("n4", memory="120Gi", resources={"hugepages-2Mi": "8Gi"})),
        IMPOSSIBLE,
    ),
    "R21 kubevirt/kubevirt#14423 virtual functions are counted": Case(
        virtual_functions, PLANNED, "s->n3"
    ),
    "R21 kubevirt/kubevirt#11328 used devices stay allocatable": Case(
        lambda: host_device(
            DONGLE,
            live_migratable=vm(
                "h",
                on="n1",
                memory="6Gi",
                resources={DONGLE: "2"},
                vmi={"live_migratable": HOST_DEVICE},
            ),
        ),
        IMPOSSIBLE,
        says=(f"{DONGLE}: needs 1 (1), headroom 0 of 2", "HostDeviceNotLiveMigratable"),
    ),
    "R21 harvester/harvester#5262 the device is nowhere else": Case(
        lambda: host_device(
            VGPU, live_migratable=vm("h", on="n1", memory="6Gi", resources={VGPU: "2"})
        ),
        IMPOSSIBLE,
        says=(f"{VGPU}: needs 2 (2), headroom 0 of 0",),
    ),
    "R22 deckhouse/virtualization#2549 every slot counts": Case(
        lambda: slots(*DISK_FULL, *PODS_FULL, *KVM_FULL, node("n5", memory="6Gi")),
        PLANNED,
        "v->n5",
    ),
    "R22 cozystack/cozystack#2317 no disk space": Case(
        lambda: slots(*DISK_FULL), IMPOSSIBLE, says=("ephemeral-storage: needs 21474886480",)
    ),
    "R22 kubevirt/kubevirt#6082 no slot for a pod": Case(
        lambda: slots(*PODS_FULL), IMPOSSIBLE, says=("pods: needs 1",)
    ),
    "R22 kubevirt/kubevirt#997 no slot of a device": Case(
        lambda: slots(*KVM_FULL), IMPOSSIBLE, says=("devices.kubevirt.io/kvm: needs 1",)
    ),
    "R39 openshift/enhancements#1760 a soft taint is a cost": Case(
        lambda: soft_taint(other="6Gi"), PLANNED, "a->n3"
    ),
    "R39 and no bar": Case(lambda: soft_taint(other="4Gi"), PLANNED, "a->n2"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_public_case_is_decided_as_it_should_be(case: Case) -> None:
    assert_decided(case)
