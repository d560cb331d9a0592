"""Installs KubeVirt as virt-operator would, as far as virt-controller asks for it."""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from .api import Api, Object, path_of

NAMESPACE = "kubevirt"
VERSION = "v1.8.4"

_ESTABLISHED_SECONDS = 60.0


def install_kubevirt(api: Api, definitions: Iterable[Object]) -> None:
    """Create the CRDs, wait until they are served, and create the KubeVirt object.

    Raises: TimeoutError naming the CRDs that the API server does not serve.
    """
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    api.create(path_of("namespaces"), namespace)
    crds = path_of("customresourcedefinitions")
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(lambda definition: api.create(crds, definition), definitions))
    _wait_until_established(api)
    kubevirt = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": NAMESPACE},
        "spec": {"configuration": {}},
    }
    api.create(path_of("kubevirts", NAMESPACE), kubevirt)
    deployed = {"phase": "Deployed", "observedKubeVirtVersion": VERSION}
    api.patch_status(path_of("kubevirts", NAMESPACE, "kubevirt"), {"status": deployed})


def _wait_until_established(api: Api) -> None:
    deadline = time.monotonic() + _ESTABLISHED_SECONDS
    while True:
        definitions = api.list(path_of("customresourcedefinitions"))
        missing = [each["metadata"]["name"] for each in definitions if not _is_established(each)]
        if not missing:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"not served after {_ESTABLISHED_SECONDS:.0f} s: {missing}")
        time.sleep(0.1)


def _is_established(definition: Object) -> bool:
    conditions = definition["status"]["conditions"] or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
