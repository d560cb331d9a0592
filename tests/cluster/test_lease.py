"""One Lease, one holder: whoever may act is sure that nobody else does."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from rebalancer.cluster.lease import HeldLease, LeaseLock
from rebalancer.errors import ClusterError, NotLeaderError, RefusedError
from tests.cluster.api_server import Answer, ApiServer, Asked, refusal

LEASES = "/apis/coordination.k8s.io/v1/namespaces/rebalancer/leases"
LEASE = f"{LEASES}/kubevirt-rebalancer"


class Leases:
    """What the API server does with the one Lease: updates of an old version are refused."""

    def __init__(self, server: ApiServer) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.fails: Answer | None = None
        """What updates get instead."""
        server.on("GET", LEASE, self.get)
        server.on("POST", LEASES, self.post)
        server.on("PUT", LEASE, self.put)

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    def store(self, lease: dict[str, Any]) -> Answer:
        self.version += 1
        self.lease = json.loads(json.dumps(lease))
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return Answer(200, self.lease)

    def held_by(self, holder: str, renewed_at: datetime) -> None:
        """As another process would have left it."""
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": renewed_at.isoformat(),
            "leaseTransitions": 3,
        }
        metadata = {"name": "kubevirt-rebalancer", "namespace": "rebalancer", "labels": {"a": "b"}}
        self.store({"metadata": metadata, "spec": spec})

    def get(self, _: Asked) -> Answer:
        return Answer(200, self.lease) if self.lease else refusal(404, "not found")

    def post(self, asked: Asked) -> Answer:
        return refusal(409, "already exists") if self.lease else self.store(asked.body)

    def put(self, asked: Asked) -> Answer:
        if self.fails:
            return self.fails
        if self.lease is None:
            return refusal(404, "not found")
        if asked.body["metadata"]["resourceVersion"] != str(self.version):
            return refusal(409, "the object has been modified")
        return self.store(asked.body)


class Clock:
    """Seconds that pass only by sleeping."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def leases(server: ApiServer) -> Leases:
    return Leases(server)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lock(server: ApiServer, clock: Clock) -> LeaseLock:
    return LeaseLock(server.api, "rebalancer", "me", clock=clock, sleep=clock.sleep)


def now(server: ApiServer) -> datetime:
    return server.api.now()


class TestAcquiring:
    def test_first_one_creates_it_and_leaves_it_free(self, lock: LeaseLock, leases: Leases) -> None:
        with lock.held() as leadership:
            assert leadership.is_held()
            assert leases.spec["holderIdentity"] == "me"
            assert leases.spec["leaseDurationSeconds"] == 15
        assert leases.spec["holderIdentity"] == ""

    def test_it_is_left_free_after_an_error_too(self, lock: LeaseLock, leases: Leases) -> None:
        with pytest.raises(KeyError), lock.held():
            raise KeyError
        assert leases.spec["holderIdentity"] == ""

    def test_free_one_is_taken_and_what_others_wrote_stays(
        self, lock: LeaseLock, leases: Leases, server: ApiServer
    ) -> None:
        leases.held_by("", now(server))
        with lock.held():
            assert leases.spec["holderIdentity"] == "me"
            assert leases.spec["leaseTransitions"] == 4
            assert leases.lease is not None
            assert leases.lease["metadata"]["labels"] == {"a": "b"}

    def test_our_own_from_before_a_crash_is_taken_at_once(
        self, lock: LeaseLock, leases: Leases, server: ApiServer, clock: Clock
    ) -> None:
        leases.held_by("me", now(server))
        with lock.held() as leadership:
            assert leadership.is_held()
        assert clock.seconds == 1000

    def test_live_holder_is_named_with_the_time_it_ends(
        self, lock: LeaseLock, leases: Leases, server: ApiServer
    ) -> None:
        renewed_at = now(server)
        leases.held_by("other-pod", renewed_at)
        with pytest.raises(NotLeaderError) as error, lock.held():
            pass
        until = (renewed_at + timedelta(seconds=15)).isoformat(timespec="seconds")
        assert str(error.value) == (
            f"other-pod holds the Lease rebalancer/kubevirt-rebalancer until {until}; only one"
            " rebalancer may act at a time: wait for it, or stop it"
        )

    def test_dead_holder_is_replaced_after_it_was_silent_for_the_duration(
        self, lock: LeaseLock, leases: Leases, server: ApiServer, clock: Clock
    ) -> None:
        """Its time stamp alone proves nothing: its clock may be slow."""
        leases.held_by("dead-pod", now(server) - timedelta(hours=1))
        with lock.held():
            assert leases.spec["holderIdentity"] == "me"
        assert clock.seconds - 1000 >= 15

    def test_holder_whose_clock_is_slow_is_seen_to_live(
        self, leases: Leases, server: ApiServer, clock: Clock
    ) -> None:
        """It renews every two seconds, with a time an hour ago; then its clock is put right."""
        beats = iter([timedelta(hours=1)] * 20 + [timedelta(0)])

        def sleep(seconds: float) -> None:
            clock.sleep(seconds)
            leases.held_by("slow-pod", now(server) - next(beats))

        watchful = LeaseLock(server.api, "rebalancer", "me", clock=clock, sleep=sleep)
        leases.held_by("slow-pod", now(server) - timedelta(hours=1))
        with pytest.raises(NotLeaderError, match="slow-pod"), watchful.held():
            pass
        assert clock.seconds - 1000 > 2 * 15

    def test_dead_holder_whose_clock_was_fast_is_replaced_in_a_later_cycle(
        self, lock: LeaseLock, leases: Leases, server: ApiServer, clock: Clock
    ) -> None:
        leases.held_by("dead-pod", now(server) + timedelta(hours=1))
        with pytest.raises(NotLeaderError), lock.held():
            pass
        clock.sleep(60)
        with lock.held():
            assert leases.spec["holderIdentity"] == "me"

    @pytest.mark.parametrize("exists", [False, True])
    def test_whoever_is_quicker_wins(
        self, lock: LeaseLock, leases: Leases, server: ApiServer, exists: bool
    ) -> None:
        def too_late(_: Asked) -> Answer:
            leases.held_by("quick-pod", now(server))
            return refusal(409, "conflict")

        if exists:
            leases.held_by("", now(server))
        server.on("POST", LEASES, too_late)
        server.on("PUT", LEASE, too_late)
        with pytest.raises(NotLeaderError, match="quick-pod"), lock.held():
            pass

    @pytest.mark.usefixtures("leases")
    def test_missing_namespace_is_to_be_created(self, lock: LeaseLock, server: ApiServer) -> None:
        server.on("POST", LEASES, refusal(404, 'namespaces "rebalancer" not found'))
        with pytest.raises(RefusedError, match="kubectl create namespace rebalancer"), lock.held():
            pass

    @pytest.mark.parametrize("answer", [refusal(403, "no"), Answer(200, b"<html>")])
    def test_lease_that_cannot_be_read_is_an_error(
        self, lock: LeaseLock, server: ApiServer, answer: Answer
    ) -> None:
        server.on("GET", LEASE, answer)
        with pytest.raises(ClusterError), lock.held():
            pass


@pytest.mark.usefixtures("leases")
class TestHolding:
    @pytest.fixture
    def held(self, lock: LeaseLock) -> HeldLease:
        return lock.acquire()

    def test_it_lapses_before_others_may_take_it(self, held: HeldLease, clock: Clock) -> None:
        clock.sleep(9.9)
        assert held.is_held()
        clock.sleep(0.2)
        assert not held.is_held()

    def test_renewal_prolongs_it(self, held: HeldLease, leases: Leases, clock: Clock) -> None:
        before = leases.spec["renewTime"]
        clock.sleep(9)
        held.renew()
        clock.sleep(9)
        assert held.is_held()
        assert leases.spec["renewTime"] >= before

    @pytest.mark.parametrize("answer", [refusal(500, "x"), Answer(200, {"a": 1}, cut_off=True)])
    def test_renewal_that_fails_does_not(
        self, held: HeldLease, leases: Leases, clock: Clock, answer: Answer
    ) -> None:
        leases.fails = answer
        clock.sleep(9)
        held.renew()
        assert held.is_held()
        clock.sleep(2)
        assert not held.is_held()

    def test_lease_that_another_has_taken_is_lost_at_once_and_left_alone(
        self, held: HeldLease, leases: Leases, server: ApiServer
    ) -> None:
        leases.held_by("other-pod", now(server))
        held.renew()
        assert not held.is_held()
        held.renew()
        held.release()
        assert leases.spec["holderIdentity"] == "other-pod"
        assert leases.version == 2  # no update of ours

    def test_lease_that_was_deleted_is_lost(self, held: HeldLease, leases: Leases) -> None:
        leases.lease = None
        held.renew()
        assert not held.is_held()

    def test_renewal_that_went_through_without_an_answer_is_no_loss(
        self, held: HeldLease, leases: Leases, server: ApiServer, clock: Clock
    ) -> None:
        leases.held_by("me", now(server))
        clock.sleep(5)
        held.renew()
        held.renew()
        clock.sleep(9)
        assert held.is_held()

    def test_loss_is_not_concluded_while_the_server_is_in_trouble(
        self, held: HeldLease, leases: Leases, server: ApiServer
    ) -> None:
        leases.fails = refusal(409, "conflict")
        server.on("GET", LEASE, refusal(403, "RBAC is being changed"))
        held.renew()
        assert held.is_held()

    def test_release_never_fails(self, held: HeldLease, leases: Leases) -> None:
        leases.fails = refusal(500, "x")
        held.release()
        assert leases.spec["holderIdentity"] == "me"
