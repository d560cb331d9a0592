"""Empties a cluster between tests: everything goes that a test can have made."""

from .api import Api, ApiError, Object, path_of
from .cluster import ControlPlane
from .kubevirt import NAMESPACE
from .waiting import wait_for

_OWN_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", NAMESPACE)

# Owners before what they own, so that nothing comes back.
_EVERYWHERE = (
    "virtualmachines",
    "virtualmachineinstancemigrations",
    "virtualmachineinstances",
    "deployments",
    "daemonsets",
    "statefulsets",
    "replicasets",
    "jobs",
    "pods",
    "nodes",
    "poddisruptionbudgets",
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses",
    "migrationpolicies",
)
# Elsewhere they belong to the control plane, or go with their namespace.
_IN_DEFAULT_NAMESPACE = (
    "events",
    "configmaps",
    "leases",
    "limitranges",
    "resourcequotas",
    "rolebindings",
    "roles",
    "serviceaccounts",
)
_CLUSTER_WIDE = ("priorityclasses", "clusterrolebindings", "clusterroles", "namespaces")


def reset(control_plane: ControlPlane) -> None:
    """Leave the cluster as it was after its start, without nodes, and forget migration scripts.

    CRDs that a test installed stay, empty. Nothing is shut down in order: finalizers are removed.
    """
    control_plane.node_agent.forget_scripts()
    with control_plane.api() as api:
        for plural in _EVERYWHERE:
            _delete_all(api, path_of(plural))
        # Their nodes' owner references would take them away later, under nodes of the same name.
        _delete_all(api, path_of("leases", "kube-node-lease"))
        for plural in _IN_DEFAULT_NAMESPACE:
            _delete_all(api, path_of(plural, "default"))
        for definition in api.list(path_of("customresourcedefinitions")):
            if not definition["spec"]["group"].endswith("kubevirt.io"):
                _delete_all(api, _path_of_instances(definition))
        for plural in _CLUSTER_WIDE:
            _delete_all(api, path_of(plural))
        kubevirt = path_of("kubevirts", NAMESPACE, "kubevirt")
        api.update(kubevirt, api.get(kubevirt) | {"spec": {"configuration": {}}})


def _delete_all(api: Api, path: str) -> None:
    def delete_what_is_left() -> list[str]:
        left = [(_item_path(path, item), item) for item in api.list(path) if not _is_built_in(item)]
        for item_path, item in left:
            _delete(api, item_path, item)
        return [item_path for item_path, _ in left]

    wait_for(delete_what_is_left, lambda left: not left, f"{path} to be empty")


def _delete(api: Api, path: str, item: Object) -> None:
    try:
        if item["metadata"].get("finalizers"):
            api.patch(path, {"metadata": {"finalizers": None}})
        if "deletionTimestamp" not in item["metadata"]:
            api.delete(path, gracePeriodSeconds="0")
    except ApiError as error:
        if error.code not in (404, 409):
            raise


def _item_path(collection: str, item: Object) -> str:
    namespace, name = item["metadata"].get("namespace"), item["metadata"]["name"]
    if namespace is None or f"/namespaces/{namespace}/" in collection:
        return f"{collection}/{name}"
    root, plural = collection.rsplit("/", 1)
    return f"{root}/namespaces/{namespace}/{plural}/{name}"


def _path_of_instances(definition: Object) -> str:
    spec = definition["spec"]
    version = next(each["name"] for each in spec["versions"] if each["served"])
    return f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"


def _is_built_in(item: Object) -> bool:
    """Whether the control plane made it, and would make it again."""
    metadata = item["metadata"]
    name: str = metadata["name"]
    return (
        name.startswith(("system:", "system-"))
        or "kubernetes.io/bootstrapping" in metadata.get("labels", {})
        or (metadata.get("namespace") == "default" and name in ("default", "kube-root-ca.crt"))
        or ("namespace" not in metadata and name in _OWN_NAMESPACES)
    )
