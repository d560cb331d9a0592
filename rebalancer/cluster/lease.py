"""The right to act: one Lease in the cluster, held by one rebalancer at a time."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.json import Decoder
from msgspec.structs import replace

from rebalancer.cluster.api import Api, ApiError
from rebalancer.cluster.kinds import LEASE
from rebalancer.cluster.wire import Time, Wire
from rebalancer.errors import NotLeaderError, RefusedError

NAME = "kubevirt-rebalancer"

# client-go's defaults, k8s.io/component-base config/v1alpha1/defaults.go: a holder gives up well
# before anybody else may take over.
DURATION_SECONDS = 15
RENEW_DEADLINE_SECONDS = 10
RETRY_SECONDS = 2


class LeaseSpec(Wire):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: Time | None = None
    renew_time: Time | None = None
    lease_transitions: int | None = None

    @property
    def duration(self) -> timedelta:
        return timedelta(seconds=self.lease_duration_seconds or DURATION_SECONDS)

    @property
    def expires_at(self) -> datetime:
        """By the holder's clock; long ago if it has noted no time."""
        if self.renew_time is None:
            return datetime.min.replace(tzinfo=UTC)
        return self.renew_time + self.duration


class Lease(Wire):
    metadata: dict[str, Any]
    """As it came, so that whatever others put there stays."""
    spec: LeaseSpec | None = None


class LeaseLock:
    """Acquires the Lease.

    Args:
        identity: tells this process from all others.
        clock: seconds that only grow; it does not matter from when.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        identity: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._identity = identity
        self._clock = clock
        self._sleep = sleep
        self._seen_version = ""
        self._seen_at = 0.0

    @contextmanager
    def held(self) -> Iterator["HeldLease"]:
        """The Lease for the length of the `with` block; afterwards it is free at once.

        Raises: as `acquire`.
        """
        held = self.acquire()
        over = threading.Event()
        renewing = threading.Thread(target=_renew_until, args=(over, held), daemon=True)
        renewing.start()
        try:
            yield held
        finally:
            over.set()
            renewing.join()
            held.release()

    def acquire(self) -> "HeldLease":
        """The Lease, for the caller to renew. Waits only to see whether a holder is dead.

        Raises: NotLeaderError if somebody else holds it, RefusedError, ClusterError.
        """
        while True:
            lease = self._read()
            now = self._clock()
            try:
                if lease is None:
                    return HeldLease(self._api, self._create(), now, self._clock)
                spec = lease.spec or LeaseSpec()
                if self._is_free(lease, spec, now):
                    return HeldLease(self._api, self._take(lease, spec), now, self._clock)
            except ApiError as error:
                if error.status != 409:  # else somebody was quicker: see who
                    raise
            else:
                if spec.expires_at > self._api.now():
                    raise self._not_leader(spec)
            self._sleep(RETRY_SECONDS)

    def _read(self) -> Lease | None:
        try:
            return _decoded(self._api.get(LEASE, self._namespace, NAME))
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def _create(self) -> Lease:
        metadata = {"name": NAME, "namespace": self._namespace}
        body = _body(Lease(metadata, self._claim(transitions=0)))
        try:
            return _decoded(self._api.create(LEASE, self._namespace, body, {}))
        except ApiError as error:
            if error.status != 404:
                raise
            raise RefusedError(str(error)) from error

    def _is_free(self, lease: Lease, spec: LeaseSpec, now: float) -> bool:
        """Released, ours from before a crash, or not renewed for its duration while we looked on.

        As in client-go, no clock but our own decides that a holder is dead.
        """
        if not spec.holder_identity or spec.holder_identity == self._identity:
            return True
        version = lease.metadata.get("resourceVersion", "")
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, now
        return now - self._seen_at >= spec.duration.total_seconds()

    def _take(self, lease: Lease, spec: LeaseSpec) -> Lease:
        claim = self._claim(transitions=(spec.lease_transitions or 0) + 1)
        return _updated(self._api, replace(lease, spec=claim))

    def _claim(self, transitions: int) -> LeaseSpec:
        now = self._api.now()
        return LeaseSpec(self._identity, DURATION_SECONDS, now, now, transitions)

    def _not_leader(self, spec: LeaseSpec) -> NotLeaderError:
        return NotLeaderError(
            f"{spec.holder_identity} holds the Lease {self._namespace}/{NAME} until"
            f" {spec.expires_at.isoformat(timespec='seconds')}; only one rebalancer may act at a"
            " time: wait for it, or stop it"
        )


class HeldLease:
    """A Lease that was ours at `renewed_at` and has to be renewed."""

    def __init__(
        self, api: Api, lease: Lease, renewed_at: float, clock: Callable[[], float]
    ) -> None:
        self._api = api
        self._lease = lease
        self._spec = lease.spec or LeaseSpec()
        self._renewed_at = renewed_at
        self._clock = clock
        self._is_lost = False

    def is_held(self) -> bool:
        """Whether nobody else can have taken over yet."""
        return not self._is_lost and self._clock() - self._renewed_at < RENEW_DEADLINE_SECONDS

    def renew(self) -> None:
        """One attempt; the time before it counts, as others see the renewal no earlier."""
        if self._is_lost:
            return
        now = self._clock()
        try:
            self._update(replace(self._spec, renew_time=self._api.now()))
            self._renewed_at = now
        except ApiError as error:
            if error.status in {404, 409}:
                self._look_again()

    def release(self) -> None:
        """Leaves the Lease to whoever comes; failing that, it expires by itself."""
        if not self._is_lost:
            with suppress(ApiError):
                self._update(replace(self._spec, holder_identity="", lease_duration_seconds=1))

    def _update(self, spec: LeaseSpec) -> None:
        self._lease = _updated(self._api, replace(self._lease, spec=spec))

    def _look_again(self) -> None:
        """It has changed: by an earlier renewal that seemed to fail, or it has a new holder."""
        metadata = self._lease.metadata
        try:
            self._lease = _decoded(self._api.get(LEASE, metadata["namespace"], NAME))
        except ApiError as error:
            self._is_lost = error.status == 404
        else:
            spec = self._lease.spec or LeaseSpec()
            self._is_lost = spec.holder_identity != self._spec.holder_identity


def _renew_until(over: threading.Event, held: HeldLease) -> None:
    while not over.wait(RETRY_SECONDS):
        held.renew()


def _updated(api: Api, lease: Lease) -> Lease:
    return _decoded(api.update(LEASE, lease.metadata["namespace"], NAME, _body(lease)))


def _body(lease: Lease) -> dict[str, Any]:
    spec = lease.spec or LeaseSpec()
    return {
        "apiVersion": f"{LEASE.group}/v1",
        "kind": LEASE.name,
        "metadata": lease.metadata,
        "spec": {
            "holderIdentity": spec.holder_identity,
            "leaseDurationSeconds": spec.lease_duration_seconds,
            "acquireTime": _micro_time(spec.acquire_time),
            "renewTime": _micro_time(spec.renew_time),
            "leaseTransitions": spec.lease_transitions,
        },
    }


def _micro_time(time: datetime | None) -> str | None:
    """With exactly six digits of a second: the API server insists."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if time else None


_LEASE: Decoder[Lease] = Decoder(Lease)


def _decoded(data: bytes) -> Lease:
    try:
        return _LEASE.decode(data)
    except msgspec.DecodeError as error:
        raise ApiError(0, f"the API server's Lease {NAME} cannot be read: {error}") from error
