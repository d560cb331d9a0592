"""A cluster, through its API server.

RBAC: list on what a snapshot is made of (kinds.py); get on nodes and virtualmachineinstances; watch
on pods and virtualmachineinstancemigrations, and create on the latter and on events; in the
rebalancer's namespace create, get and delete on pods, and create, get and update on leases.
"""

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from rebalancer.cluster import wire
from rebalancer.cluster.api import Api, ApiError, Query
from rebalancer.cluster.collect import collect, in_order
from rebalancer.cluster.decode import Object, ObjectDecoder
from rebalancer.cluster.kinds import (
    EVENT,
    KUBEVIRT,
    MIGRATION,
    NODE,
    POD,
    QUOTA,
    SNAPSHOT_KINDS,
    VMI,
    Kind,
)
from rebalancer.cluster.lease import LeaseLock
from rebalancer.cluster.manifests import event_manifest, lock_pod_manifest, migration_manifest
from rebalancer.cluster.measured_load import LoadReader
from rebalancer.cluster.protocols import Hold, Leadership, MigrationRequest, Notice
from rebalancer.cluster.refusals import migration_refusal
from rebalancer.cluster.watch import Watch, Watched, wait_for_change
from rebalancer.errors import ClusterError, ConflictError, RefusedError
from rebalancer.model.keys import CREATED_BY
from rebalancer.model.objects import ObjectKey, Pod
from rebalancer.model.snapshot import Snapshot

MEASURED_LOAD = "MeasuredLoad"
"""What is missing from a snapshot when Prometheus had nothing for it."""

PAGE_SIZE = 500
"""Objects in one answer; what kubectl asks for."""

_LIST_ATTEMPTS = 3
_EVERYTHING: Query = {}
_REFUSALS = {400, 403, 404, 422}


class LiveCluster:
    """Reads a cluster and acts on it; implements `Cluster`.

    Args:
        namespace: the rebalancer's own, for its Lease.
        identity: tells this process from all other rebalancers.
        load_reader: measures what is read; None where nothing is measured.
    """

    def __init__(
        self, api: Api, namespace: str, identity: str, load_reader: LoadReader | None = None
    ) -> None:
        self._api = api
        self._load_reader = load_reader
        self._lease = LeaseLock(api, namespace, identity)
        self._versions: dict[Kind, str] = {}
        self._latest: Snapshot | None = None

    def now(self) -> datetime:
        return self._api.now()

    def leadership(self) -> AbstractContextManager[Leadership]:
        return self._lease.held()

    def read(self) -> Snapshot:
        """Each kind is read consistently, one after the other."""
        decoder = ObjectDecoder()
        objects = {kind: self._list_known(kind, decoder) for kind in SNAPSHOT_KINDS}
        if not objects[KUBEVIRT]:
            del objects[KUBEVIRT]  # then its settings are unknown, not the defaults
        return self._remembered(self._measured(collect(objects, self.now())))

    def reread(
        self, snapshot: Snapshot, nodes: Collection[str], vmis: Collection[ObjectKey]
    ) -> Snapshot:
        decoder = ObjectDecoder()
        nodes, vmis = set(nodes), set(vmis)
        quotas = self._list(QUOTA, decoder)
        migrations = self._list(MIGRATION, decoder)
        fresh_vmis = self._get_all(VMI, vmis, decoder)
        fresh_nodes = self._get_all(NODE, [ObjectKey("", name) for name in nodes], decoder)
        uids = {vmi.uid for vmi in (*snapshot.vmis, *fresh_vmis) if vmi.key in vmis}
        return self._remembered(
            replace(
                snapshot,
                taken_at=self.now(),
                nodes=in_order(
                    [*fresh_nodes, *(node for node in snapshot.nodes if node.name not in nodes)]
                ),
                vmis=in_order(
                    [*fresh_vmis, *(vmi for vmi in snapshot.vmis if vmi.key not in vmis)]
                ),
                migrations=in_order(migrations),
                quotas=in_order(quotas),
                pods=in_order(self._reread_pods(snapshot.pods, nodes, uids, decoder)),
            )
        )

    def create_migration(self, request: MigrationRequest) -> None:
        """An API that does not know `addedNodeSelector` refuses it, instead of migrating to
        wherever there is room.
        """
        try:
            self._api.create(
                MIGRATION,
                request.vmi.namespace,
                migration_manifest(request),
                {"fieldValidation": "Strict"},
            )
        except ApiError as error:
            if error.status == 409:
                raise ConflictError(str(error)) from error
            refusal = migration_refusal(error.status, error.answer, request.vmi)
            raise (refusal or _unknown(error)) from error

    def create_hold(self, hold: Hold) -> None:
        try:
            self._api.create(POD, hold.namespace, lock_pod_manifest(hold), {})
        except ApiError as error:
            if error.status != 409:
                raise _refused_or_unknown(error) from error
            self._check_existing(hold)

    def delete_hold(self, key: ObjectKey) -> None:
        try:
            self._api.delete(POD, key.namespace, key.name)
        except ApiError as error:
            if error.status != 404:
                raise

    def create_event(self, notice: Notice) -> None:
        manifest = event_manifest(notice, self.now())
        try:
            self._api.create(EVENT, manifest["metadata"]["namespace"], manifest, {})
        except ApiError as error:
            if error.status != 409:
                raise

    def wait_for_change(self, vmis: Collection[ObjectKey], seconds: float) -> None:
        """Launcher pods are watched of those VMIs that were there when last read."""
        known = self._latest.vmi_by_key if self._latest else {}
        uids = [known[key].uid for key in vmis if key in known]
        watches = [Watch(MIGRATION, {}, lambda migration: _vmi_of(migration) in vmis)]
        if uids:
            watches.append(Watch(POD, _created_by(uids), lambda _: True))
        wait_for_change(self._api, watches, self._versions, seconds)

    def _measured(self, snapshot: Snapshot) -> Snapshot:
        if self._load_reader is None:
            return snapshot
        load = self._load_reader.read(snapshot)
        missing = (*snapshot.missing, MEASURED_LOAD) if load.problem else snapshot.missing
        return replace(snapshot, measured_load=load, missing=missing)

    def _remembered(self, snapshot: Snapshot) -> Snapshot:
        self._latest = snapshot
        return snapshot

    def _list(self, kind: Kind, decoder: ObjectDecoder, query: Query = _EVERYTHING) -> list[Any]:
        """All objects as of one instant; from the start again when that is too long ago."""
        for _ in range(_LIST_ATTEMPTS - 1):
            try:
                return self._list_pages(kind, decoder, query)
            except ApiError as error:
                if error.status != 410:
                    raise
        return self._list_pages(kind, decoder, query)

    def _list_known(self, kind: Kind, decoder: ObjectDecoder) -> list[Any]:
        """As `_list`; none of a kind that a cluster need not know."""
        try:
            return self._list(kind, decoder)
        except ApiError as error:
            if kind.is_optional and error.status == 404:
                return []
            raise

    def _list_pages(self, kind: Kind, decoder: ObjectDecoder, query: Query) -> list[Any]:
        objects: list[Object] = []
        position: dict[str, str] = {}
        while True:
            data = self._api.list_page(kind, {**query, **position, "limit": str(PAGE_SIZE)})
            page = decoder.decode_page(kind, data)
            objects += page.objects
            if not page.continue_token:
                self._versions[kind] = page.resource_version
                return objects
            position = {"continue": page.continue_token}

    def _get_all(self, kind: Kind, keys: Iterable[ObjectKey], decoder: ObjectDecoder) -> list[Any]:
        """Those that exist."""
        found = []
        for key in keys:
            try:
                data = self._api.get(kind, key.namespace, key.name)
            except ApiError as error:
                if error.status != 404:
                    raise
            else:
                found.append(decoder.decode(kind, data, str(key)))
        return found

    def _reread_pods(
        self,
        before: Iterable[Pod],
        nodes: Collection[str],
        vmi_uids: Collection[str],
        decoder: ObjectDecoder,
    ) -> list[Pod]:
        """Pods with those on these nodes, and the launchers of these VMIs, as they are now."""
        pods = {
            pod.key: pod
            for pod in before
            if pod.node_name not in nodes and pod.vmi_uid not in vmi_uids
        }
        for node in nodes:
            on_node: list[Pod] = self._list(
                POD, decoder, {"fieldSelector": f"spec.nodeName={node}"}
            )
            # Launchers of the VMIs are read after this; what has gone by then must not stay.
            pods |= {pod.key: pod for pod in on_node if pod.vmi_uid not in vmi_uids}
        if vmi_uids:
            launchers: list[Pod] = self._list(POD, decoder, _created_by(vmi_uids))
            pods |= {pod.key: pod for pod in launchers}
        return list(pods.values())

    def _check_existing(self, hold: Hold) -> None:
        """Raises: RefusedError if the pod of that name does not hold what it should."""
        key = ObjectKey(hold.namespace, hold.name)
        found = self._get_all(POD, [key], ObjectDecoder())
        problem = _lock_problem(found[0], hold) if found else "has just gone"
        if problem:
            raise RefusedError(f"create pods {key}: there is one already, but it {problem}")


def _lock_problem(pod: Pod, hold: Hold) -> str:
    if pod.node_name != hold.node_name:
        return f"is on node {pod.node_name}, not {hold.node_name}"
    admitted = _admitted_uids(pod)
    if admitted != set(hold.admitted_uids):
        return f"admits the launchers of other VMIs ({', '.join(sorted(admitted))})"
    if pod.is_terminating:
        return "is being deleted"
    if pod.is_finished:
        return f"has ended ({pod.phase})"
    return ""


def _admitted_uids(lock: Pod) -> set[str]:
    selectors = (term.selector for term in lock.pod_anti_affinity if term.selector)
    requirements = (each for selector in selectors for each in selector.requirements)
    return {uid for each in requirements if each.key == CREATED_BY for uid in each.values}


def _refused_or_unknown(error: ApiError) -> ClusterError:
    if error.status in _REFUSALS:
        return RefusedError(str(error))
    return _unknown(error)


def _unknown(error: ApiError) -> ClusterError:
    return ClusterError(f"{error}; it is not known whether this was done")


def _created_by(vmi_uids: Iterable[str]) -> Query:
    return {"labelSelector": f"{CREATED_BY} in ({','.join(sorted(vmi_uids))})"}


def _vmi_of(migration: Watched) -> ObjectKey:
    spec = migration.spec or wire.MigrationSpec()
    return ObjectKey(migration.metadata.namespace or "", spec.vmi_name or "")
