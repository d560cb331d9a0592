"""JSON to the model's objects; whatever cannot be read is named."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from rebalancer.cluster import kinds, wire
from rebalancer.cluster.fields import FieldError, decode_field
from rebalancer.cluster.infrastructure import (
    convert_attachment,
    convert_claim,
    convert_csi_driver,
    convert_csi_node,
    convert_namespace,
    convert_network_attachment,
    convert_node,
    convert_storage_class,
    convert_volume,
)
from rebalancer.cluster.kinds import Kind
from rebalancer.cluster.limits import (
    convert_disruption_budget,
    convert_limit_range,
    convert_quota,
)
from rebalancer.cluster.pods import PodConverter
from rebalancer.cluster.virtual_machines import (
    KubeVirtSettings,
    VMIConverter,
    convert_kubevirt,
    convert_migration,
    convert_migration_policy,
)
from rebalancer.errors import ClusterError, UnreadableObjectError
from rebalancer.model.objects import (
    CSIDriver,
    CSINode,
    LimitRange,
    Migration,
    MigrationPolicy,
    Namespace,
    NetworkAttachmentDefinition,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ResourceQuota,
    StorageClass,
    VirtualMachineInstance,
    VolumeAttachment,
)

Object = (
    Node
    | Pod
    | VirtualMachineInstance
    | Migration
    | MigrationPolicy
    | NetworkAttachmentDefinition
    | KubeVirtSettings
    | PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSIDriver
    | CSINode
    | VolumeAttachment
    | Namespace
    | ResourceQuota
    | LimitRange
    | PodDisruptionBudget
)


class Page(NamedTuple):
    """Part of a list, or all of it when `continue_token` is empty."""

    objects: list[Object]
    continue_token: str
    resource_version: str


class ObjectDecoder:
    """Decodes the objects of one reading."""

    def __init__(self) -> None:
        self._converters: Mapping[Kind, Callable[[Any], Object]] = {
            kinds.NODE: convert_node,
            kinds.POD: PodConverter().convert,
            kinds.VMI: VMIConverter().convert,
            kinds.MIGRATION: convert_migration,
            kinds.MIGRATION_POLICY: convert_migration_policy,
            kinds.NETWORK_ATTACHMENT: convert_network_attachment,
            kinds.KUBEVIRT: convert_kubevirt,
            kinds.CLAIM: convert_claim,
            kinds.VOLUME: convert_volume,
            kinds.STORAGE_CLASS: convert_storage_class,
            kinds.CSI_DRIVER: convert_csi_driver,
            kinds.CSI_NODE: convert_csi_node,
            kinds.VOLUME_ATTACHMENT: convert_attachment,
            kinds.NAMESPACE: convert_namespace,
            kinds.QUOTA: convert_quota,
            kinds.LIMIT_RANGE: convert_limit_range,
            kinds.DISRUPTION_BUDGET: convert_disruption_budget,
        }

    def decode(self, kind: Kind, data: bytes | Raw, place: str) -> Object:
        """One object; `place` stands for its name where it has none.

        Raises: UnreadableObjectError.
        """
        try:
            return self._converters[kind](decode_field(data, _OBJECTS[kind]))
        except FieldError as error:
            raise unreadable(kind, data, error, place) from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise UnreadableObjectError(kind.name, place, "the object", str(error)) from error

    def decode_page(self, kind: Kind, data: bytes) -> Page:
        """What the API server answers to a list request.

        Raises: UnreadableObjectError, ClusterError if it is no list.
        """
        convert = self._converters[kind]
        try:
            page = _PAGES[kind].decode(data)
            return _page(page, [convert(item) for item in page.items or ()])
        except (msgspec.ValidationError, FieldError):
            return self._decode_one_by_one(kind, data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise _no_list(kind, error) from error

    def _decode_one_by_one(self, kind: Kind, data: bytes) -> Page:
        """Slowly, so that the object that is to blame is known."""
        try:
            page = decode_field(data, _RAW_PAGE)
        except (FieldError, msgspec.DecodeError, RecursionError) as error:
            raise _no_list(kind, error) from error
        items = enumerate(page.items or ())
        return _page(page, [self.decode(kind, item, f"items[{i}]") for i, item in items])


def _page(page: wire.Page[Any], objects: list[Object]) -> Page:
    metadata = page.metadata or wire.ListMetadata()
    return Page(objects, metadata.continue_token or "", metadata.resource_version or "")


def _no_list(kind: Kind, error: Exception) -> ClusterError:
    return ClusterError(
        f"list {kind.resource}: the answer is no list of them ({error}); does the address lead to"
        " the API server, without a proxy that answers itself?"
    )


def unreadable(
    kind: Kind, data: bytes | Raw, error: FieldError, place: str
) -> UnreadableObjectError:
    """The error with the object's name, as far as it has one, else the place where it stands."""
    try:
        metadata = msgspec.json.decode(data)["metadata"]
        name = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
    except (KeyError, TypeError, AttributeError, msgspec.DecodeError, RecursionError):
        name = ""
    return UnreadableObjectError(kind.name, name or place, error.field, error.problem)


_SHAPES: Mapping[Kind, Any] = {
    kinds.NODE: wire.Node,
    kinds.POD: wire.Pod,
    kinds.VMI: wire.VirtualMachineInstance,
    kinds.MIGRATION: wire.Migration,
    kinds.MIGRATION_POLICY: wire.MigrationPolicy,
    kinds.NETWORK_ATTACHMENT: wire.NetworkAttachmentDefinition,
    kinds.KUBEVIRT: wire.KubeVirt,
    kinds.CLAIM: wire.PersistentVolumeClaim,
    kinds.VOLUME: wire.PersistentVolume,
    kinds.STORAGE_CLASS: wire.StorageClass,
    kinds.CSI_DRIVER: wire.CSIDriver,
    kinds.CSI_NODE: wire.CSINode,
    kinds.VOLUME_ATTACHMENT: wire.VolumeAttachment,
    kinds.NAMESPACE: wire.Namespace,
    kinds.QUOTA: wire.ResourceQuota,
    kinds.LIMIT_RANGE: wire.LimitRange,
    kinds.DISRUPTION_BUDGET: wire.PodDisruptionBudget,
}
_OBJECTS: Mapping[Kind, Decoder[Any]] = {kind: Decoder(shape) for kind, shape in _SHAPES.items()}
_PAGES: Mapping[Kind, Decoder[Any]] = {
    kind: Decoder(wire.Page[shape])  # type: ignore[valid-type]
    for kind, shape in _SHAPES.items()
}
_RAW_PAGE: Decoder[wire.Page[Raw]] = Decoder(wire.Page[Raw])
