"""Whether one more migration may start now."""

from collections import Counter
from collections.abc import Collection, Iterable

from rebalancer.model.objects import ObjectKey, PodDisruptionBudget, VirtualMachineInstance
from rebalancer.model.plan import Move
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.timetable import migration_limits
from rebalancer.policy.model import BudgetPolicy
from rebalancer.scheduling.matching import selects
from rebalancer.scheduling.namespace_limits import quota_problem, quota_usage


class Budget:
    """Limits of the policy and of the KubeVirt CR, whichever is lower.

    Everybody's migrations count, whoever made them; ours that the snapshot does not show yet
    are named by the caller.
    """

    def __init__(self, policy: BudgetPolicy, snapshot: Snapshot) -> None:
        self.policy = policy
        self.snapshot = snapshot
        self.limits = migration_limits(policy, snapshot.migration_configuration)

    def refusal(self, move: Move, ours: Collection[Move]) -> str | None:
        """Why the move must wait, or None if it may start. `ours`: our moves in flight."""
        in_flight = {migration.vmi_key for migration in self.snapshot.migrations_in_flight}
        in_flight |= {other.vmi for other in ours}
        if len(in_flight) >= self.limits.per_cluster:
            return f"{len(in_flight)} of {self.limits.per_cluster} migrations are in flight"
        outbound = self._outbound(in_flight)[move.source]
        if outbound >= self.limits.outbound_per_node:
            limit = self.limits.outbound_per_node
            return f"{outbound} of {limit} migrations are leaving {move.source}"
        inbound = self._inbound(ours)[move.target]
        if inbound >= self.limits.inbound_per_node:
            limit = self.limits.inbound_per_node
            return f"{inbound} of {limit} migrations are going to {move.target}"
        if refusal := self._quota_refusal(move, in_flight):
            return refusal
        return self._disruption_refusal(move, in_flight)

    def _quota_refusal(self, move: Move, in_flight: Collection[ObjectKey]) -> str | None:
        """Whether migrations in flight leave too little of a quota, which is then worth waiting
        for; quotas count a pod from its creation on, so those to come are added.
        """
        if not self.policy.check_quotas:
            return None
        mover = self._with_one_launcher([move.vmi])
        beside = [key for key in in_flight if key.namespace == move.vmi.namespace]
        if not mover or not beside:
            return None
        to_come = [quota_usage(v, self.snapshot) for v in self._with_one_launcher(beside)]
        return quota_problem(mover[0], self.snapshot, to_come)

    def _with_one_launcher(self, keys: Iterable[ObjectKey]) -> list[VirtualMachineInstance]:
        """Those whose target pod does not exist yet."""
        return [
            vmi
            for key in keys
            if (vmi := self.snapshot.vmi_by_key.get(key)) is not None
            and (pod := self.snapshot.pod_of_vmi(vmi)) is not None
            and pod.node_name in self.snapshot.node_by_name
        ]

    def _disruption_refusal(self, move: Move, in_flight: Collection[ObjectKey]) -> str | None:
        """A migration is no eviction, but of the VMs of one budget only one is disturbed at a time.

        What KubeVirt makes for single VMs says nothing about others.
        """
        for budget in self.snapshot.disruption_budgets:
            if budget.is_of_kubevirt or budget.namespace != move.vmi.namespace:
                continue
            if self._is_under(budget, move.vmi):
                for other in sorted(in_flight):
                    if other != move.vmi and self._is_under(budget, other):
                        return (
                            f"{other} is migrating, and PodDisruptionBudget {budget.namespace}/"
                            f"{budget.name} is for both"
                        )
        return None

    def _is_under(self, budget: PodDisruptionBudget, key: ObjectKey) -> bool:
        vmi = self.snapshot.vmi_by_key.get(key)
        if vmi is None or budget.selector is None or budget.namespace != key.namespace:
            return False
        pods = self.snapshot.launchers_by_vmi.get(vmi.uid, ())
        return any(selects(budget.selector, pod.labels) for pod in pods)

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
