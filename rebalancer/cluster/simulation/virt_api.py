"""virt-api: which migrations are admitted.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-api/webhooks/validating-webhook/admitters/
migration-create-admitter.go, and what a virt-api of that version answers.
"""

from rebalancer.cluster.protocols import MigrationRequest
from rebalancer.cluster.refusals import migration_refusal
from rebalancer.cluster.simulation.world import World
from rebalancer.errors import ConflictError
from rebalancer.model import keys
from rebalancer.model.objects import Migration, ObjectKey

_WEBHOOK = 'admission webhook "migration-create-validator.kubevirt.io" denied the request'
_VMI_NAME = "kubevirt.io/vmi-name"


def admitted(request: MigrationRequest, uid: str, world: World) -> Migration:
    """The migration as it is stored; it has no phase yet.

    The webhooks are asked before the name is: a second create of a migration that is under way is
    refused, one of a migration that has ended is a conflict.

    Raises: RefusedError, ConflictError.
    """
    answer = _problem_with_label(request) or _problem(request.vmi, world)
    if refusal := answer and migration_refusal(400, answer, request.vmi):
        raise refusal
    if ObjectKey(request.vmi.namespace, request.name) in world.migrations:
        raise ConflictError(
            f'virtualmachineinstancemigrations.kubevirt.io "{request.name}" already exists'
        )
    return Migration(
        namespace=request.vmi.namespace,
        name=request.name,
        uid=uid,
        vmi_name=request.vmi.name,
        labels={**request.labels, _VMI_NAME: request.vmi.name},
        annotations=request.annotations,
    )


def _problem_with_label(request: MigrationRequest) -> str | None:
    """The mutating webhook comes first, and the API server looks at the label that it adds."""
    name = request.vmi.name
    if len(name) <= keys.LONGEST_LABEL_VALUE:
        return None
    return (
        f'VirtualMachineInstanceMigration.kubevirt.io "{request.name}" is invalid: metadata.labels:'
        f' Invalid value: "{name}": must be no more than {keys.LONGEST_LABEL_VALUE} bytes'
    )


def _problem(key: ObjectKey, world: World) -> str | None:
    vmi = world.vmis.get(key)
    if vmi is None:
        return f'{_WEBHOOK}: the VMI "{key}" does not exist'
    if vmi.phase in {"Succeeded", "Failed"}:
        return f"{_WEBHOOK}: Cannot migrate VMI in finalized state."
    condition = vmi.live_migratable
    if condition is not None and condition.status == "False":
        return (
            f"{_WEBHOOK}: Cannot migrate VMI, Reason: {condition.reason},"
            f" Message: {condition.message}"
        )
    for migration in world.migrations.values():
        if migration.vmi_key == key and not migration.is_finished:
            return (
                f"{_WEBHOOK}: in-flight migration detected. Active migration job ({migration.uid})"
                f" is currently already in progress for VMI {key.name}."
            )
    return None
