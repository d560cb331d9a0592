"""From options to what the commands work with: policy, strategies, source, cluster, tracing."""

import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rebalancer.cli.terminal import working
from rebalancer.errors import InputError
from rebalancer.model.snapshot import Snapshot
from rebalancer.planner import ActiveStrategy
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.load import load_policy
from rebalancer.policy.root import RebalancerPolicy, enabled_strategies
from rebalancer.strategy import load_strategies

if TYPE_CHECKING:
    from rebalancer.cluster.live import LiveCluster
    from rebalancer.cluster.protocols import Source


class Setup(NamedTuple):
    policy: RebalancerPolicy
    strategies: tuple[ActiveStrategy, ...]
    context: PlanningContext


def load_setup(policy_path: Path | None) -> Setup:
    """Reads the policy and finds the strategies that it asks for.

    Raises: PolicyError, InputError.
    """
    installed = load_strategies()
    policy = load_policy(policy_path, installed, os.environ)
    strategies = tuple(
        ActiveStrategy(installed[name], mode, settings)
        for name, mode, settings in enabled_strategies(policy)
    )
    context = PlanningContext(policy.planning, policy.cost, policy.execution, policy.measured_load)
    return Setup(policy, strategies, context)


def open_source(
    paths: list[Path] | None, kubeconfig: Path | None, context: str | None, policy: RebalancerPolicy
) -> "Source":
    """Files if any are named, else the cluster.

    Raises: InputError, ClusterError.
    """
    if not paths:
        return open_cluster(kubeconfig, context, policy)
    if kubeconfig or context:
        raise InputError("--from reads files; it cannot go with --kubeconfig or --context")
    from rebalancer.cluster.files import FilesSource

    return FilesSource(paths)


def read_snapshot(source: "Source") -> Snapshot:
    """Raises: InputError, ClusterError."""
    with working("reading"):
        return source.read()


def open_cluster(
    kubeconfig: Path | None, context: str | None, policy: RebalancerPolicy
) -> "LiveCluster":
    """Raises: InputError if no configuration is found, ClusterError."""
    from rebalancer.cluster.api import Api
    from rebalancer.cluster.config import load_config
    from rebalancer.cluster.live import LiveCluster

    load_reader = None
    if url := policy.prometheus.url:
        from rebalancer.cluster.measured_load import LoadReader
        from rebalancer.cluster.prometheus import Prometheus

        load_reader = LoadReader(Prometheus(url, policy.prometheus), policy.measured_load)
    # A process that comes back under the same name must not take itself for its predecessor.
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    api = Api(load_config(kubeconfig, context))
    return LiveCluster(api, policy.execution.namespace, identity, load_reader)


@contextmanager
def tracing(trace_file: Path | None = None) -> Iterator[None]:
    """Traces what happens inside, if the environment or `trace_file` asks for it."""
    from rebalancer.telemetry.tracing import configure_tracing

    shut_down = configure_tracing(os.environ, trace_file=trace_file)
    try:
        yield
    finally:
        shut_down()
