"""A small client for the raw Kubernetes API: plain dicts in, plain dicts out.

The tests look at the cluster with this, not with the product's own client, so that a fault of the
one cannot hide behind the same fault in the other.
"""

import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx

Object = dict[str, Any]
Objects = list[Object]
Event = tuple[str, Object]

_CORE = "/api/v1"
_GROUPS = {
    "admissionregistration.k8s.io/v1": (
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    ),
    "apiextensions.k8s.io/v1": ("customresourcedefinitions",),
    "apps/v1": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch/v1": ("jobs",),
    "coordination.k8s.io/v1": ("leases",),
    "k8s.cni.cncf.io/v1": ("network-attachment-definitions",),
    "kubevirt.io/v1": (
        "kubevirts",
        "virtualmachineinstancemigrations",
        "virtualmachineinstances",
        "virtualmachines",
    ),
    "migrations.kubevirt.io/v1alpha1": ("migrationpolicies",),
    "policy/v1": ("poddisruptionbudgets",),
    "rbac.authorization.k8s.io/v1": (
        "clusterrolebindings",
        "clusterroles",
        "rolebindings",
        "roles",
    ),
    "scheduling.k8s.io/v1": ("priorityclasses",),
    "storage.k8s.io/v1": ("storageclasses",),
}
_ROOTS = {plural: f"/apis/{group}" for group, plurals in _GROUPS.items() for plural in plurals}
# Long enough for a busy two-core machine; a call that takes longer is a fault worth seeing.
_TIMEOUT_SECONDS = 60.0


def path_of(plural: str, namespace: str | None = None, name: str | None = None) -> str:
    """The API path of a collection, or of one object in it."""
    path = _ROOTS.get(plural, _CORE)
    if namespace is not None:
        path += f"/namespaces/{namespace}"
    path += f"/{plural}"
    return path if name is None else f"{path}/{name}"


class ApiError(Exception):
    """The API server refused a request."""

    def __init__(self, method: str, path: str, code: int, body: str) -> None:
        super().__init__(f"{method} {path} answered {code}: {body[:2000]}")
        self.method = method
        self.path = path
        self.code = code
        self.body = body


class Api:
    """The API server as one bearer of a token sees it. Safe to share between threads.

    `path` is an API path, mostly from `path_of`; keyword arguments become the query. Every method
    raises ApiError when the answer is no 2xx.
    """

    def __init__(self, server: str, token: str, ca_file: Path) -> None:
        # An explicit context, and trust_env off: on some machines SSL_CERT_FILE or proxy
        # variables would otherwise decide whom to trust and where to connect.
        self._client = httpx.Client(
            base_url=server,
            headers={"Authorization": f"Bearer {token}"},
            verify=ssl.create_default_context(cafile=str(ca_file)),
            trust_env=False,
            timeout=_TIMEOUT_SECONDS,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, **query: str) -> Object:
        return self._request("GET", path, query)

    def list(self, path: str, **query: str) -> Objects:
        """The items of a collection; `path` without a namespace lists all namespaces."""
        items: Objects = self.get(path, **query)["items"]
        return items

    def create(self, path: str, body: Object, **query: str) -> Object:
        """POST to a collection, or to a subresource such as serviceaccounts/NAME/token."""
        return self._request("POST", path, query, body)

    def update(self, path: str, body: Object) -> Object:
        """PUT a whole object, refused (409) when its metadata.resourceVersion is stale."""
        return self._request("PUT", path, {}, body)

    def patch(self, path: str, body: Object) -> Object:
        """A JSON merge patch. The server drops nulls inside its lists; `update` keeps them."""
        return self._request("PATCH", path, {}, body)

    def patch_status(self, path: str, body: Object) -> Object:
        """A JSON merge patch of the status subresource. A VMI has none: use `patch` for it."""
        return self.patch(f"{path}/status", body)

    def delete(self, path: str, **query: str) -> Object:
        return self._request("DELETE", path, query)

    def watch(
        self, path: str, resource_version: str, seconds: int, **query: str
    ) -> Iterator[Event]:
        """Events as (type, object) until the server ends the watch, which it does after `seconds`.

        Raises: ApiError also for an ERROR event in the stream, with the code of its Status.
        """
        query |= {
            "watch": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        timeout = httpx.Timeout(_TIMEOUT_SECONDS, read=seconds + _TIMEOUT_SECONDS)
        with self._client.stream("GET", path, params=query, timeout=timeout) as response:
            if response.is_error:
                body = response.read().decode(errors="replace")
                raise ApiError("WATCH", path, response.status_code, body)
            for line in response.iter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError("WATCH", path, event["object"].get("code", 500), line)
                yield event["type"], event["object"]

    def _request(
        self, method: str, path: str, query: dict[str, str], body: Object | None = None
    ) -> Object:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": kind}

        def send() -> httpx.Response:
            return self._client.request(
                method, path, params=query, content=content, headers=headers
            )

        response = send()
        # The watch cache of a CRD that was just installed fills late on a busy machine.
        while response.status_code == 429 and "storage is (re)initializing" in response.text:
            time.sleep(0.5)
            response = send()
        if response.is_error:
            raise ApiError(method, path, response.status_code, response.text)
        answer: Object = response.json()
        return answer
