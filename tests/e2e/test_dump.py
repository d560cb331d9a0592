"""A dump of a cluster says the same as the cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from rebalancer.cluster.files import FilesSource
from rebalancer.cluster.kinds import SNAPSHOT_KINDS
from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.model import Mode
from rebalancer.report.plan_json import plan_document
from rebalancer_strategies.fit_pending_vms import STRATEGY
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings
from tests.controlplane.api import Api
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.scenario import BIG_VM
from tests.differential.networks import add_networks
from tests.e2e.command import rebalancer


@pytest.fixture
def dump(pending_vm: ControlPlane, api: Api, tmp_path: Path) -> Path:  # noqa: ARG001
    """What kubectl get -o json would have saved, a file for each kind."""
    # Multus' kind is not KubeVirt's: it is there only once a test has brought it.
    add_networks(api, {})
    for kind in SNAPSHOT_KINDS:
        # The API leaves out of a list's items what kubectl puts in.
        version = f"{kind.group}/v1" if kind.group else "v1"
        typed = {"apiVersion": version, "kind": kind.name}
        items = [{**typed, **item} for item in api.list(kind.path())]
        # A list that names its kind says that there are none; a bare one would say nothing.
        document = {"apiVersion": version, "kind": f"{kind.name}List", "items": items}
        (tmp_path / f"{kind.plural}.json").write_text(json.dumps(document))
    return tmp_path


def test_the_plan_is_the_same_from_the_api_a_dump_and_the_simulation(
    pending_vm: ControlPlane, dump: Path
) -> None:
    live = rebalancer("plan", "-o", "json", kubeconfig=pending_vm.kubeconfig())
    dumped = rebalancer("plan", "-o", "json", "--from", str(dump))
    assert live.code == dumped.code == 0, live.stderr + dumped.stderr

    simulated = SimulatedCluster(FilesSource([dump]).read())
    active = ActiveStrategy(STRATEGY, Mode.AUTOMATIC, FitPendingVMsSettings(grace_seconds=0))
    from_simulation = plan_document(make_plan(simulated.read(), [active], PlanningContext()))

    assert live.document == dumped.document == from_simulation
    assert len(live.document["moves"]) == 1


def test_explain_says_in_numbers_why_each_node_is_barred(dump: Path) -> None:
    done = rebalancer("explain", BIG_VM, "-o", "json", "--from", str(dump))
    assert done.code == 0, done.stderr
    codes: dict[str, list[str]] = {}
    explained: dict[str, Any] = done.document
    for answer in explained["nodes"]:
        for reason in answer["reasons"]:
            codes.setdefault(reason["code"], []).append(answer["node"])
            if reason["code"] == "NodeResourcesFit":
                assert "memory: needs 17529441985" in reason["message"]
    assert len(codes["NodeResourcesFit"]) == 3
    assert len(codes["NodeUnschedulable"]) == 1
    assert len(codes["TaintToleration"]) >= 3
