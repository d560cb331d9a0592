"""The VMs on a node that is to be emptied: who may leave, who is leaving, and who cannot."""

from collections.abc import Iterable
from typing import NamedTuple

from rebalancer.model.plan import Refusal
from rebalancer.planning.movers import Movers

_PASSING = frozenset(
    {
        "backup-running",
        "cooldown",
        "evacuating",
        "failure-backoff",
        "migration-in-flight",
        "not-running",
        "not-yet-migratable",
        "pending-change",
        "terminating",
        "utility-volumes",
    }
)
"""Codes of refusals that end by themselves."""

_ADVICE = {
    "eviction-external": "its owner must move it or stop it",
    "ghost-migration": "look what became of that migration, or stop the VM",
    "limit-range": "change the LimitRange, or stop the VM",
    "no-other-node": "make room for it, or stop it",
    "not-live-migratable": "mend what KubeVirt names, or stop the VM",
    "opted-out": "remove the annotation, or stop the VM",
    "prefers-no-eviction": "remove the annotation, or stop the VM",
    "quota": "raise the quota, or stop the VM",
}


class Occupants(NamedTuple):
    movable: int
    leaving: tuple[Refusal, ...]
    """Those that will leave without us, or cannot just now."""
    stuck: tuple[Refusal, ...]
    """Those that stay until a person does something."""

    def with_stuck(self, others: Iterable[Refusal]) -> "Occupants":
        return self._replace(stuck=(*self.stuck, *others))


def occupants(node_name: str, movers: Movers) -> Occupants:
    """VMs that have a live pod there, target pods of migrations included."""
    snapshot = movers.state.snapshot
    uids = {pod.vmi_uid for pod in snapshot.pods_by_node.get(node_name, ()) if pod.vmi_uid}
    vmis = [snapshot.vmi_by_uid[uid] for uid in uids if uid in snapshot.vmi_by_uid]
    keys = {vmi.key for vmi in vmis}
    homes = {vmi.node_name or "" for vmi in vmis}
    refused = [
        refusal
        for home, refusals in movers.refused.items()
        if home in homes
        for refusal in refusals
        if refusal.vmi in keys
    ]
    busy = {migration.vmi_key for migration in snapshot.migrations_in_flight}
    leaving = tuple(each for each in refused if each.code in _PASSING or each.vmi in busy)
    stuck = tuple(each for each in refused if each not in leaving)
    return Occupants(len(vmis) - len(refused), leaving, stuck)


def what_to_do(refusal: Refusal) -> str:
    """The refusal in words, with what a person can do about it."""
    return f"{refusal.vmi} stays: {refusal.message}; {_ADVICE.get(refusal.code, 'stop the VM')}"
