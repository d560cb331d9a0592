"""What the rendered manifests say, without a cluster."""

import os
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main

from rebalancer.cli.main import app
from rebalancer.cluster.manifests import lock_pod_manifest
from rebalancer.cluster.protocols import Hold
from rebalancer.policy.load import load_policy
from rebalancer.strategy import load_strategies
from rebalancer.telemetry.settings import Exporter, read_tracing_settings
from tests.controlplane.build import MODULES
from tests.deploy.rendering import (
    ROOT,
    Object,
    Objects,
    only,
    pod_specs,
    policy_of,
    rebalancer_pod,
    render,
)

DEPLOY = ROOT / "deploy"
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
VARIANTS = ("deployment", "cronjob")
JAEGER = "examples/jaeger"

CLUSTER_RIGHTS = {
    ("", "namespaces"): {"list"},
    ("", "persistentvolumes"): {"list"},
    ("", "persistentvolumeclaims"): {"list"},
    ("storage.k8s.io", "storageclasses"): {"list"},
    ("storage.k8s.io", "csidrivers"): {"list"},
    ("", "resourcequotas"): {"list"},
    ("", "limitranges"): {"list"},
    ("policy", "poddisruptionbudgets"): {"list"},
    ("storage.k8s.io", "csinodes"): {"list"},
    ("storage.k8s.io", "volumeattachments"): {"list"},
    ("", "nodes"): {"get", "list"},
    ("", "pods"): {"list", "watch"},
    ("kubevirt.io", "kubevirts"): {"list"},
    ("migrations.kubevirt.io", "migrationpolicies"): {"list"},
    ("k8s.cni.cncf.io", "network-attachment-definitions"): {"list"},
    ("kubevirt.io", "virtualmachineinstances"): {"get", "list"},
    ("kubevirt.io", "virtualmachineinstancemigrations"): {"list", "watch", "create"},
    ("", "events"): {"create"},
}
OWN_NAMESPACE_RIGHTS = {
    ("", "pods"): {"get", "create", "delete"},
    ("coordination.k8s.io", "leases"): {"get", "create", "update"},
}


@pytest.fixture(scope="module", params=VARIANTS)
def objects(request: pytest.FixtureRequest) -> list[Object]:
    """What either way to run consists of."""
    return render(DEPLOY / request.param)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of deploy/ and config/ to build overlays on."""
    for folder in ("deploy", "config"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def overlay(tree: Path, text: str) -> list[Object]:
    folder = tree / "overlay"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(text)
    return render(folder)


def rights(role: Object) -> dict[tuple[str, str], set[str]]:
    granted: dict[tuple[str, str], set[str]] = {}
    for rule in role["rules"]:
        assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                granted.setdefault((group, resource), set()).update(rule["verbs"])
    return granted


def restricted_violations(pod: Object) -> list[str]:
    """What the restricted pod security standard would refuse, and a bit more.

    Source: kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
    """
    problems = [key for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)]
    security = pod["securityContext"]
    if not security.get("runAsNonRoot"):
        problems.append("may run as root")
    if security.get("seccompProfile") != {"type": "RuntimeDefault"}:
        problems.append("no seccomp profile")
    for volume in pod.get("volumes", []):
        problems += [f"volume of {key}" for key in set(volume) - {"name", "configMap"}]
    for container in pod["containers"]:
        expected = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        found = {key: container["securityContext"].get(key) for key in expected}
        if found != expected:
            problems.append(f"container {container['name']}: {found}")
    return problems


class TestRights:
    def test_cluster_role_grants_exactly_what_is_used(self, objects: Objects) -> None:
        assert rights(only(objects, "ClusterRole")) == CLUSTER_RIGHTS

    def test_documented_rights_are_those_that_are_granted(self, objects: Objects) -> None:
        rows = re.findall(r"^\| cluster \| (.*?) \| (.*?) \|", OPERATIONS, re.MULTILINE)
        documented = {
            resource: set(verbs.split(", "))
            for resources, verbs in rows
            for resource in re.findall(r"`(.*?)`", resources)
        }
        granted = rights(only(objects, "ClusterRole"))
        assert documented == {
            f"{plural}.{group}" if group else plural: verbs
            for (group, plural), verbs in granted.items()
        }

    def test_role_in_its_namespace_grants_exactly_what_is_used(self, objects: Objects) -> None:
        role = only(objects, "Role")
        assert rights(role) == OWN_NAMESPACE_RIGHTS
        assert role["metadata"]["namespace"] == "kubevirt-rebalancer"

    def test_both_roles_go_to_the_service_account_of_the_pod(self, objects: Objects) -> None:
        account = only(objects, "ServiceAccount")["metadata"]
        subject = {"kind": "ServiceAccount", **{k: account[k] for k in ("name", "namespace")}}
        for binding, role in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
            bound = only(objects, binding)
            assert bound["subjects"] == [subject]
            assert (bound["roleRef"]["kind"], bound["roleRef"]["name"]) == (role, account["name"])
        assert rebalancer_pod(objects)["serviceAccountName"] == account["name"]

    def test_nothing_is_a_secret_or_names_one(self, objects: Objects) -> None:
        assert "secret" not in str(objects).lower()


class TestPods:
    @pytest.mark.parametrize("variant", [*VARIANTS, JAEGER])
    def test_pods_meet_the_restricted_standard_that_the_namespace_enforces(
        self, variant: str
    ) -> None:
        objects = render(DEPLOY / variant)
        pods = list(pod_specs(objects))
        assert pods
        assert [restricted_violations(pod) for pod in pods] == [[]] * len(pods)
        labels = only(objects, "Namespace")["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"

    @pytest.mark.parametrize("variant", [*VARIANTS, JAEGER])
    def test_pods_run_as_a_numbered_user_on_a_read_only_root(self, variant: str) -> None:
        for pod in pod_specs(render(DEPLOY / variant)):
            assert pod["securityContext"]["runAsUser"] > 0
            for container in pod["containers"]:
                assert container["securityContext"]["readOnlyRootFilesystem"]
                assert set(container["resources"]["requests"]) == {"cpu", "memory"}
                assert set(container["resources"]["limits"]) == {"memory"}

    def test_lock_pod_meets_the_same_standard(self) -> None:
        hold = Hold("lock", "kubevirt-rebalancer", "n1", "uid", ("uid",), "", 60, "pause:3.10")
        assert restricted_violations(lock_pod_manifest(hold)["spec"]) == []

    def test_deployment_does_not_select_lock_pods(self) -> None:
        hold = Hold("lock", "kubevirt-rebalancer", "n1", "uid", ("uid",), "", 60, "pause:3.10")
        labels = lock_pod_manifest(hold)["metadata"]["labels"]
        deployment = only(render(DEPLOY / "deployment"), "Deployment")
        assert not set(deployment["spec"]["selector"]["matchLabels"].items()) <= set(labels.items())

    def test_both_ways_to_run_differ_in_command_and_restart_policy_only(self) -> None:
        served, run = (rebalancer_pod(render(DEPLOY / variant)) for variant in VARIANTS)
        assert served["containers"][0].pop("args")[0] == "serve"
        assert run["containers"][0].pop("args")[0] == "run"
        # Nobody could collect from a pod that is gone in a moment.
        assert served["containers"][0].pop("ports") == [{"name": "metrics", "containerPort": 9400}]
        assert run.pop("restartPolicy") == "Never"
        assert served == run

    def test_one_cycle_at_a_time_and_no_retry_but_the_next(self) -> None:
        cron = only(render(DEPLOY / "cronjob"), "CronJob")["spec"]
        assert cron["concurrencyPolicy"] == "Forbid"
        assert cron["jobTemplate"]["spec"]["backoffLimit"] == 0
        assert cron["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 3600
        deployment = only(render(DEPLOY / "deployment"), "Deployment")["spec"]
        assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})


class TestImages:
    def test_image_has_the_version_of_the_project(self, objects: Objects) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        (container,) = rebalancer_pod(objects)["containers"]
        assert container["image"] == f"kubevirt-rebalancer:{project['version']}"

    def test_jaeger_is_the_one_that_the_tests_run(self) -> None:
        tested = (MODULES / "jaeger" / "go.mod").read_text()
        jaeger = only(render(DEPLOY / JAEGER), "Deployment", "jaeger")
        image = jaeger["spec"]["template"]["spec"]["containers"][0]["image"]
        name, version = image.split(":")
        assert name == "jaegertracing/all-in-one"
        assert f"github.com/jaegertracing/jaeger v{version} " in tested


class TestCommand:
    def test_arguments_are_those_of_the_command(self, objects: Objects) -> None:
        (container,) = rebalancer_pod(objects)["containers"]
        name, *arguments = container["args"]
        group = typer.main.get_command(app)
        with group.make_context("rebalancer", [name, *arguments]) as context:
            command = group.get_command(context, name)  # type: ignore[attr-defined]
            with command.make_context(name, list(arguments)) as parsed:
                given = parsed.params["policy"]
        assert given == Path("/etc/kubevirt-rebalancer/policy.yaml")

    def test_policy_is_mounted_where_the_command_looks(self, objects: Objects) -> None:
        pod = rebalancer_pod(objects)
        (container,) = pod["containers"]
        (mount,) = container["volumeMounts"]
        (volume,) = pod["volumes"]
        assert mount["name"] == volume["name"]
        assert container["args"][-1] == f"{mount['mountPath']}/policy.yaml"
        mounted = only(objects, "ConfigMap", volume["configMap"]["name"])
        assert mounted["data"] == {"policy.yaml": (ROOT / "config" / "policy.yaml").read_text()}

    def test_policy_loads_with_the_variables_of_the_pod(
        self, objects: Objects, tmp_path: Path
    ) -> None:
        file = tmp_path / "policy.yaml"
        file.write_text(policy_of(objects))
        (container,) = rebalancer_pod(objects)["containers"]
        variables = {each["name"]: "elsewhere" for each in container["env"]}
        policy = load_policy(file, load_strategies(), variables)
        assert policy.execution.namespace == "elsewhere"


class TestOverlays:
    def test_another_namespace_takes_everything_along(self, tree: Path) -> None:
        objects = overlay(tree, "namespace: vm-balance\nresources: [../deploy/deployment]\n")
        assert only(objects, "Namespace", "vm-balance")
        namespaced = [o for o in objects if "namespace" in o["metadata"]]
        assert {o["metadata"]["namespace"] for o in namespaced} == {"vm-balance"}
        for kind in ("ClusterRoleBinding", "RoleBinding"):
            assert only(objects, kind)["subjects"][0]["namespace"] == "vm-balance"

    def test_own_policy_replaces_the_default_and_rolls_the_pod(self, tree: Path) -> None:
        text = "apiVersion: rebalancer/v1alpha1\nkind: RebalancerPolicy\n"
        (tree / "deploy" / "own").mkdir()
        folder = tree / "deploy" / "own"
        (folder / "policy.yaml").write_text(text)
        (folder / "kustomization.yaml").write_text(
            "namespace: kubevirt-rebalancer\n"
            "resources: [../deployment]\n"
            "configMapGenerator:\n"
            "  - {name: kubevirt-rebalancer-policy, behavior: replace, files: [policy.yaml]}\n"
        )
        objects = render(folder)
        assert policy_of(objects) == text
        (volume,) = rebalancer_pod(objects)["volumes"]
        (default_volume,) = rebalancer_pod(render(DEPLOY / "deployment"))["volumes"]
        assert volume["configMap"]["name"] != default_volume["configMap"]["name"]
        assert only(objects, "ConfigMap", volume["configMap"]["name"])

    def test_image_is_named_in_one_place(self, tree: Path) -> None:
        objects = overlay(
            tree,
            "resources: [../deploy/cronjob]\n"
            "images: [{name: kubevirt-rebalancer, newName: example.com/it, newTag: v2}]\n",
        )
        (container,) = rebalancer_pod(objects)["containers"]
        assert container["image"] == "example.com/it:v2"


class TestJaegerExample:
    @pytest.mark.parametrize("variant", VARIANTS)
    def test_traces_go_to_the_service_of_the_example(self, tree: Path, variant: str) -> None:
        kustomization = tree / "deploy" / JAEGER / "kustomization.yaml"
        text = kustomization.read_text().replace("- ../../deployment", f"- ../../{variant}")
        kustomization.write_text(text)
        objects = render(kustomization.parent)

        (container,) = rebalancer_pod(objects)["containers"]
        variables: dict[str, Any] = {
            e["name"]: e["value"] for e in container["env"] if "value" in e
        }
        settings = read_tracing_settings(variables)
        assert settings.exporter is Exporter.OTLP

        service = only(objects, "Service", "jaeger")
        port = next(p for p in service["spec"]["ports"] if p["name"] == "otlp-http")
        assert settings.endpoint == f"http://jaeger:{port['port']}/v1/traces"
        jaeger = only(objects, "Deployment", "jaeger")["spec"]["template"]
        assert service["spec"]["selector"].items() <= jaeger["metadata"]["labels"].items()
        named = {p["name"] for p in jaeger["spec"]["containers"][0]["ports"]}
        assert {p["targetPort"] for p in service["spec"]["ports"]} <= named


def test_every_kustomization_renders() -> None:
    folders = [path.parent for path in DEPLOY.rglob("kustomization.yaml")]
    assert len(folders) == len(VARIANTS) + 2
    for folder in folders:
        assert render(folder), os.fspath(folder)
