"""Fixtures that tests in several folders use."""

from tests.controlplane.fixtures import control_plane, empty_cluster, jaeger, request_cluster

__all__ = ["control_plane", "empty_cluster", "jaeger", "request_cluster"]
