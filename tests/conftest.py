"""Fixtures that tests in several folders use."""

import os

from hypothesis import settings

from tests.controlplane.fixtures import control_plane, empty_cluster, jaeger, request_cluster

__all__ = ["control_plane", "empty_cluster", "jaeger", "request_cluster"]

# A change must not fail for an example that an earlier run happened not to try; new examples are
# looked for wherever else the tests run.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
