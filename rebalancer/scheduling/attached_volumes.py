"""Which CSI volumes are attached to which nodes, and how many each node can take."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property

from rebalancer.model.objects import CsiVolume, Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.claimed_volumes import claimed_volumes


class AttachedVolumes:
    """Nodes are given by index.

    Source: kube-scheduler v1.36.3 pkg/scheduler/framework/plugins/nodevolumelimits/csi.go.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        index: Mapping[str, int],
        placements: Callable[[], Sequence[tuple[Pod, int]]],
    ) -> None:
        """`placements`: asked once it is needed."""
        self._snapshot = snapshot
        self._index = index
        self._placements = placements

    def after(
        self,
        arrived: Sequence[tuple[Pod, int]],
        placements: Callable[[], Sequence[tuple[Pod, int]]],
    ) -> "AttachedVolumes":
        """With those of more pods."""
        after = copy(self)
        after._placements = placements
        vars(after).pop("users", None)
        for name in ("in_use", "attached"):
            if name in vars(self):
                volumes = vars(after)[name] = dict(vars(self)[name])
                for pod, node in arrived:
                    volumes[node] = volumes.get(node, frozenset()) | self.of(pod)
        return after

    def of(self, pod: Pod) -> frozenset[CsiVolume]:
        """The pod's CSI volumes, those included that would be made for it."""
        volumes = claimed_volumes(pod, self._snapshot)
        return frozenset(volume.csi for volume in volumes if volume.csi is not None)

    @cached_property
    def limits(self) -> Mapping[str, Mapping[int, int]]:
        """Driver to node to how many volumes it can take there, where that is limited."""
        limits: dict[str, dict[int, int]] = {}
        for csi_node in self._snapshot.csi_nodes:
            if csi_node.name in self._index:
                for driver, count in csi_node.volume_limits.items():
                    limits.setdefault(driver, {})[self._index[csi_node.name]] = count
        return limits

    @cached_property
    def in_use(self) -> Mapping[int, frozenset[CsiVolume]]:
        """Node to the volumes of the pods there."""
        volumes: dict[int, set[CsiVolume]] = {}
        for pod, node in self._placements():
            if pod.claim_names:
                volumes.setdefault(node, set()).update(self.of(pod))
        return {node: frozenset(found) for node, found in volumes.items()}

    @cached_property
    def users(self) -> Mapping[CsiVolume, frozenset[int]]:
        """Volume to the nodes where pods use it."""
        nodes: dict[CsiVolume, set[int]] = {}
        for node, volumes in self.in_use.items():
            for volume in volumes:
                nodes.setdefault(volume, set()).add(node)
        return {volume: frozenset(found) for volume, found in nodes.items()}

    @cached_property
    def attached(self) -> Mapping[int, frozenset[CsiVolume]]:
        """Node to all volumes there, those included that no pod uses any more."""
        volumes = {node: set(found) for node, found in self.in_use.items()}
        for attachment in self._snapshot.volume_attachments:
            volume = self._snapshot.volume_by_name.get(attachment.volume_name)
            node = self._index.get(attachment.node_name)
            if volume is not None and volume.csi is not None and node is not None:
                unique = CsiVolume(attachment.driver, volume.csi.handle)
                volumes.setdefault(node, set()).add(unique)
        return {node: frozenset(found) for node, found in volumes.items()}

    def room(self, driver: str, node: int) -> int | None:
        """How many more volumes of the driver the node can take; None without a limit."""
        limit = self.limits.get(driver, {}).get(node)
        if limit is None:
            return None
        return limit - sum(v.driver == driver for v in self.attached.get(node, ()))

    def has_room(self, counts: Mapping[str, int], node: int) -> bool:
        """Whether the node can take so many volumes more of each driver."""
        rooms = ((self.room(driver, node), count) for driver, count in counts.items())
        return all(room is None or room >= count for room, count in rooms)
