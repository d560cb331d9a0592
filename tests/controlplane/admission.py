"""Registers virt-api's webhooks for migrations, as virt-operator would."""

import base64
from pathlib import Path

from .api import Api, Object, path_of

HEALTH_PATH = "/apis/subresources.kubevirt.io/v1/healthz"

_MUTATOR = ("migrations-mutator.kubevirt.io", "/migration-mutate-create", "CREATE")
_VALIDATORS = (
    ("migration-create-validator.kubevirt.io", "/migration-validate-create", "CREATE"),
    ("migration-update-validator.kubevirt.io", "/migration-validate-update", "UPDATE"),
)


def register_migration_webhooks(api: Api, address: str, ca_file: Path) -> None:
    """Have the API server ask the virt-api at `address` about every migration.

    Source: kubevirt/kubevirt v1.8.4 pkg/virt-operator/resource/generate/components/webhooks.go;
    only the address differs, since there are no Services here.
    """
    authority = base64.b64encode(ca_file.read_bytes()).decode()
    for kind, name, webhooks in (
        ("MutatingWebhookConfiguration", "virt-api-mutator", (_MUTATOR,)),
        ("ValidatingWebhookConfiguration", "virt-api-validator", _VALIDATORS),
    ):
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": [
                _webhook(webhook, f"{address}{path}", authority, operation)
                for webhook, path, operation in webhooks
            ],
        }
        api.create(path_of(f"{kind.lower()}s"), configuration)


def _webhook(name: str, url: str, authority: str, operation: str) -> Object:
    return {
        "name": name,
        "clientConfig": {"url": url, "caBundle": authority},
        "rules": [
            {
                "operations": [operation],
                "apiGroups": ["kubevirt.io"],
                "apiVersions": ["v1alpha3", "v1"],
                "resources": ["virtualmachineinstancemigrations"],
            }
        ],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
    }
