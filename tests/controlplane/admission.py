"""Registers virt-api's webhooks for migrations and evictions, as virt-operator would."""

import base64
from pathlib import Path

from .api import Api, Object, path_of

HEALTH_PATH = "/apis/subresources.kubevirt.io/v1/healthz"

_MIGRATIONS = {
    "apiGroups": ["kubevirt.io"],
    "apiVersions": ["v1alpha3", "v1"],
    "resources": ["virtualmachineinstancemigrations"],
}
_EVICTIONS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/eviction"]}


def register_webhooks(api: Api, address: str, ca_file: Path) -> None:
    """Have the API server ask the virt-api at `address` about migrations and evictions.

    Source: kubevirt/kubevirt v1.8.4 pkg/virt-operator/resource/generate/components/webhooks.go;
    only the address differs, since there are no Services here.
    """
    authority = base64.b64encode(ca_file.read_bytes()).decode()

    def webhook(name: str, path: str, operation: str, rule: Object, **more: object) -> Object:
        return {
            "name": f"{name}.kubevirt.io",
            "clientConfig": {"url": f"{address}{path}", "caBundle": authority},
            "rules": [{"operations": [operation], **rule}],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": 10,
            **more,
        }

    mutator = webhook("migrations-mutator", "/migration-mutate-create", "CREATE", _MIGRATIONS)
    on_create, on_update = (
        webhook(
            f"migration-{verb}-validator",
            f"/migration-validate-{verb}",
            verb.upper(),
            _MIGRATIONS,
        )
        for verb in ("create", "update")
    )
    # It marks the VMI, whose migration then does what the eviction was to do, and refuses that.
    on_eviction = webhook(
        "virt-launcher-eviction-interceptor",
        "/pod-eviction-validate",
        "*",
        _EVICTIONS,
        sideEffects="NoneOnDryRun",
        matchConditions=[
            {"name": "only-vms", "expression": 'object.metadata.name.startsWith("virt-launcher")'}
        ],
    )
    _create(api, "MutatingWebhookConfiguration", "virt-api-mutator", mutator)
    _create(
        api,
        "ValidatingWebhookConfiguration",
        "virt-api-validator",
        on_create,
        on_update,
        on_eviction,
    )


def _create(api: Api, kind: str, name: str, *webhooks: Object) -> None:
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": webhooks,
    }
    api.create(path_of(f"{kind.lower()}s"), configuration)
