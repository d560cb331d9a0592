"""The manifests as `kubectl apply -k` would send them."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.build import ensure_built

ROOT = Path(__file__).parents[2]
POLICY_CONFIG_MAP = "kubevirt-rebalancer-policy"

Object = dict[str, Any]
Objects = Sequence[Object]


def render(folder: Path) -> list[Object]:
    """All objects of a kustomization."""
    program = ensure_built(("kustomize",))["kustomize"] / "kustomize"
    done = subprocess.run([program, "build", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def only(objects: Objects, kind: str, name: str = "kubevirt-rebalancer") -> Object:
    """The one object of that kind and name."""
    (found,) = [o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name]
    return found


def policy_of(objects: Objects) -> str:
    """The text of the policy's file; the name of its ConfigMap ends with a hash of it."""
    (config_map,) = [
        each
        for each in objects
        if each["kind"] == "ConfigMap" and each["metadata"]["name"].startswith(POLICY_CONFIG_MAP)
    ]
    text: str = config_map["data"]["policy.yaml"]
    return text


def pod_specs(objects: Objects) -> Iterator[Object]:
    """Of each workload."""
    for each in objects:
        if each["kind"] == "Deployment":
            yield each["spec"]["template"]["spec"]
        if each["kind"] == "CronJob":
            yield each["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def rebalancer_pod(objects: Objects) -> Object:
    """The pod that runs the rebalancer, whether of the CronJob or of the Deployment."""
    (pod,) = [
        spec
        for spec in pod_specs(objects)
        if [container["name"] for container in spec["containers"]] == ["rebalancer"]
    ]
    return pod
