"""Both answers for every tested pod of a case and every node, and where they differ."""

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import msgspec

from rebalancer.cluster.api import Api as ProductApi
from rebalancer.cluster.config import load_config
from rebalancer.cluster.live import LiveCluster
from rebalancer.model.objects import ObjectKey
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.fit_error import grouped_reasons
from rebalancer.scheduling.state import ClusterState
from tests.controlplane.api import Api, Object, path_of
from tests.controlplane.waiting import wait_for
from tests.differential.cases import (
    CSI_DRIVER,
    NAMESPACES,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    STORAGE_CLASSES,
    Case,
)
from tests.differential.rig import ACCEPTED, SchedulerRig

_STORAGE = "/apis/storage.k8s.io/v1"


class Difference(NamedTuple):
    pod: str
    node: str
    is_unsafe: bool
    """Whether it is the product that lets the pod in."""
    predicates: tuple[str, ...]
    """The filters that bar the pod, where the scheduler lets it in."""
    scheduler_message: str


class Result(NamedTuple):
    pairs: int
    feasible_pairs: int
    differences: tuple[Difference, ...]
    other_messages: tuple[tuple[str, str], ...]
    """The scheduler's grouped reasons and ours, where those differ."""


def prepare(rig: SchedulerRig) -> None:
    """What all cases have in common."""
    with rig.api() as api:
        for name, labels in NAMESPACES.items():
            api.create(path_of("namespaces"), {"metadata": {"name": name, "labels": labels}})
        priority = {"metadata": {"name": PRIORITY_CLASS}, "value": 1000}
        api.create(path_of("priorityclasses"), priority)
        sandboxed = {
            "metadata": {"name": RUNTIME_CLASS},
            "handler": RUNTIME_CLASS,
            "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
            "scheduling": {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
        }
        api.create("/apis/node.k8s.io/v1/runtimeclasses", sandboxed)
        for storage_class in STORAGE_CLASSES:
            api.create(f"{_STORAGE}/storageclasses", storage_class)
        api.create(f"{_STORAGE}/csidrivers", CSI_DRIVER)


def compare(rig: SchedulerRig, case: Case) -> Result:
    with rig.api() as api:
        _clear(api)
        _create(api, case)
        with rig.scheduler() as answers:
            decided = wait_for(
                lambda: _tested(api, case),
                lambda pods: all(_refusal(pod) for pod in pods),
                f"the scheduler to look at every pod of seed {case.seed}",
            )
        cluster = LiveCluster(ProductApi(load_config(rig.kubeconfig(), None)), "default", "test")
        return _result(cluster.read(), decided, answers)


def shrunk(rig: SchedulerRig, case: Case, difference: Difference) -> Case:
    """A smaller case with the same difference: the pod alone, and fewer others around it."""

    def differs(smaller: Case) -> bool:
        found = compare(rig, smaller).differences
        return any(each[:3] == difference[:3] for each in found)

    tested = [pod for pod in case.tested if _key(pod) == difference.pod]
    case = replace(case, tested=tested)
    for part in ("placed", "nodes", "attachments"):
        size = len(getattr(case, part))
        while size > 1:
            size //= 2
            for start in range(0, len(getattr(case, part)), size):
                objects = getattr(case, part)
                smaller = replace(case, **{part: objects[:start] + objects[start + size :]})
                if differs(smaller):
                    case = smaller
                    break
    return case


def describe(case: Case, difference: Difference) -> str:
    """The case for whoever has to find the fault."""
    pod = next(pod for pod in case.tested if _key(pod) == difference.pod)
    shown = [pod, *case.nodes, *case.placed, *case.claims, *case.volumes]
    lines = [msgspec.json.encode(each).decode() for each in shown]
    product, scheduler = ("yes", "no") if difference.is_unsafe else ("no", "yes")
    return "\n".join(
        [
            f"seed {case.seed}, pod {difference.pod} on node {difference.node}:"
            f" product {product} {difference.predicates}, scheduler {scheduler}",
            difference.scheduler_message,
            *lines,
        ]
    )


def _clear(api: Api) -> None:
    for plural in ("pods", "persistentvolumeclaims"):
        for namespace in NAMESPACES:
            api.delete(path_of(plural, namespace), gracePeriodSeconds="0")
    api.delete(path_of("nodes"))
    api.delete(path_of("persistentvolumes"))
    api.delete(f"{_STORAGE}/csinodes")
    api.delete(f"{_STORAGE}/volumeattachments")


def _create(api: Api, case: Case) -> None:
    with ThreadPoolExecutor(max_workers=8) as pool:

        def create_all(objects: list[Object], plural: str, root: str = "") -> None:
            def create(each: Object) -> None:
                namespace = each["metadata"].get("namespace")
                api.create(f"{root}/{plural}" if root else path_of(plural, namespace), each)

            list(pool.map(create, objects))

        create_all(case.nodes, "nodes")
        create_all(case.volumes, "persistentvolumes")
        create_all(case.claims, "persistentvolumeclaims")
        create_all(case.csi_nodes, "csinodes", _STORAGE)
        create_all(case.attachments, "volumeattachments", _STORAGE)
        create_all(case.placed, "pods")
        for plural, objects in (("pods", case.placed), ("persistentvolumeclaims", case.claims)):
            for each in objects:
                namespace, name = each["metadata"]["namespace"], each["metadata"]["name"]
                path = path_of(plural, namespace, name)
                if status := case.statuses.get((namespace, name)):
                    api.patch_status(path, {"status": status})
                if (namespace, name) in case.leaving:
                    api.delete(path)
        create_all(case.tested, "pods")


def _tested(api: Api, case: Case) -> list[Object]:
    keys = {_key(pod) for pod in case.tested}
    return [pod for pod in api.list(path_of("pods")) if _key(pod) in keys]


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _refusal(pod: Object) -> str:
    """What the scheduler says of the pod; empty before it has said anything."""
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            assert condition["reason"] in ("Unschedulable", "SchedulingGated"), condition
            return str(condition["message"])
    return ""


def _result(
    snapshot: Snapshot, decided: list[Object], answers: Mapping[str, tuple[str, ...]]
) -> Result:
    state = ClusterState(snapshot)
    differences: list[Difference] = []
    other_messages: list[tuple[str, str]] = []
    feasible_pairs = 0
    for pod in decided:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        feasibility = evaluate(snapshot.pod_by_key[ObjectKey(namespace, name)], state)
        accepted = answers.get(pod["metadata"]["uid"], ())
        feasible_pairs += len(accepted)
        message = _refusal(pod)
        for i, node in enumerate(state.nodes):
            ours, theirs = bool(feasibility.feasible[i]), node.name in accepted
            if ours != theirs:
                codes = tuple(dict.fromkeys(each.code for each in feasibility.reasons(i)))
                differences.append(Difference(_key(pod), node.name, ours, codes, message))
        grouped = _grouped(message)
        ours_grouped = grouped_reasons(feasibility, range(len(state.nodes)))
        if grouped and grouped != _counts(ours_grouped):
            other_messages.append((message, ours_grouped))
    pairs = len(decided) * len(state.nodes)
    return Result(pairs, feasible_pairs, tuple(differences), tuple(other_messages))


def _grouped(message: str) -> Counter[str]:
    """Reason to number of nodes; empty for a message that is not about single nodes."""
    _, _, reasons = message.partition("nodes are available: ")
    reasons = reasons.split(". ")[0].removesuffix(".")
    if not reasons[:1].isdigit() or "didn't satisfy plugin" in reasons:
        return Counter()
    counts = _counts(reasons)
    del counts[ACCEPTED]
    return counts


def _counts(reasons: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for part in filter(None, reasons.split(", ")):
        number, _, reason = part.partition(" ")
        counts[reason] += int(number)
    return counts


def totals(results: Iterator[Result]) -> Result:
    """All of them together."""
    pairs = feasible = 0
    differences: list[Difference] = []
    messages: list[tuple[str, str]] = []
    for result in results:
        pairs += result.pairs
        feasible += result.feasible_pairs
        differences += result.differences
        messages += result.other_messages
    return Result(pairs, feasible, tuple(differences), tuple(messages))
