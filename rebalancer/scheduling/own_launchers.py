"""The anti-affinity that keeps the target of a migration off its VM's other launcher pods.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-controller/watch/migration/migration.go.
"""

from rebalancer.model.keys import CREATED_BY, HOSTNAME
from rebalancer.model.objects import (
    LabelSelector,
    Pod,
    PodAffinityTerm,
    Requirement,
    VirtualMachineInstance,
)


def off_its_launchers(vmi: VirtualMachineInstance) -> PodAffinityTerm:
    """Keeps the target off the node of the source pod."""
    return PodAffinityTerm(
        topology_key=HOSTNAME,
        selector=LabelSelector((Requirement(CREATED_BY, "In", (vmi.uid,)),)),
        namespaces=(vmi.namespace,),
    )


def is_off_its_launchers(term: PodAffinityTerm, pod: Pod) -> bool:
    """Whether it keeps the launcher pod off its VM's other launchers, and off nobody else."""
    if term.topology_key != HOSTNAME or term.selector is None:
        return False
    requirements = term.selector.requirements
    return (
        len(requirements) == 1
        and requirements[0].key == CREATED_BY
        and requirements[0].operator == "In"
        and requirements[0].values == (pod.vmi_uid,)
    )


def off_others(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    """What else the launcher pod keeps off."""
    return tuple([term for term in pod.pod_anti_affinity if not is_off_its_launchers(term, pod)])
