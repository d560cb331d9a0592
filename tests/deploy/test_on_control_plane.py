"""The manifests on the real control plane, and the command with just the rights they grant."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.controlplane import builders
from tests.controlplane.api import Api, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.faults import Answer, FaultProxy, Request
from tests.controlplane.scenario import BIG_VM, add_nodes, start_big_vm
from tests.controlplane.waiting import wait_for, wait_for_vmi
from tests.deploy.apply import apply
from tests.deploy.rendering import ROOT, Object, only, policy_of, rebalancer_pod, render
from tests.e2e.cluster_view import lock_pods, migrations, unschedulable_message
from tests.e2e.command import Finished, rebalancer

DEPLOY = ROOT / "deploy"
NAMESPACE = "kubevirt-rebalancer"
NAME = "kubevirt-rebalancer"


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[Api]:
    with control_plane.api() as api:
        yield api


class TestApplying:
    @pytest.fixture
    def one_node(self, empty_cluster: ControlPlane, api: Api) -> ControlPlane:
        add_nodes(api, [builders.node("n1")])
        return empty_cluster

    @pytest.mark.parametrize("folder", ["deployment", "examples/jaeger"])
    def test_deployments_are_accepted_whole_and_their_pods_admitted(
        self, folder: str, one_node: ControlPlane, api: Api
    ) -> None:
        objects = render(DEPLOY / folder)
        assert apply(one_node, objects) == []
        for each in objects:
            if each["kind"] == "Deployment":
                path = path_of("deployments", NAMESPACE, each["metadata"]["name"])
                wait_for(
                    lambda path=path: api.get(path)["status"],  # type: ignore[misc]
                    lambda status: status.get("readyReplicas") == 1,
                    f"{path} to be ready",
                )

    def test_cron_job_is_accepted_whole_and_its_pod_admitted(
        self, one_node: ControlPlane, api: Api
    ) -> None:
        assert apply(one_node, render(DEPLOY / "cronjob")) == []
        jobs = path_of("jobs", NAMESPACE)
        cron_job = api.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/{NAME}")
        job = {"metadata": {"name": "by-hand"}, "spec": cron_job["spec"]["jobTemplate"]["spec"]}
        api.create(jobs, job)
        wait_for(
            lambda: api.get(f"{jobs}/by-hand")["status"],
            lambda status: status.get("succeeded") == 1,
            "the job to be done",
        )

    def test_applying_again_changes_nothing(self, one_node: ControlPlane, api: Api) -> None:
        objects = render(DEPLOY / "deployment")
        path = path_of("deployments", NAMESPACE, NAME)
        apply(one_node, objects)
        before = api.get(path)["metadata"]["generation"]
        apply(one_node, objects)
        assert api.get(path)["metadata"]["generation"] == before


class Right(NamedTuple):
    verb: str
    resource: str


class TestRights:
    @pytest.fixture
    def proxy(self, request_cluster: ControlPlane) -> Iterator[FaultProxy]:
        """Before the request's cluster, with its VM pending, and the rebalancer installed.

        Only the base: a pod of the rebalancer would take room from the VMs.
        """
        apply(request_cluster, render(DEPLOY / "base"))
        start_big_vm(request_cluster)
        with FaultProxy(request_cluster) as proxy:
            yield proxy

    def test_command_of_the_cron_job_does_its_work_with_just_these_rights(
        self, proxy: FaultProxy, request_cluster: ControlPlane, api: Api, tmp_path: Path
    ) -> None:
        wait_for(lambda: unschedulable_message(api), bool, "the big VM to be unschedulable")
        objects = render(DEPLOY / "cronjob")
        token = request_cluster.service_account_token(NAMESPACE, NAME)
        kubeconfig = proxy.kubeconfig(token)

        done = run_as_pod(rebalancer_pod(objects), policy_of(objects), kubeconfig, tmp_path)

        assert done.code == 0, done.stderr
        wait_for_vmi(api, BIG_VM, "Running")
        assert [each.phase for each in migrations(api)] == ["Succeeded"]
        assert lock_pods(api) == []
        assert [each for each in proxy.requests() if each.code == 403] == []

    def test_every_right_is_used(
        self, proxy: FaultProxy, request_cluster: ControlPlane, api: Api, tmp_path: Path
    ) -> None:
        wait_for(lambda: unschedulable_message(api), bool, "the big VM to be unschedulable")
        objects = render(DEPLOY / "cronjob")
        token = request_cluster.service_account_token(NAMESPACE, NAME)
        # The lock pod's name is taken, so it has to look at what is there.
        proxy.inject("POST", f"/namespaces/{NAMESPACE}/pods", Answer(409))

        for _ in range(2):
            pod, kubeconfig = rebalancer_pod(objects), proxy.kubeconfig(token)
            run_as_pod(pod, policy_of(objects), kubeconfig, tmp_path)

        used = {right_of(each) for each in proxy.requests()}
        granted = {
            Right(verb, resource)
            for kind in ("ClusterRole", "Role")
            for rule in only(objects, kind)["rules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        assert used == granted


def run_as_pod(pod: Object, policy: str, kubeconfig: Path, folder: Path) -> Finished:
    """Runs the container's arguments with its variables; its policy is put where it can be."""
    file = folder / "policy.yaml"
    file.write_text(policy)
    (container,) = pod["containers"]
    mount = container["volumeMounts"][0]["mountPath"]
    arguments = [each.replace(mount, str(folder)) for each in container["args"]]
    # What the kubelet fills in: there is one, and it asks for the namespace.
    assert [each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]] == [
        "metadata.namespace"
    ]
    variables = {each["name"]: NAMESPACE for each in container["env"]}
    return rebalancer(*arguments, kubeconfig=kubeconfig, env=variables)


def right_of(request: Request) -> Right:
    """What RBAC must grant for it."""
    url = urlsplit(request.path)
    match = re.fullmatch(
        r"/apis?(?:/[a-z0-9.]+)?/v1(?:alpha1)?(?:/namespaces/[^/]+)?/(?P<resource>[a-z-]+)(?P<name>/[^/]+)?",
        url.path,
    )
    assert match, request.path
    if request.method != "GET":
        verbs = {"POST": "create", "PUT": "update", "DELETE": "delete"}
        return Right(verbs[request.method], match["resource"])
    if match["name"]:
        return Right("get", match["resource"])
    return Right("watch" if "watch" in parse_qs(url.query) else "list", match["resource"])
