"""Server-side apply, as `kubectl apply --server-side --validate=strict` does it."""

import json
import ssl

import httpx

from tests.controlplane.cluster import ControlPlane
from tests.deploy.rendering import Object, Objects


def apply(control_plane: ControlPlane, objects: Objects) -> list[str]:
    """Creates or updates the objects in their order, and returns the server's warnings.

    An unknown or repeated field is an error; pods that the namespace would refuse are a warning.
    """
    warnings: list[str] = []
    with httpx.Client(
        base_url=control_plane.server,
        headers={"Authorization": f"Bearer {control_plane.admin_token}"},
        verify=ssl.create_default_context(cafile=str(control_plane.ca_file)),
        trust_env=False,
        timeout=30,
    ) as client:
        for each in objects:
            response = client.patch(
                _path(client, each),
                params={"fieldManager": "kubectl", "fieldValidation": "Strict"},
                headers={"Content-Type": "application/apply-patch+yaml"},
                content=json.dumps(each),
            )
            assert response.is_success, response.text
            warnings += response.headers.get_list("Warning")
    return warnings


def _path(client: httpx.Client, wanted: Object) -> str:
    version: str = wanted["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    resource = next(
        each
        for each in client.get(root).raise_for_status().json()["resources"]
        if each["kind"] == wanted["kind"] and "/" not in each["name"]
    )
    metadata = wanted["metadata"]
    place = f"/namespaces/{metadata['namespace']}" if resource["namespaced"] else ""
    return f"{root}{place}/{resource['name']}/{metadata['name']}"
