"""Figures of a rebalancer that serves, kept over time by a real Prometheus."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.commands import LOOPBACK
from tests.controlplane.processes import free_ports
from tests.controlplane.prometheus import Prometheus
from tests.controlplane.waiting import wait_for
from tests.e2e.command import start

POLICY = """\
apiVersion: rebalancer/v1alpha1
kind: RebalancerPolicy
schedule: {intervalSeconds: 1, jitterSeconds: 0}
strategies:
  SpreadHeadroom:
    mode: Recommend
    settings:
      headroom: {sizes: [{name: large, memory: 4Gi, count: 0}]}
"""


@pytest.fixture
def serving(pending_vm: ControlPlane, tmp_path: Path) -> Iterator[str]:
    """The address of its metrics."""
    [port] = free_ports(1)
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    arguments = ["serve", "--policy", str(policy), "--metrics-port", str(port)]
    process = start(arguments, pending_vm.kubeconfig())
    try:
        yield f"{LOOPBACK}:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_prometheus_keeps_the_figures_of_a_rebalancer_that_serves(
    serving: str, prometheus_program: Path
) -> None:
    with Prometheus(prometheus_program, serving) as prometheus:

        def answer(query: str) -> list[dict[str, Any]]:
            reply = httpx.get(
                f"{prometheus.url}/api/v1/query", params={"query": query}, trust_env=False
            )
            found: list[dict[str, Any]] = reply.json()["data"]["result"]
            return found

        [fits] = wait_for(
            lambda: answer('rebalancer_goal_figure{subject="large",figure="fits"}'),
            lambda found: len(found) == 1,
            "a figure of the size",
        )
        assert float(fits["value"][1]) >= 3
        [domains] = answer('rebalancer_goal_figure{subject="any node",figure="domains"}')
        assert float(domains["value"][1]) == 7
        assert answer('rebalancer_cycles_total{end="done"} > 0')
