"""Whether one more migration may start now."""

from collections import Counter
from collections.abc import Collection

from rebalancer.model.objects import ObjectKey
from rebalancer.model.plan import Move
from rebalancer.model.snapshot import Snapshot
from rebalancer.policy.model import BudgetPolicy


class Budget:
    """Limits of the policy and of the KubeVirt CR, whichever is lower.

    Everybody's migrations count, whoever made them; ours that the snapshot does not show yet
    are named by the caller.
    """

    def __init__(self, policy: BudgetPolicy, snapshot: Snapshot) -> None:
        configuration = snapshot.migration_configuration
        self.policy = policy
        self.snapshot = snapshot
        self.cluster_limit = _lower(
            policy.max_in_flight_per_cluster, configuration.parallel_migrations_per_cluster
        )
        self.outbound_limit = _lower(
            policy.max_outbound_per_node, configuration.parallel_outbound_migrations_per_node
        )

    def refusal(self, move: Move, ours: Collection[Move]) -> str | None:
        """Why the move must wait, or None if it may start. `ours`: our moves in flight."""
        in_flight = {migration.vmi_key for migration in self.snapshot.migrations_in_flight}
        in_flight |= {other.vmi for other in ours}
        if len(in_flight) >= self.cluster_limit:
            return f"{len(in_flight)} of {self.cluster_limit} migrations are in flight"
        outbound = self._outbound(in_flight)[move.source]
        if outbound >= self.outbound_limit:
            return f"{outbound} of {self.outbound_limit} migrations are leaving {move.source}"
        inbound = self._inbound(ours)[move.target]
        if inbound >= self.policy.max_inbound_per_node:
            limit = self.policy.max_inbound_per_node
            return f"{inbound} of {limit} migrations are going to {move.target}"
        return None

    def _outbound(self, in_flight: Collection[ObjectKey]) -> Counter[str]:
        vmis = (self.snapshot.vmi_by_key.get(key) for key in in_flight)
        return Counter(vmi.node_name for vmi in vmis if vmi and vmi.node_name)

    def _inbound(self, ours: Collection[Move]) -> Counter[str]:
        uids = {migration.uid for migration in self.snapshot.migrations_in_flight}
        our_uids = {move.vmi_uid for move in ours}
        foreign = Counter(
            pod.node_name
            for pod in self.snapshot.pods
            if pod.migration_uid in uids and pod.node_name and pod.vmi_uid not in our_uids
        )
        return foreign + Counter(move.target for move in ours)


def _lower(ours: int | None, kubevirts: int) -> int:
    return kubevirts if ours is None else min(ours, kubevirts)
