"""Waiting for the cluster to reach a state, and saying what state it was in when it did not."""

import json
import time
from collections.abc import Callable
from typing import TypeVar

from .api import Api, Object, path_of

T = TypeVar("T")

# Generous, since only a failing test waits so long, and machines can be busy.
DEFAULT_SECONDS = 60.0
_POLL_SECONDS = 0.1
_SHOWN_CHARACTERS = 4000


def wait_for(
    read: Callable[[], T],
    is_reached: Callable[[T], bool],
    what: str,
    seconds: float = DEFAULT_SECONDS,
) -> T:
    """Read a state again and again until it is the one waited for, and return that.

    Raises: TimeoutError with `what` and the last state read.
    """
    deadline = time.monotonic() + seconds
    while True:
        state = read()
        if is_reached(state):
            return state
        if time.monotonic() > deadline:
            shown = json.dumps(state, indent=1, default=str)[:_SHOWN_CHARACTERS]
            raise TimeoutError(f"waited {seconds:.0f} s for {what}; last seen: {shown}")
        time.sleep(_POLL_SECONDS)


def wait_for_vmi(
    api: Api,
    name: str,
    phase: str,
    *,
    namespace: str = "default",
    seconds: float = DEFAULT_SECONDS,
) -> Object:
    """The VMI, once it is in that phase."""
    path = path_of("virtualmachineinstances", namespace, name)
    return wait_for(lambda: api.get(path), _has_phase(phase), f"VMI {name} {phase}", seconds)


def wait_for_migration(
    api: Api,
    name: str,
    phase: str,
    *,
    namespace: str = "default",
    seconds: float = DEFAULT_SECONDS,
) -> Object:
    """The VirtualMachineInstanceMigration, once it is in that phase."""
    path = path_of("virtualmachineinstancemigrations", namespace, name)
    return wait_for(lambda: api.get(path), _has_phase(phase), f"migration {name} {phase}", seconds)


def launcher_pods(api: Api, vmi_name: str, namespace: str = "default") -> list[Object]:
    """The launcher pods of a VMI, those that have ended too, oldest first."""
    pods = api.list(path_of("pods", namespace), labelSelector="kubevirt.io=virt-launcher")
    own = [pod for pod in pods if pod["metadata"]["ownerReferences"][0]["name"] == vmi_name]
    return sorted(own, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))


def _has_phase(phase: str) -> Callable[[Object], bool]:
    return lambda item: item.get("status", {}).get("phase") == phase
