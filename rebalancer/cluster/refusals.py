"""What it means when an API server does not accept a migration, in our words.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-api/webhooks/validating-webhook/admitters/
migration-create-admitter.go, and what a kube-apiserver v1.36.3 with that virt-api answers.
"""

import re
from typing import NamedTuple

from rebalancer.errors import RefusedError
from rebalancer.model.objects import ObjectKey

_LONGEST_ANSWER = 1000
"""Characters; whoever wrote a webhook, or a condition that KubeVirt quotes, sets no limit."""

_REFUSALS = {400, 403, 404, 422}


class _Kind(NamedTuple):
    code: str
    answer: re.Pattern[str]
    words: str
    """With the groups of `answer`, and `namespace` and `name` of the VM put in."""
    concerns_all: bool = False


# All of these are said before anything is stored. The first that fits counts.
_KINDS = (
    _Kind(
        "gone",
        re.compile(r'denied the request: the VMI ".*" does not exist'),
        "it does not exist any more; what was planned with it is planned anew",
    ),
    _Kind(
        "not-running",
        re.compile(r"denied the request: Cannot migrate VMI in finalized state"),
        "it has ended (its VMI is Succeeded or Failed); should it run, start it:"
        " virtctl start -n {namespace} {name}",
    ),
    _Kind(
        "not-live-migratable",
        re.compile(
            r"denied the request: Cannot migrate VMI, Reason: (?P<reason>.*?),"
            r" Message: (?P<message>.*)"
        ),
        "KubeVirt cannot live-migrate it ({reason}: {message}); it stays where it is until that is"
        " mended",
    ),
    _Kind(
        "migration-in-flight",
        re.compile(r"in-flight migration detected\. Active migration job \((?P<uid>[^)]*)\)"),
        "another migration of it is under way (uid {uid}); it can be moved again after that:"
        " kubectl -n {namespace} get vmim",
    ),
    _Kind(
        "name-too-long",
        re.compile(r"metadata\.labels: Invalid value: .*must be no more than 63"),
        "its name is longer than the 63 characters of the label that KubeVirt puts it into; only"
        " under a shorter name can it be migrated",
    ),
    _Kind(
        "unknown-field",
        re.compile(r'strict decoding error: .*unknown field "(?P<field>[^"]*)"'),
        "this KubeVirt does not know {field} of a migration, so it cannot be told the target;"
        " upgrade to KubeVirt 1.6 or later",
        concerns_all=True,
    ),
    _Kind(
        "webhook-unavailable",
        re.compile(r'failed calling webhook "(?P<webhook>[^"]*)": (?P<why>.*)'),
        "no migration is accepted while webhook {webhook} does not answer ({why}); see whether it"
        " runs, KubeVirt's own in the pods of virt-api",
        concerns_all=True,
    ),
    _Kind(
        "forbidden",
        re.compile(r'cannot create resource "virtualmachineinstancemigrations"'),
        "the rebalancer may not migrate in its namespace; RBAC must grant the verb create on"
        " virtualmachineinstancemigrations.kubevirt.io in namespace {namespace}",
    ),
    _Kind(
        "quota",
        re.compile(r"exceeded quota: (?P<quota>.*)"),
        "no more migrations may be in its namespace, raise the quota or delete old ones:"
        " ResourceQuota {quota}",
    ),
    _Kind(
        "namespace-terminating",
        re.compile(r"unable to create new content in namespace \S+ because it is being terminated"),
        "namespace {namespace} is being deleted, and the VM with it; once it has gone, the plan is"
        " made without it",
    ),
    _Kind(
        "webhook-denied",
        re.compile(r'admission webhook "(?P<webhook>[^"]*)" denied the request(?P<why>.*)'),
        "webhook {webhook} denied the request{why}; ask whoever runs that webhook",
    ),
)


def migration_refusal(status: int, answer: str, vmi: ObjectKey) -> RefusedError | None:
    """Why a migration of the VM was not accepted, or None if it may have been created.

    `status`: of HTTP; `answer`: the message that came with it, which may hold anything.
    """
    clean = _clean(answer)
    for kind in _KINDS:
        if found := kind.answer.search(clean):
            words = kind.words.format(namespace=vmi.namespace, name=vmi.name, **found.groupdict(""))
            return RefusedError(words, kind.code, concerns_all=kind.concerns_all)
    return RefusedError(f"HTTP {status}: {clean}") if status in _REFUSALS else None


def _clean(answer: str) -> str:
    """One line, control characters as escapes, not longer than a reader bears."""
    words = " ".join(answer[: 2 * _LONGEST_ANSWER].split())
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
    return line if len(line) <= _LONGEST_ANSWER else f"{line[:_LONGEST_ANSWER]}..."
