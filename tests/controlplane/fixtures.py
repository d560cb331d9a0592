"""pytest fixtures; a conftest.py imports those that its tests use."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from .build import ensure_built
from .cluster import ControlPlane
from .jaeger import Jaeger
from .reset import reset
from .scenario import load_request_scenario

# Set it to keep the logs of a run in which nothing failed.
KEEP_VARIABLE = "CONTROLPLANE_KEEP"


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The one control plane of this run, in whatever state the last test has left it.

    Its logs are kept when a test failed, and the terminal says where.
    """
    with _uncaptured(request.config):
        ensure_built()
    plane = ControlPlane()
    plane.start()
    yield plane
    keep = request.session.testsfailed > 0 or KEEP_VARIABLE in os.environ
    plane.stop(keep_folder=keep)
    if keep:
        with _uncaptured(request.config):
            print(f"\nlogs of the control plane: {plane.logs}")


@pytest.fixture
def empty_cluster(control_plane: ControlPlane) -> ControlPlane:
    """A cluster without nodes, and without anything that earlier tests made."""
    reset(control_plane)
    return control_plane


@pytest.fixture
def request_cluster(empty_cluster: ControlPlane) -> ControlPlane:
    """The request's seven nodes and six running VMs, and nothing else."""
    load_request_scenario(empty_cluster)
    return empty_cluster


@pytest.fixture(scope="session")
def jaeger(pytestconfig: pytest.Config) -> Iterator[Jaeger]:
    """Jaeger, shared by all tests of the run: take a service name of your own."""
    with _uncaptured(pytestconfig):
        ensure_built(("jaeger",))
    with Jaeger() as running:
        yield running


@pytest.fixture(scope="session")
def prometheus_program(pytestconfig: pytest.Config) -> Path:
    """For a Prometheus with an exporter of the test's own."""
    with _uncaptured(pytestconfig):
        return ensure_built(("prometheus",))["prometheus"] / "prometheus"


def _uncaptured(config: pytest.Config) -> AbstractContextManager[None]:
    """Let what is printed reach the terminal, such as the progress of a build of twenty minutes."""
    capture = config.pluginmanager.getplugin("capturemanager")
    uncaptured: AbstractContextManager[None] = capture.global_and_fixture_disabled()
    return uncaptured
