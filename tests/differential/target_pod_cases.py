"""The VMs whose target pods are compared with those that virt-controller makes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from rebalancer.model.keys import HOSTNAME
from tests.controlplane.api import Object

LABELS = dict.fromkeys(
    (
        "kubevirt.io/cpumanager",
        "cpu-model.node.kubevirt.io/Haswell",
        "cpu-feature.node.kubevirt.io/vmx",
        "cpu-feature.node.kubevirt.io/xsaves",
        "host-model-required-features.node.kubevirt.io/xsaves",
        "machine-type.node.kubevirt.io/pc-q35-9.2",
        "hyperv.node.kubevirt.io/vpindex",
        "hyperv.node.kubevirt.io/synic",
        "kubevirt.io/realtime",
        "kubevirt.io/sev",
        "kubevirt.io/sev-es",
        "kubevirt.io/sev-snp",
        "kubevirt.io/tdx",
        "pool",
    ),
    "true",
)


def cpu(**fields: object) -> Object:
    return {"cpu": {"cores": 1, "sockets": 1, "threads": 1, "model": "host-model", **fields}}


def resources(requests: Object | None = None, limits: Object | None = None, **rest: object) -> Any:
    return {"resources": {"requests": requests or {}, "limits": limits or {}, **rest}}


def apart(label: str) -> Object:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"group": label}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def require(key: str, operator: str, *values: str) -> Object:
    expression = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


class Vm(NamedTuple):
    """What is particular about one VM: parts of its domain, and other fields of its spec."""

    domain: Mapping[str, Any] = {}
    spec: Mapping[str, Any] = {}
    annotations: Mapping[str, str] = {}
    machine: str = ""
    """As virt-handler notes it in the status."""
    changed_spec: Mapping[str, Any] = {}
    """A merge patch of the spec before the third move."""


def disk(claim: str) -> Object:
    """Hot-plugged: a volume that comes in a pod of its own."""
    source = {"claimName": claim, "hotpluggable": True}
    return {"name": claim, "persistentVolumeClaim": source}


def attached_to(*definitions: str) -> Vm:
    """A VM with a secondary network of each of these definitions."""
    names = [definition.replace("/", "-") for definition in definitions]
    return Vm(
        {"devices": {"interfaces": [{"name": name, "bridge": {}} for name in names]}},
        {
            "networks": [
                {"name": name, "multus": {"networkName": definition}}
                for name, definition in zip(names, definitions, strict=True)
            ]
        },
    )


DEFINITIONS = {
    ("default", "blue"): "vendor/blue",
    ("default", "blue-too"): "vendor/blue",
    ("default", "plain"): "",
    ("default", "changing"): "vendor/blue",
    ("infra", "red"): "vendor/red",
}
"""NetworkAttachmentDefinitions by namespace and name, and the resource that each names."""
CLAIMS = ("plugged-in", "plugged-in-later", "plugged-in-second")
PROBE = {"exec": {"command": ["true"]}, "initialDelaySeconds": 5}
NIC = {"interfaces": [{"name": "default", "masquerade": {}, "model": "virtio"}]}
VMS = {
    "plain": Vm(),
    "guest-alone": Vm(resources()),
    "request-above-guest": Vm(resources({"memory": "1536Mi", "cpu": "250m"})),
    "limit-alone": Vm(resources(limits={"memory": "2Gi"})),
    "guaranteed": Vm(
        resources({"memory": "1Gi", "cpu": "2"}, {"memory": "1Gi", "cpu": "2"})
        | cpu(cores=2, threads=2)
    ),
    "overcommitted-overhead": Vm(resources({"memory": "1Gi"}, overcommitGuestOverhead=True)),
    "ephemeral-storage": Vm(resources({"memory": "1Gi", "ephemeral-storage": "2Gi"})),
    "three-vcpus": Vm(cpu(cores=3)),
    "dedicated-cpus": Vm(cpu(cores=2, dedicatedCpuPlacement=True)),
    "dedicated-and-emulator-thread": Vm(
        cpu(cores=2, dedicatedCpuPlacement=True, isolateEmulatorThread=True),
        annotations={"alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity": ""},
    ),
    "io-threads": Vm(
        {"ioThreadsPolicy": "supplementalPool", "ioThreads": {"supplementalPoolThreadCount": 4}}
    ),
    "huge-pages": Vm({"memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}}}),
    "huge-pages-below-request": Vm(
        {"memory": {"guest": "512Mi", "hugepages": {"pageSize": "2Mi"}}}
        | resources({"memory": "1Gi"})
    ),
    "no-graphics-but-tpm": Vm({"devices": {"autoattachGraphicsDevice": False, "tpm": {}}}),
    "probes": Vm(spec={"livenessProbe": PROBE, "readinessProbe": PROBE}),
    "reserved-overhead": Vm(
        {"memory": {"guest": "1Gi", "reservedOverhead": {"addedOverhead": "123Mi"}}}
    ),
    "network": Vm({"devices": NIC}, {"networks": [{"name": "default", "pod": {}}]}),
    "own-console": Vm({"devices": {"logSerialConsole": True}}),
    "no-console": Vm({"devices": {"logSerialConsole": False}}),
    "named-cpu-model": Vm(
        cpu(
            model="Haswell",
            features=[
                {"name": "vmx", "policy": "require"},
                {"name": "mpx", "policy": "forbid"},
            ],
        )
    ),
    "realtime": Vm(cpu(cores=2, dedicatedCpuPlacement=True, realtime={})),
    "machine-type-told": Vm(machine="pc-q35-9.2"),
    "all-policies-of-features": Vm(
        cpu(
            model="Haswell",
            features=[
                {"name": "xsaves"},
                {"name": "avx", "policy": "optional"},
                {"name": "pcid", "policy": "force"},
                {"name": "mpx", "policy": "disable"},
            ],
        )
    ),
    "host-passthrough": Vm(
        cpu(model="host-passthrough", features=[{"name": "vmx", "policy": "require"}])
    ),
    "named-cpu-vendor": Vm(
        cpu(model="Haswell"), {"nodeSelector": {"cpu-vendor.node.kubevirt.io/Intel": "true"}}
    ),
    "sev": Vm({"launchSecurity": {"sev": {}}}),
    "sev-es": Vm({"launchSecurity": {"sev": {"policy": {"encryptedState": True}}}}),
    "sev-snp": Vm({"launchSecurity": {"snp": {}}}),
    "tdx": Vm({"launchSecurity": {"tdx": {}}}),
    "network-without-a-device": attached_to("plain"),
    "networks-with-devices": attached_to("blue", "infra/red", "blue-too"),
    "network-that-changes": attached_to("changing"),
    "hyper-v-on-intel": Vm({"features": {"hyperv": {"evmcs": {}}}}),
    "hyper-v": Vm({"features": {"hyperv": {"vpindex": {"enabled": True}, "synic": {}}}}),
    "selector-and-tolerations": Vm(
        spec={
            "nodeSelector": {"pool": "true"},
            "tolerations": [{"key": "drain", "operator": "Exists", "effect": "NoSchedule"}],
        }
    ),
    "affinity": Vm(
        spec={
            "affinity": {
                "nodeAffinity": require("pool", "In", "true"),
                "podAntiAffinity": apart("nobody"),
            }
        }
    ),
    "no-architecture": Vm(spec={"architecture": ""}),
    "memory-plugged-in": Vm(
        changed_spec={
            "domain": {
                "memory": {"guest": "3Gi"},
                "resources": {"requests": {"memory": "3Gi"}},
            }
        }
    ),
    "memory-unplugged": Vm(
        changed_spec={
            "domain": {
                "memory": {"guest": "512Mi"},
                "resources": {"requests": {"memory": "512Mi"}},
            }
        }
    ),
    "vcpus-plugged-in": Vm(changed_spec={"domain": {"cpu": {"sockets": 5}}}),
    "volume-plugged-in": Vm(
        {"devices": {"disks": [{"name": "plugged-in", "disk": {"bus": "scsi"}}]}},
        {"volumes": [disk("plugged-in")]},
    ),
    "volumes-plugged-in-later": Vm(
        changed_spec={
            "domain": {
                "devices": {
                    "disks": [
                        {"name": "plugged-in-later", "disk": {"bus": "scsi"}},
                        {"name": "plugged-in-second", "disk": {"bus": "scsi"}},
                    ]
                }
            },
            "volumes": [disk("plugged-in-later"), disk("plugged-in-second")],
        }
    ),
    "affinity-changed": Vm(
        spec={"affinity": {"nodeAffinity": require("pool", "In", "true", "other")}},
        changed_spec={"affinity": {"nodeAffinity": require("pool", "Exists")}},
    ),
    "tolerations-changed": Vm(
        spec={"tolerations": [{"key": "drain", "operator": "Exists"}]},
        changed_spec={"tolerations": [{"key": "other", "operator": "Exists"}]},
    ),
}
CHANGED_SETTINGS = {
    "additionalGuestMemoryOverheadRatio": "1.5",
    "virtualMachineOptions": None,
    "supportContainerResources": [
        {"type": "hotplug-disk", "resources": {"requests": {"cpu": "20m", "memory": "30M"}}}
    ],
    "developerConfiguration": {
        "cpuAllocationRatio": 4,
        "memoryOvercommit": 80,
        "nodeSelectors": {"pool": "true"},
        "featureGates": ["HypervStrictCheck"],
    },
}
"""For the third move; before, consoles are not logged, so the log comes as well."""

EASIER = {
    ("network-that-changes", "changed settings"): "the device of before must be there as well",
    ("no-architecture", "first move"): "the target must be of the source's architecture",
    ("no-architecture", "second move"): "likewise",
    ("no-architecture", "changed settings"): "likewise",
    ("memory-unplugged", "changed settings"): "the target is never taken to be smaller",
    ("affinity-changed", "changed settings"): "the affinity of before must hold as well",
}
"""Where the real target pod is easier to place than the one foretold."""
