"""`rebalancer run`, on the simulated cluster of the request."""

import signal
from collections.abc import Callable

import msgspec
import pytest

from rebalancer.cli.cycle import stop_signals
from rebalancer.cluster.protocols import Cluster
from rebalancer.cluster.request_scenario import request_cluster
from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.errors import ClusterError, InputError, NotLeaderError
from tests.builders import cluster, node, pending_vm, vm
from tests.cli.clusters import FailingCluster
from tests.cli.command import Cli, assert_error
from tests.report import contract

UseCluster = Callable[[Cluster], None]
RECOMMEND = ("REBALANCER_STRATEGIES__FIT_PENDING_VMS__MODE", "Recommend")


def too_small() -> SimulatedCluster:
    return SimulatedCluster(
        cluster(node("n1", memory="16Gi"), vm("a", on="n1"), pending_vm("p", "17Gi"))
    )


def test_run_ends_with_0_when_the_vm_has_its_node(cli: Cli, use_cluster: UseCluster) -> None:
    use_cluster(request_cluster())
    done = cli("run")
    assert done.code == 0
    assert "rhel7-red-llama  bound           1  is bound to worker-" in done.stdout
    assert " bound        default/rhel7-red-llama: is bound to worker-" in done.stderr


def test_second_run_does_nothing(cli: Cli, use_cluster: UseCluster) -> None:
    simulated = request_cluster()
    use_cluster(simulated)
    cli("run")
    before = simulated.read().migrations
    done = cli("run")
    assert (done.code, done.stdout) == (0, "")
    assert done.stderr.count("\n") == 1
    assert simulated.read().migrations == before


def test_result_as_json_is_alone_on_stdout(cli: Cli, use_cluster: UseCluster) -> None:
    use_cluster(request_cluster())
    done = cli("run", "-o", "json")
    result = msgspec.json.decode(done.stdout, type=contract.CycleResult)
    assert [outcome.ending for outcome in result.outcomes] == ["bound"]
    assert result.unmet == []
    assert "\x1b" not in done.stderr


def test_run_ends_with_4_and_the_reasons_when_a_vm_has_no_room(
    cli: Cli, use_cluster: UseCluster
) -> None:
    use_cluster(too_small())
    done = cli("run")
    assert done.code == 4
    assert "FitPendingVMs default/p: impossible\n  memory: needs 17408 MiB" in done.stdout
    assert cli("run", "-o", "json").code == 4


def test_recommended_plan_is_shown_and_not_carried_out(cli: Cli, use_cluster: UseCluster) -> None:
    simulated = request_cluster()
    use_cluster(simulated)
    cli.monkeypatch.setenv(*RECOMMEND)
    done = cli("run")
    assert done.code == 4
    assert "FitPendingVMs default/rhel7-red-llama: planned on worker-" in done.stdout
    assert simulated.read().migrations == ()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ClusterError("list pods: no answer from https://api:6443"), 1),
        (NotLeaderError("other_1 holds the Lease x/kubevirt-rebalancer"), 1),
        (InputError("Pod x/y: spec: cannot be read"), 2),
    ],
)
def test_error_of_the_cluster_ends_the_run_with_its_words(
    cli: Cli, use_cluster: UseCluster, error: Exception, code: int
) -> None:
    use_cluster(FailingCluster(error))
    assert_error(cli("run", "-o", "json"), code, f"error: {error}\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_run_at_its_next_step(
    cli: Cli, use_cluster: UseCluster, number: signal.Signals
) -> None:
    simulated = request_cluster()
    simulated.at(30, lambda: signal.raise_signal(number))
    use_cluster(simulated)
    done = cli("run", "-o", "json")
    assert done.code == 4
    assert [migration.phase for migration in simulated.read().migrations] == ["Running"]


def test_handlers_are_put_back_after_the_run() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with stop_signals() as stop:
        assert not stop.is_set()
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
