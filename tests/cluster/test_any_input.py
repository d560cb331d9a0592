"""Whatever is fed in, there is a snapshot or an error for the user, never a crash."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.files import FilesSource
from rebalancer.errors import RebalancerError
from rebalancer.model.snapshot import Snapshot
from tests.cluster import wire_builders as wire

DUMP = wire.as_list(
    wire.node("n1", taints=[{"key": "a", "effect": "NoSchedule"}]),
    wire.launcher(
        "web",
        tolerations=[{"operator": "Exists"}],
        nodeSelector={"a": "b"},
        overhead={"memory": "1Mi"},
        initContainers=[wire.sidecar(memory="1Gi")],
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
                ]
            }
        },
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    ),
    wire.vmi("web", status={"memory": {"guestCurrent": "1Gi"}}),
    wire.migration("m", "web", phaseTransitionTimestamps=[{"phase": "Pending"}]),
    wire.kubevirt(bandwidthPerMigration="64Mi"),
    wire.volume("v", labels={"topology.kubernetes.io/zone": "a"}),
)

names = st.sampled_from(
    (
        *("apiVersion", "kind", "items", "metadata", "name", "namespace", "uid", "spec", "status"),
        *("containers", "resources", "requests", "memory", "conditions", "allocatable", "labels"),
    )
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(["v1", "Pod", "Node", "NodeList", "List", "kubevirt.io/v1", "1Gi", "2026"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=15,
)


def read(content: bytes, suffix: str) -> Snapshot | RebalancerError:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"dump{suffix}")
        file.write_bytes(content)
        try:
            return FilesSource([file]).read()
        except RebalancerError as error:
            return error


def places(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path to each value within a structure, except to the whole."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield (*above, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*above, key))


@given(content=st.binary(), suffix=st.sampled_from([".json", ".yaml"]))
def test_any_bytes(content: bytes, suffix: str) -> None:
    assert isinstance(read(content, suffix), RebalancerError)


@given(value=values)
def test_any_structure(value: object) -> None:
    assert isinstance(read(json.dumps(value).encode(), ".json"), RebalancerError)


@given(place=st.sampled_from(sorted(places(DUMP), key=str)), value=values)
def test_any_value_anywhere_in_a_good_dump(place: tuple[str | int, ...], value: object) -> None:
    """Changed in one place, a dump is read, or the error says what is wrong."""
    dump = json.loads(json.dumps(DUMP))
    target: Any = dump
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    assert isinstance(read(json.dumps(dump).encode(), ".json"), Snapshot | RebalancerError)


@given(content=st.binary(max_size=8), at=st.integers(0, 3000), length=st.integers(0, 20))
def test_any_bytes_within_a_good_dump(content: bytes, at: int, length: int) -> None:
    dump = json.dumps(DUMP).encode()
    broken = dump[:at] + content + dump[at + length :]
    assert isinstance(read(broken, ".json"), Snapshot | RebalancerError)
