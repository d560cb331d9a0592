"""Which nodes their administrators want emptied."""

from rebalancer.model.objects import MigrationConfiguration, Node


def drain_sign(node: Node, configuration: MigrationConfiguration) -> str:
    """What asks for the node to be emptied, in words; empty if nothing does.

    A cordon alone is no such sign: it only keeps newcomers off. The taint is the one at which
    KubeVirt's evacuation controller acts (v1.8.4 pkg/virt-controller/watch/drain/evacuation).
    """
    key = configuration.node_drain_taint_key
    is_tainted = any(taint.key == key and taint.effect == "NoSchedule" for taint in node.taints)
    return node.drain_sign or (f"taint {key}:NoSchedule" if is_tainted else "")
