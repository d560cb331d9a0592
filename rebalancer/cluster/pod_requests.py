"""What a pod asks for, as the scheduler counts it.

Source: k8s.io/component-helpers v0.36.3 resource/helpers.go, PodRequests; the defaults that the
API server sets in pods: pkg/apis/core/v1/defaults.go in kubernetes/kubernetes v1.36.3.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Raw
from msgspec.json import Decoder

from rebalancer.cluster.fields import amounts, decode_field, required
from rebalancer.cluster.wire import (
    NULL,
    Container,
    ContainerStatus,
    PodSpec,
    PodStatus,
    Quantities,
    Resources,
)
from rebalancer.model.objects import Amounts

_RESOURCES: Decoder[Resources | None] = Decoder(Resources | None)
_QUANTITIES: Decoder[Quantities | None] = Decoder(Quantities | None)
_SLOT = {"pods": 1}


class PodRequests:
    """Requests of pods; equal ones are one object, found again by the bytes that they came from."""

    def __init__(self) -> None:
        self._by_bytes: dict[tuple[object, ...], Amounts] = {}
        self._by_amounts: dict[frozenset[tuple[str, int]], Amounts] = {}
        self._containers: dict[tuple[object, ...], Containers] = {}

    def of(self, spec: PodSpec, status: PodStatus) -> Amounts:
        """Resource name to amount, the pod's own slot (`pods`: 1) included.

        Raises: FieldError.
        """
        key = _key(spec, status)
        found = self._by_bytes.get(key)
        if found is None:
            computed = pod_requests(spec, status)
            found = self._by_amounts.setdefault(frozenset(computed.items()), computed)
            self._by_bytes[key] = found
        return found

    def of_containers(self, spec: PodSpec) -> "Containers":
        """Raises: FieldError."""
        key = (*_container_key(spec.containers), *_container_key(spec.init_containers))
        found = self._containers.get(key)
        if found is None:
            found = self._containers[key] = container_resources(spec)
        return found


class Containers(NamedTuple):
    """What the containers ask for that run side by side."""

    requests: Mapping[str, Amounts]
    """By name."""
    limits: Amounts
    """Sum of all."""


def container_resources(spec: PodSpec) -> Containers:
    """Raises: FieldError."""
    requests: dict[str, Amounts] = {}
    limits: dict[str, int] = {}
    sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
    for container in (*(spec.containers or ()), *sidecars):
        field = f"container {container.name}"
        requests[container.name or ""] = _container_requests(container.resources, field)
        resources = decode_field(container.resources, _RESOURCES, field) or Resources()
        _add(limits, amounts(resources.limits, f"{field}.limits"))
    return Containers(requests, limits)


def pod_requests(spec: PodSpec, status: PodStatus) -> Amounts:
    """Containers and sidecars together, or the init containers' peak where that is larger; for
    what the pod names as a whole (KEP-2837), that; overhead on top.

    While a container is resized in place, the largest of what it asks for, has been allotted and
    has counts.

    Raises: FieldError.
    """
    is_infeasible = _is_resize_infeasible(status)
    running = _Statuses(status.container_statuses, is_infeasible)
    running_init = _Statuses(status.init_container_statuses, is_infeasible)
    total: dict[str, int] = {}
    for i, container in enumerate(required(spec.containers, "spec.containers")):
        asked = _container_requests(container.resources, f"spec.containers[{i}]")
        _add(total, running.effective(container, asked, "status.containerStatuses"))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for i, container in enumerate(spec.init_containers or ()):
        asked = _container_requests(container.resources, f"spec.initContainers[{i}]")
        if container.restart_policy == "Always":
            asked = running_init.effective(container, asked, "status.initContainerStatuses")
            _add(total, asked)
            _add(sidecars, asked)
            _raise_to(peak, sidecars)
        else:
            _raise_to(peak, _sum(sidecars, asked))
    _raise_to(total, peak)
    total.update(_pod_level_requests(spec, status, total, is_infeasible))
    _add(total, _amounts(spec.overhead, "spec.overhead"))
    _add(total, _SLOT)
    return total


class _Statuses:
    """What running containers have of resources, by their names."""

    def __init__(self, statuses: Sequence[ContainerStatus] | None, is_infeasible: bool) -> None:
        self._index = {status.name: i for i, status in enumerate(statuses or ())}
        self._statuses = statuses or ()
        self._is_infeasible = is_infeasible

    def effective(self, container: Container, asked: dict[str, int], field: str) -> dict[str, int]:
        i = self._index.get(container.name)
        if i is None:
            return asked
        status = self._statuses[i]
        return _effective(
            asked,
            status.resources,
            status.allocated_resources,
            f"{field}[{i}]",
            self._is_infeasible,
        )


def _effective(
    asked: dict[str, int], resources: Raw, allocated: Raw, field: str, is_infeasible: bool
) -> dict[str, int]:
    """A resize that the node can never grant does not count, only what there is."""
    actual = decode_field(resources, _RESOURCES, f"{field}.resources")
    if actual is None:
        return asked
    effective = {} if is_infeasible else dict(asked)
    _raise_to(effective, amounts(actual.requests, f"{field}.resources.requests"))
    _raise_to(effective, _amounts(allocated, f"{field}.allocatedResources"))
    return effective


def _container_requests(raw: Raw, field: str) -> dict[str, int]:
    """A limit without a request is the request."""
    field = f"{field}.resources"
    resources = decode_field(raw, _RESOURCES, field) or Resources()
    limits = amounts(resources.limits, f"{field}.limits")
    return limits | amounts(resources.requests, f"{field}.requests")


def _pod_level_requests(
    spec: PodSpec, status: PodStatus, containers: Amounts, is_infeasible: bool
) -> Amounts:
    field = "spec.resources"
    resources = decode_field(spec.resources, _RESOURCES, field)
    if resources is None:
        return {}
    limits = amounts(resources.limits, f"{field}.limits")
    asked = {
        name: amount
        for name, amount in limits.items()
        if name not in containers or _is_huge_pages(name)
    } | amounts(resources.requests, f"{field}.requests")
    effective = _effective(
        asked, status.resources, status.allocated_resources, "status", is_infeasible
    )
    return {name: effective.get(name, 0) for name in asked if _is_pod_level(name)}


def _is_pod_level(resource: str) -> bool:
    return resource in {"cpu", "memory"} or _is_huge_pages(resource)


def _is_huge_pages(resource: str) -> bool:
    return resource.startswith("hugepages-")


def _is_resize_infeasible(status: PodStatus) -> bool:
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _amounts(raw: Raw, field: str) -> dict[str, int]:
    return amounts(decode_field(raw, _QUANTITIES, field), field)


def _sum(left: Amounts, right: Amounts) -> dict[str, int]:
    total = dict(left)
    _add(total, right)
    return total


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _raise_to(total: dict[str, int], floor: Mapping[str, int]) -> None:
    for resource, amount in floor.items():
        total[resource] = max(total.get(resource, 0), amount)


def _key(spec: PodSpec, status: PodStatus) -> tuple[object, ...]:
    """All that the requests are computed from."""
    return (
        tuple(_container_key(spec.containers)),
        tuple(_container_key(spec.init_containers)),
        bytes(spec.overhead),
        bytes(spec.resources),
        tuple(_status_key(status.container_statuses)),
        tuple(_status_key(status.init_container_statuses)),
        bytes(status.resources),
        bytes(status.allocated_resources),
        _is_resize_infeasible(status),
    )


def _container_key(containers: Iterable[Container] | None) -> Iterable[object]:
    return ((c.name, bytes(c.resources), c.restart_policy) for c in containers or ())


def _status_key(statuses: Iterable[ContainerStatus] | None) -> Iterable[object]:
    return (
        (s.name, bytes(s.resources), bytes(s.allocated_resources))
        for s in statuses or ()
        if s.resources is not NULL
    )
