"""NetworkAttachmentDefinitions, as Multus brings them into a cluster."""

from collections.abc import Mapping

from tests.controlplane.api import Api, Object, path_of
from tests.controlplane.waiting import wait_for

NETWORKS = "network-attachment-definitions"

_GROUP = "k8s.cni.cncf.io"
_KIND = "NetworkAttachmentDefinition"
_CRDS = path_of("customresourcedefinitions")
_CRD = f"{NETWORKS}.{_GROUP}"


def add_networks(api: Api, resources: Mapping[tuple[str, str], str]) -> None:
    """Definitions by namespace and name, each with the resource that it names; and their kind."""
    if all(each["metadata"]["name"] != _CRD for each in api.list(_CRDS)):
        api.create(_CRDS, _kind())
    wait_for(lambda: api.get(f"{_CRDS}/{_CRD}"), _is_served, f"{_CRD} to be served")
    for (namespace, name), resource in resources.items():
        definition = {
            "apiVersion": f"{_GROUP}/v1",
            "kind": _KIND,
            "metadata": {"name": name, **_naming(resource)},
        }
        api.create(path_of(NETWORKS, namespace), definition)


def change_network(api: Api, namespace: str, name: str, resource: str) -> None:
    api.patch(path_of(NETWORKS, namespace, name), {"metadata": _naming(resource)})


def _naming(resource: str) -> Object:
    return {"annotations": {"k8s.v1.cni.cncf.io/resourceName": resource}} if resource else {}


def _kind() -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": _CRD},
        "spec": {
            "group": _GROUP,
            "names": {"plural": NETWORKS, "kind": _KIND},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _is_served(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
