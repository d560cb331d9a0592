"""Kubernetes objects out of documents of whatever form, gathered to a snapshot."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from rebalancer.cluster import wire
from rebalancer.cluster.collect import collect, sort_key
from rebalancer.cluster.decode import Object, ObjectDecoder, unreadable
from rebalancer.cluster.fields import FieldError, decode_field
from rebalancer.cluster.kinds import NODE, POD, SNAPSHOT_KINDS, VMI, Kind
from rebalancer.errors import InputError, UnreadableObjectError
from rebalancer.model.snapshot import Snapshot

UNDATED = datetime(2000, 1, 1, tzinfo=UTC)
"""When a dump without a single time is said to be from; any fixed moment would do."""

_KINDS = {(kind.group, kind.name): kind for kind in SNAPSHOT_KINDS}
_NAMES = {kind.name for kind in SNAPSHOT_KINDS}

_TYPE: Decoder[wire.TypeMeta] = Decoder(wire.TypeMeta)
_ITEMS: Decoder[list[Raw] | None] = Decoder(list[Raw] | None)
_TIMES: Decoder[wire.Times] = Decoder(wire.Times)


class NotKubernetesError(Exception):
    """A document is no Kubernetes object; it may have been meant for something else."""


class Place(NamedTuple):
    """Where an object stands; documents and items count from 1, and 0 is the only one."""

    file: str
    document: int = 0
    item: int = 0

    def __str__(self) -> str:
        document = f", document {self.document}" if self.document else ""
        item = f", item {self.item}" if self.item else ""
        return f"{self.file}{document}{item}"


class Dump:
    """The objects that have been read so far."""

    def __init__(self) -> None:
        self._decoder = ObjectDecoder()
        self._objects: dict[Kind, dict[tuple[str, str], tuple[Object, Place]]] = {}
        self._keys_by_uid: dict[str, tuple[Kind, tuple[str, str]]] = {}
        self._latest: datetime | None = None
        self._count = 0

    def add(self, document: bytes, place: Place) -> None:
        """An object, or a list: of a kind of its own (`PodList`), `kind: List`, or bare `items`.

        Raises: NotKubernetesError, InputError, UnreadableObjectError.
        """
        try:
            self._add(document, place)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(f"{place}: {error}") from error

    def snapshot(self, sources: str) -> Snapshot:
        """Raises: InputError if there is nothing to plan with; `sources` is what it names."""
        lacking = [kind for kind in (NODE, POD, VMI) if kind not in self._objects]
        if lacking:
            names = " and no ".join(kind.name for kind in lacking)
            resources = ",".join(kind.resource for kind in lacking)
            raise InputError(
                f"{sources}: no {names} among the {self._count} objects there; add what this"
                f" prints: kubectl get {resources} --all-namespaces -o json"
            )
        objects = {
            kind: [item for item, _ in found.values()] for kind, found in self._objects.items()
        }
        return collect(objects, self._latest or UNDATED)

    def _add(self, document: bytes, place: Place) -> None:
        try:
            meta = decode_field(document, _TYPE)
        except FieldError as error:
            raise NotKubernetesError(str(error)) from error
        if meta.kind and not meta.kind.endswith("List"):
            self._add_object(meta, document, place)
        elif not meta.kind and meta.items is wire.NULL:
            raise NotKubernetesError("it has neither kind nor items")
        elif not meta.kind and meta.api_version:
            # Keys come in alphabetical order, so YAML cut off between two items is well-formed.
            raise InputError(
                f"{place}: a list without its kind, which kubectl prints behind the items: it was"
                " cut off; dump it again"
            )
        else:
            self._add_list(meta, place)

    def _add_list(self, meta: wire.TypeMeta, place: Place) -> None:
        kind = (meta.kind or "").removesuffix("List")
        items = self._items(meta, place)
        if known := _known_kind(meta.api_version, kind, place):
            self._objects.setdefault(known, {})
        for number, item in enumerate(items, start=1):
            item_place = place._replace(item=number)
            try:
                item_meta = decode_field(item, _TYPE)
            except FieldError as error:
                raise InputError(f"{item_place}: not a Kubernetes object: {error}") from error
            if not item_meta.kind:
                if not meta.kind and number == 1:
                    raise NotKubernetesError("neither the list nor its items have a kind")
                if not kind:
                    raise InputError(f"{item_place}: it has no kind, nor does the list tell it")
                item_meta.kind = kind
                item_meta.api_version = item_meta.api_version or meta.api_version
            self._add_object(item_meta, item, item_place)

    def _items(self, meta: wire.TypeMeta, place: Place) -> Sequence[Raw]:
        try:
            return decode_field(meta.items, _ITEMS, "items") or ()
        except FieldError as error:
            if not meta.kind:
                raise NotKubernetesError(str(error)) from error
            raise InputError(f"{place}: {meta.kind}: {error}") from error

    def _add_object(self, meta: wire.TypeMeta, data: bytes | Raw, place: Place) -> None:
        kind = _known_kind(meta.api_version, meta.kind or "", place)
        self._count += 1
        if kind is None:
            return
        try:
            item = self._decoder.decode(kind, data, str(place))
            self._note_times(kind, data, place)
        except UnreadableObjectError as error:
            problem = f"{error.problem} (in {place})"
            raise UnreadableObjectError(error.kind, error.name, error.field, problem) from error
        found = self._objects.setdefault(kind, {})
        key = sort_key(item)
        earlier, earlier_place = found.setdefault(key, (item, place))
        if earlier != item:
            raise InputError(
                f"{_name(kind, key)} is there twice, and differs: in {earlier_place} and in"
                f" {place}; remove the older one"
            )
        self._check_uid(kind, key, getattr(item, "uid", ""), place)

    def _check_uid(self, kind: Kind, key: tuple[str, str], uid: str, place: Place) -> None:
        """Pods find their VMI by its uid, and must not find another."""
        owner = self._keys_by_uid.setdefault(uid, (kind, key)) if uid else (kind, key)
        if owner != (kind, key):
            raise InputError(
                f"{_name(kind, key)}: metadata.uid: {uid} is that of {_name(*owner)} as well (in"
                f" {place}); no two objects of a cluster share one"
            )

    def _note_times(self, kind: Kind, data: bytes | Raw, place: Place) -> None:
        try:
            times = decode_field(data, _TIMES)
        except FieldError as error:
            raise unreadable(kind, data, error, str(place)) from error
        for time in _times(times):
            if self._latest is None or time > self._latest:
                self._latest = time


def _name(kind: Kind, key: tuple[str, str]) -> str:
    return f"{kind.name} {'/'.join(filter(None, key))}".rstrip()


def _known_kind(api_version: str | None, name: str, place: Place) -> Kind | None:
    """The kind, where it is one that is read; other API groups have a Node or Namespace too."""
    if name not in _NAMES:
        return None
    if not api_version:
        raise InputError(f"{place}: a {name} without apiVersion; which {name} is it?")
    group, _, _ = api_version.rpartition("/")
    return _KINDS.get((group, name))


def _times(times: wire.Times) -> Iterator[datetime]:
    metadata = times.metadata or wire.TimedMetadata()
    status = times.status or wire.TimedStatus()
    found = [metadata.creation_timestamp]
    for condition in status.conditions or ():
        found += (condition.last_heartbeat_time, condition.last_transition_time)
    for transition in status.phase_transition_timestamps or ():
        found.append(transition.phase_transition_timestamp)
    return (time for time in found if time is not None)
