"""Labels and annotations: KubeVirt's, the descheduler's and our own."""

HOSTNAME = "kubernetes.io/hostname"
ARCHITECTURE = "kubernetes.io/arch"

CONTROL_PLANE_TAINTS = {
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
}
"""Keys of the taints that keep everything but the cluster's own pods off a node."""

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
"""Key of the taint of a cordoned node."""

SCHEDULABLE = "kubevirt.io/schedulable"
"""On a node: `true` while its virt-handler answers."""

ZONE = "topology.kubernetes.io/zone"

TOPOLOGY_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    ZONE: ZONE,
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Zone and region labels of volumes and nodes, and what each is called today."""

CREATED_BY = "kubevirt.io/created-by"
"""On a launcher pod: uid of its VMI."""
MIGRATION_JOB_UID = "kubevirt.io/migrationJobUID"
"""On a migration's target pod: uid of the migration."""

CPU_FEATURE = "cpu-feature.node.kubevirt.io/"
"""On a node, with the name of a feature behind it: its processor has that."""
EVEN_PARITY = "alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity"
"""On a VMI with an isolated emulator thread: its CPUs are made an even number."""

AUTO_MEMORY_LIMITS_RATIO = "alpha.kubevirt.io/auto-memory-limits-ratio"
"""On a namespace: memory limits that KubeVirt puts in are this many times the request."""

PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
EVICTION_IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"

OPT_OUT = "rebalancer/opt-out"
"""On a VMI: it is never moved, whatever the value, unless that is `false`."""
DRAIN = "rebalancer/drain"
"""Label or annotation on a node: its VMs are to leave it, whatever the value, unless `false`."""
PLAN_ID = "rebalancer/plan-id"
"""On what we create: the plan that it belongs to."""
GOAL_UID = "rebalancer/goal-uid"
"""On what we create: uid of the VMI, node or other subject that it is for."""
TRACE_ID = "rebalancer/trace-id"
"""Annotation on a migration: its trace, as 32 hexadecimal digits."""

LONGEST_LABEL_VALUE = 63
"""Characters; names of objects may have 253."""
