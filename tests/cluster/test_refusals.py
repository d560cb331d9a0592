"""Each way in which a migration is not accepted has its code and its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.refusals import migration_refusal
from rebalancer.errors import RefusedError
from rebalancer.model.objects import ObjectKey

GOOSE = ObjectKey("shop", "goose")
DENIED = 'admission webhook "migration-create-validator.kubevirt.io" denied the request: '
STRICT = (
    'VirtualMachineInstanceMigration in version "v1" cannot be handled as a'
    " VirtualMachineInstanceMigration: strict decoding error: "
)


def refusal(status: int, answer: str) -> RefusedError:
    found = migration_refusal(status, answer, GOOSE)
    assert found is not None
    return found


# Recorded from kube-apiserver v1.36.3 with KubeVirt v1.8.4.
RECORDED = [
    (400, DENIED + 'the VMI "shop/goose" does not exist', "gone", "it does not exist any more"),
    (
        400,
        DENIED + "Cannot migrate VMI in finalized state.",
        "not-running",
        "should it run, start it: virtctl start -n shop goose",
    ),
    (
        400,
        DENIED + "Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: cannot migrate VMI:"
        " PVC data is not shared, live migration requires that all PVCs must be shared",
        "not-live-migratable",
        "KubeVirt cannot live-migrate it (DisksNotLiveMigratable: cannot migrate VMI: PVC data is"
        " not shared, live migration requires that all PVCs must be shared)",
    ),
    (
        400,
        DENIED + "in-flight migration detected. Active migration job"
        " (6274b24c-d9de-4389-80a4-9b65f235ae78) is currently already in progress for VMI goose.",
        "migration-in-flight",
        "(uid 6274b24c-d9de-4389-80a4-9b65f235ae78); it can be moved again after that:"
        " kubectl -n shop get vmim",
    ),
    (
        422,
        'VirtualMachineInstanceMigration.kubevirt.io "m" is invalid: metadata.labels: Invalid'
        f' value: "{"x" * 64}": must be no more than 63 bytes',
        "name-too-long",
        "only under a shorter name",
    ),
    (
        400,
        STRICT + 'unknown field "spec.addedNodeSelector"',
        "unknown-field",
        "this KubeVirt does not know spec.addedNodeSelector of a migration",
    ),
    (
        500,
        'Internal error occurred: failed calling webhook "migrations-mutator.kubevirt.io": failed'
        ' to call webhook: Post "https://127.0.0.1:1/migration-mutate-create?timeout=10s": dial tcp'
        " 127.0.0.1:1: connect: connection refused",
        "webhook-unavailable",
        "while webhook migrations-mutator.kubevirt.io does not answer (failed to call webhook:",
    ),
    (
        403,
        'virtualmachineinstancemigrations.kubevirt.io is forbidden: User "x" cannot create resource'
        ' "virtualmachineinstancemigrations" in API group "kubevirt.io" in the namespace "shop"',
        "forbidden",
        "RBAC must grant the verb create on virtualmachineinstancemigrations.kubevirt.io in"
        " namespace shop",
    ),
    (
        403,
        'virtualmachineinstancemigrations.kubevirt.io "m" is forbidden: exceeded quota: few,'
        " requested: count/virtualmachineinstancemigrations.kubevirt.io=1, used:"
        " count/virtualmachineinstancemigrations.kubevirt.io=0, limited:"
        " count/virtualmachineinstancemigrations.kubevirt.io=0",
        "quota",
        "ResourceQuota few, requested: count/",
    ),
    (
        403,
        'virtualmachineinstancemigrations.kubevirt.io "m" is forbidden: unable to create new'
        " content in namespace shop because it is being terminated",
        "namespace-terminating",
        "namespace shop is being deleted, and the VM with it",
    ),
    (
        422,
        DENIED + "MigrationPriorityQueue feature gate is not enabled in kubevirt resource",
        "webhook-denied",
        "webhook migration-create-validator.kubevirt.io denied the request: MigrationPriorityQueue"
        " feature gate is not enabled",
    ),
    (
        400,
        'admission webhook "freeze.example.com" denied the request without explanation',
        "webhook-denied",
        "webhook freeze.example.com denied the request without explanation; ask whoever",
    ),
    (
        422,
        'virtualmachineinstancemigrations.kubevirt.io "m" is forbidden: ValidatingAdmissionPolicy'
        " 'freeze' with binding 'freeze' denied request: not on Fridays",
        "create-refused",
        "HTTP 422: virtualmachineinstancemigrations.kubevirt.io",
    ),
]


@pytest.mark.parametrize(("status", "answer", "code", "says"), RECORDED, ids=lambda v: str(v)[:24])
def test_a_recorded_refusal_has_its_code_and_words(
    status: int, answer: str, code: str, says: str
) -> None:
    found = refusal(status, answer)
    assert found.code == code
    assert says in str(found)


def test_only_what_bars_every_migration_concerns_all() -> None:
    concern_all = {
        code for status, answer, code, _ in RECORDED if refusal(status, answer).concerns_all
    }
    assert concern_all == {"unknown-field", "webhook-unavailable"}


@pytest.mark.parametrize("status", [0, 401, 429, 500, 503, 504])
def test_a_failure_on_the_way_is_no_refusal(status: int) -> None:
    assert migration_refusal(status, "etcdserver: request timed out", GOOSE) is None


def test_words_in_braces_stay_as_they_are() -> None:
    answer = DENIED + "Cannot migrate VMI, Reason: {name}, Message: {0} {"
    assert "({name}: {0} {)" in str(refusal(400, answer))


@given(
    answer=st.text(), prefix=st.sampled_from(["", DENIED, DENIED + "Cannot migrate VMI, Reason: "])
)
def test_whatever_is_answered_becomes_one_short_printable_line(answer: str, prefix: str) -> None:
    assert str(refusal(400, prefix + answer)).isprintable()


def test_control_characters_are_told_as_escapes() -> None:
    found = refusal(400, "\x1b]0;owned\x07\tno\r\n  more\u202e")
    assert str(found) == r"HTTP 400: \x1b]0;owned\x07 no more\u202e"


def test_a_long_answer_is_cut() -> None:
    found = refusal(400, DENIED + "Cannot migrate VMI, Reason: R, Message: " + "x\x1b[2J\n" * 10**6)
    assert found.code == "not-live-migratable"
    assert len(str(found)) < 1200
