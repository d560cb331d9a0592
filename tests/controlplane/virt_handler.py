"""What virt-handler writes: pure functions to the changes of a VMI or pod, None for "remove".

Fields and order are those of pkg/virt-handler/{vm,migration-source,migration-target}.go of
KubeVirt v1.8.4.
"""

from datetime import UTC, datetime

from .api import Object

# On a VMI: its value is the reason that LiveMigratable is False, e.g. DisksNotLiveMigratable.
NOT_MIGRATABLE_ANNOTATION = "rebalancer.test/not-migratable"

FAILURE_REASON = "Live migration failed: the test wanted it so"
ABORT_REASON = "Live migration aborted"

_TARGET_NODE_LABEL = "kubevirt.io/migrationTargetNodeName"


def domain_started(vmi: Object) -> Object:
    """Scheduled to Running, with all that a migration asks for later."""
    reason = vmi["metadata"].get("annotations", {}).get(NOT_MIGRATABLE_ANNOTATION)
    migratable: Object = {
        "type": "LiveMigratable",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": None,
    }
    if reason is not None:
        migratable |= {"status": "False", "reason": reason, "message": f"cannot migrate: {reason}"}
    conditions = [each for each in _conditions(vmi) if each["type"] != "LiveMigratable"]
    transitions = vmi["status"].get("phaseTransitionTimestamps", [])
    running = {"phase": "Running", "phaseTransitionTimestamp": _now()}
    status = {
        "phase": "Running",
        "phaseTransitionTimestamps": [*transitions, running],
        "conditions": [*conditions, migratable],
        "migrationMethod": "LiveMigration",
        # Without it virt-controller never makes a migration's target pod.
        "selinuxContext": "none",
        **_interfaces(vmi["spec"]),
    }
    return {"status": status}


def _interfaces(spec: Object) -> Object:
    """A secondary network that is missing here would be about to be plugged in.

    Of others nothing is said: virt-controller's patch that aborts a migration would then wait for
    what a domain reports of its interfaces.
    """
    if not any("multus" in network for network in spec.get("networks", [])):
        return {}
    interfaces = spec["domain"]["devices"].get("interfaces", [])
    return {"interfaces": [{"name": each["name"], "infoSource": "domain"} for each in interfaces]}


def domain_stopped() -> Object:
    """The guest of a deleted VMI has shut down; virt-controller takes the pods and finalizers."""
    return {"status": {"phase": "Succeeded"}}


def target_prepared() -> Object:
    """The target listens: the migration becomes TargetReady."""
    return _migration_state(
        targetNodeAddress="10.0.0.1",
        targetDirectMigrationNodePorts={"49152": 0},
    )


def migration_started() -> Object:
    """The source sends: the migration becomes Running."""
    return _migration_state(startTimestamp=_now(), mode="PreCopy")


def migration_succeeded(vmi: Object) -> Object:
    """The guest runs on the target, which owns the VMI from now on: Succeeded."""
    target = vmi["status"]["migrationState"]["targetNode"]
    now = _now()
    patch = _migration_state(
        targetNodeDomainDetected=True,
        targetNodeDomainReadyTimestamp=now,
        endTimestamp=now,
        completed=True,
    )
    patch["status"] |= {"nodeName": target, "evacuationNodeName": None}
    patch["metadata"] = {"labels": {"kubevirt.io/nodeName": target, _TARGET_NODE_LABEL: None}}
    return patch


def migration_failed(vmi: Object) -> Object:
    """The guest goes on at the source: Failed."""
    aborted = vmi["status"]["migrationState"].get("abortRequested", False)
    patch = _migration_state(
        failed=True,
        completed=True,
        endTimestamp=_now(),
        failureReason=ABORT_REASON if aborted else FAILURE_REASON,
        abortStatus="Succeeded" if aborted else None,
    )
    patch["metadata"] = {"labels": {_TARGET_NODE_LABEL: None}}
    return patch


def launcher_ended(pod: Object, phase: str) -> Object:
    """virt-launcher has exited; `phase` is Succeeded or Failed. A patch of the pod's status."""
    not_ready = {"status": "False", "reason": "PodCompleted", "lastTransitionTime": _now()}
    exit_code = 0 if phase == "Succeeded" else 1
    conditions = [
        each | (not_ready if each["type"] in ("Ready", "ContainersReady") else {})
        for each in _conditions(pod)
    ]
    containers = [
        each
        | {
            "ready": False,
            "started": False,
            "state": {"terminated": {"exitCode": exit_code, "finishedAt": _now()}},
        }
        for each in pod["status"].get("containerStatuses", [])
    ]
    status = {"phase": phase, "conditions": conditions, "containerStatuses": containers}
    return {"status": status}


def _migration_state(**fields: object) -> Object:
    return {"status": {"migrationState": fields}}


def _conditions(item: Object) -> list[Object]:
    conditions: list[Object] = item["status"].get("conditions", [])
    return conditions


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
