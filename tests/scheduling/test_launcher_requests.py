"""What a launcher pod that is rendered now asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.model.objects import Amounts, LauncherConfiguration, LauncherSpec
from rebalancer.scheduling.launcher_requests import compute_requests, target_requests
from tests.builders import amounts, pod

MIB = 2**20
DEFAULTS = LauncherConfiguration()
PLAIN = LauncherSpec(guest_memory_bytes=1024 * MIB, vcpus=1)
SIZES = st.none() | st.integers(0, 64 * 1024).map(lambda mib: mib * MIB)
SPECS = st.builds(
    LauncherSpec,
    requests=st.dictionaries(st.just("memory"), st.integers(0, 2**36)),
    guest_memory_bytes=SIZES,
    huge_page_size=st.sampled_from(["", "2Mi", "1Gi"]),
    overcommits_overhead=st.booleans(),
    vcpus=st.none() | st.integers(1, 64),
    io_threads=st.integers(0, 8),
    has_dedicated_cpus=st.booleans(),
    logs_serial_console=st.none() | st.booleans(),
)


@pytest.mark.parametrize(
    ("spec", "configuration", "memory_bytes"),
    [
        (PLAIN, DEFAULTS, (1024 + 236) * MIB),
        (
            LauncherSpec(guest_memory_bytes=1024 * MIB, vcpus=4),
            DEFAULTS,
            (1024 + 260) * MIB,
        ),
        (
            LauncherSpec(guest_memory_bytes=1024 * MIB, vcpus=1, overcommits_overhead=True),
            DEFAULTS,
            1024 * MIB,
        ),
        (PLAIN, LauncherConfiguration(memory_overcommit_percent=200), (512 + 236) * MIB),
    ],
    ids=["plain", "each vCPU costs 8Mi", "overhead left out", "memory overcommitted"],
)
def test_memory_is_the_guests_and_what_runs_beside_it(
    spec: LauncherSpec, configuration: LauncherConfiguration, memory_bytes: int
) -> None:
    assert compute_requests(spec, configuration)["memory"] == memory_bytes


def test_guest_memory_in_huge_pages_is_asked_for_as_pages() -> None:
    spec = LauncherSpec(guest_memory_bytes=1024 * MIB, vcpus=1, huge_page_size="2Mi")
    asked = compute_requests(spec, DEFAULTS)
    assert asked["hugepages-2Mi"] == 1024 * MIB
    assert asked["memory"] == 236 * MIB


def test_what_a_network_or_a_device_asks_for_is_asked_for_again() -> None:
    network = {"intel.com/sriov_netdevice": "2"}
    compute = amounts({"memory": "1Gi", "cpu": "100m", **network})
    source = pod(
        "a", on="n1", memory="1Gi", resources=network, launcher_containers={"compute": compute}
    )
    assert target_requests(source, PLAIN, DEFAULTS, {})["intel.com/sriov_netdevice"] == 2


@pytest.mark.parametrize(
    ("now", "asked"), [({"vendor/nic": 3}, 4), ({"vendor/nic": 1}, 2), ({"vendor/other": 1}, 2)]
)
def test_what_networks_ask_for_now_counts_where_it_is_more(now: Amounts, asked: int) -> None:
    """The source pod has two such devices, one of them in a container beside the VM's own."""
    compute = amounts({"memory": "1Gi", "cpu": "100m", "vendor/nic": "1"})
    source = pod(
        "a",
        on="n1",
        memory="1Gi",
        resources={"vendor/nic": "2"},
        launcher_containers={"compute": compute},
    )
    target = target_requests(source, PLAIN, DEFAULTS, now)
    assert target["vendor/nic"] == asked
    assert target.items() >= {**now, "vendor/nic": asked}.items()


@given(SPECS, st.integers(1, 64 * 1024), st.booleans())
def test_a_second_pod_never_asks_for_less_than_the_first_gives_back(
    spec: LauncherSpec, memory_mib: int, knows_compute: bool
) -> None:
    memory = f"{memory_mib}Mi"
    containers = {"compute": amounts({"memory": memory, "cpu": "100m"})} if knows_compute else {}
    source = pod("a", on="n1", memory=memory, cpu="100m", launcher_containers=containers)
    asked = target_requests(source, spec, DEFAULTS, {})
    assert all(asked[resource] >= amount for resource, amount in source.requests.items())
