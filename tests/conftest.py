"""Fixtures that tests in several folders use."""

import os

from hypothesis import settings

from tests.controlplane.fixtures import (
    control_plane,
    empty_cluster,
    jaeger,
    prometheus_program,
    request_cluster,
)

__all__ = ["control_plane", "empty_cluster", "jaeger", "prometheus_program", "request_cluster"]

# How long an example takes says more about the machine's load than about the code.
settings.register_profile("here", deadline=None)
# A change must not fail for an example that an earlier run happened not to try; new examples are
# looked for wherever else the tests run.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")
