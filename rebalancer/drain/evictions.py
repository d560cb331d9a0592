"""What would make `kubectl drain` hang on a node, apart from VMs that cannot leave."""

from collections.abc import Iterator

from rebalancer.model.plan import Reason
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.matching import selects


def hanging_evictions(node_name: str, snapshot: Snapshot) -> Iterator[Reason]:
    """PodDisruptionBudgets that allow no disruption now; migrations are none, so VMs leave."""
    pods = snapshot.pods_by_node.get(node_name, ())
    for budget in snapshot.disruption_budgets:
        if budget.is_of_kubevirt or budget.disruptions_allowed != 0 or budget.selector is None:
            continue
        names = [
            pod.name
            for pod in pods
            if pod.namespace == budget.namespace and selects(budget.selector, pod.labels)
        ]
        if names:
            yield Reason(
                "eviction-would-hang",
                f"PodDisruptionBudget {budget.namespace}/{budget.name} allows no disruption now, so"
                f" evictions of {', '.join(names)} hang; live migrations are no evictions",
                node=node_name,
                object=f"{budget.namespace}/{budget.name}",
            )
