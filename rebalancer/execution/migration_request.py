"""The migration to create for a move, with a name that makes it happen only once."""

import hashlib

from rebalancer.cluster.protocols import MigrationRequest
from rebalancer.model import keys
from rebalancer.model.plan import Goal, Move
from rebalancer.model.snapshot import Snapshot


def migration_name(move: Move, snapshot: Snapshot) -> str:
    """The same for everybody who sees the VM's latest migration, so a second create is refused.

    It changes with each migration of the VM that has ended, since KubeVirt keeps those.
    """
    earlier = snapshot.migrations_by_vmi.get(move.vmi, ())
    latest = earlier[-1].uid if earlier else ""
    digest = hashlib.sha256(f"{move.vmi_uid}/{latest}".encode()).hexdigest()[:10]
    return f"rebalancer-{move.vmi.name[:40].rstrip('.-')}-{digest}"


def migration_request(
    move: Move, goal: Goal, plan_id: str, trace_id: str, snapshot: Snapshot
) -> MigrationRequest:
    target = snapshot.node_by_name[move.target]
    annotations = {keys.TRACE_ID: trace_id} if trace_id else {}
    return MigrationRequest(
        name=migration_name(move, snapshot),
        vmi=move.vmi,
        target_hostname=target.labels.get(keys.HOSTNAME, target.name),
        labels={keys.PLAN_ID: plan_id, keys.GOAL_UID: goal.subject.uid},
        annotations=annotations,
    )
